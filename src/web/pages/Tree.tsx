/** Tree: shows the supervision tree. Crashes and restarts are highlighted. */
import { useState } from "preact/hooks"
import type { TreeRow } from "../../board/TreeMessages.ts"
import { span } from "../../domain/StatusWords.ts"
import { useKeys } from "../KeyMap.ts"
import { useNews } from "../RefreshTimer.ts"
import { useAnswer } from "../VerbQuery.ts"
import { go, hrefTo } from "../Router.ts"
import { now } from "../Time.ts"
import { Bare, Failed, Glyph, Loading } from "../Ui.tsx"

/** Number of waiting messages at which the bar is full. */
const FULL = 16

/**
 * The branch lines in front of each row. They depend on whether a later row belongs to the same parent, at each depth.
 * Pure.
 */
const stemsOf = (rows: ReadonlyArray<TreeRow>): ReadonlyArray<ReadonlyArray<"bar" | "mid" | "end" | "none">> => {
  const open: Array<boolean> = []
  return rows
    .toReversed()
    .map(({ depth }) => {
      const stems = Array.from({ length: depth }, (_, at) => {
        const goesOn = open[at + 1] === true
        if (at < depth - 1) return goesOn ? "bar" : "none"
        return goesOn ? "mid" : "end"
      })
      open[depth] = true
      open.length = depth + 1
      return stems
    })
    .toReversed()
}

const Mailbox = ({ waiting }: { readonly waiting: number }) =>
  waiting === 0 ? null : (
    <span class="mailbox">
      <svg width="60" height="4" viewBox="0 0 60 4" aria-hidden="true">
        <rect
          class={waiting > FULL / 2 ? "bar-part full" : "bar-part"}
          width={Math.min(60, (60 * waiting) / FULL)}
          height="4"
          rx="2"
        />
      </svg>
      <span class="num">{waiting}</span>
    </span>
  )

const Mark = ({ row: { crash, kind, status } }: { readonly row: TreeRow }) => {
  if (kind === "supervisor")
    return (
      <svg class="sup" width="13" height="13" viewBox="0 0 13 13" aria-hidden="true">
        <rect x="2" y="2" width="9" height="9" rx="2.5" />
      </svg>
    )
  const isDown = status === "down" || status === "abandoned"
  return (
    <Glyph
      word={isDown ? "failed" : status === "restarting" ? "retrying" : crash === null ? "idle" : "working"}
      size={13}
    />
  )
}

const Row = ({ row, stems }: { readonly row: TreeRow; readonly stems: ReadonlyArray<string> }) => (
  <div class={row.crash === null ? "tree-row" : "tree-row crashed"} role="row">
    <span role="cell" class="tree-name">
      {stems.map((stem, n) => (
        <i key={n} class={`stem ${stem}`} />
      ))}
      <Mark row={row} />
      <span class={row.kind === "supervisor" ? "strong clip" : "clip"}>{row.name}</span>
      {row.hidden > 0 && <span class="faint small">and {row.hidden} more</span>}
    </span>
    <span role="cell" class="faint small clip">
      {row.kind === "supervisor" ? row.state : ""}
    </span>
    <span role="cell">
      <Mailbox waiting={row.mailbox ?? 0} />
    </span>
    <span role="cell" class="num">
      {(row.restarts ?? 0) === 0 ? "" : row.restarts}
    </span>
    <span role="cell" class={row.crash === null ? "muted clip" : "c-failed clip"}>
      {row.crash === null
        ? row.kind === "actor"
          ? row.state
          : row.status === "running"
            ? ""
            : row.status
        : `${span(now.value - row.crash.at)} ago: ${row.crash.message}`}
    </span>
  </div>
)

export const Tree = () => {
  const { problem, value } = useAnswer<ReadonlyArray<TreeRow>>("Tree", { name: null }, useNews(1_000))
  const [only, setOnly] = useState(false)
  useKeys(({ is }) => {
    if (is === "back") go(hrefTo(""))
    else if (is === "filter") setOnly(!only)
    else return false
    return true
  })
  if (value === undefined)
    return <Bare title="Supervision">{problem === undefined ? <Loading /> : <Failed problem={problem} />}</Bare>
  const stems = stemsOf(value)
  const crashed = value.filter(({ crash }) => crash !== null)
  const restarts = value.reduce((sum, row) => sum + (row.restarts ?? 0), 0)
  return (
    <div class="page">
      <header class="top">
        <h1>Supervision</h1>
        <span class={restarts > 0 ? "c-failed num clip" : "muted num clip"}>
          {restarts === 0 ? "nothing was restarted" : `${restarts} restarts by supervisors`}
        </span>
        <span class="grow" />
        {crashed.length > 0 && (
          <button type="button" class="btn" aria-pressed={only} onClick={() => setOnly(!only)}>
            {only ? "Show all" : `${crashed.length} crashed`}
          </button>
        )}
      </header>
      <div class="scroll table" role="table" tabIndex={0} aria-label="Supervision tree">
        <div class="tree-row tree-head faint" role="row">
          <span role="columnheader">Actor</span>
          <span role="columnheader">Strategy</span>
          <span role="columnheader">Mailbox</span>
          <span role="columnheader" class="num">
            Restarts
          </span>
          <span role="columnheader">Now, last crash</span>
        </div>
        {value.map((row, n) =>
          only && row.crash === null ? null : <Row key={`${n} ${row.name}`} row={row} stems={only ? [] : stems[n]!} />
        )}
      </div>
    </div>
  )
}
