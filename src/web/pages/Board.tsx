/**
 * Board: lists everything that runs, grouped by who must act next. A panel next to the list explains the state of the
 * selected row.
 *
 * Guarantees: rows do not move while the mouse pointer is over them. However many rows there are, only the visible ones
 * are rendered.
 */
import { useComputed } from "@preact/signals"
import { Fragment } from "preact"
import { useEffect, useRef } from "preact/hooks"
import type { BoardRow } from "../../domain/BoardMessages.ts"
import { afterPhrase, type Group, LOOKS } from "../../domain/StatusWords.ts"
import * as PageActions from "../PageActions.ts"
import { cursor, filter, fold, folded, type Item, items, moved } from "../Filter.ts"
import { type Action, useKeys } from "../KeyMap.ts"
import { go, hrefOf, hrefTo } from "../Router.ts"
import { focusSend, Send } from "../Send.tsx"
import { counts, isWhole, loaded, mayAct, others, othersAsking, rows } from "../BoardStore.ts"
import { OtherHosts } from "../OtherHosts.tsx"
import { Remedies, WhyStory } from "../WhyStory.tsx"
import {
  Command,
  Context,
  Empty,
  Errors,
  Glyph,
  isPhone,
  Kbd,
  Loading,
  Phrase,
  Since,
  usd,
  usePhone,
  Virtual
} from "../Ui.tsx"

/** Matches windows that are wide enough for the panel with the selected row. */
const WIDE = matchMedia("(min-width: 1200px)")
const KINDS: { readonly [kind in BoardRow["kind"]]: string } = {
  agent: "",
  session: "by hand",
  goal: "goal",
  channel: "channel",
  project: "project",
  matter: ""
}

/** The address to which a row leads: its request, if the row needs a user; otherwise the row's own page. */
const hrefFrom = (row: BoardRow): string =>
  row.word === "needs you" ? hrefTo("needs", row.asks[0] ?? row.id) : hrefOf(row)

const Mail = ({ inbox }: Pick<BoardRow, "inbox">) =>
  inbox === 0 ? (
    <span class="inbox" />
  ) : (
    <span class="num inbox" title={`${inbox} messages wait`}>
      {inbox}
      <svg class="icon" width="12" height="12" viewBox="0 0 16 16" aria-hidden="true">
        <path d="M2 3.5h12v9H2zM2 4l6 5 6-5" />
      </svg>
    </span>
  )

const Says = ({ row }: { readonly row: BoardRow }) => (
  <span class="says">
    {(row.word === "retrying" || row.word === "waiting") && (
      <span class="lead">
        <Phrase row={row} />
      </span>
    )}
    <span class={row.word === "failed" ? "c-failed" : row.word === "needs you" ? "strong" : ""}>
      {row.word === "retrying" || row.word === "waiting" ? afterPhrase(row.says) : row.says}
    </span>
  </span>
)

export const Who = ({ row }: { readonly row: BoardRow }) => (
  <span class="who">
    {row.project !== "" && <span class="faint">{row.project}/</span>}
    <b>{row.name}</b>
    {KINDS[row.kind] !== "" && <em>{KINDS[row.kind]}</em>}
  </span>
)

const choose = (event: MouseEvent, row: BoardRow) => {
  if (event.metaKey || event.ctrlKey || event.shiftKey) return
  event.preventDefault()
  if (isPhone()) go(hrefFrom(row))
  else if (cursor.peek() === row.id || !WIDE.matches) go(hrefOf(row))
  else cursor.value = row.id
}

const Row = ({ id }: { readonly id: string }) => {
  const row = rows.get(id)?.value
  const isOn = useComputed(() => cursor.value === id).value
  if (row === undefined) return null
  return (
    <a
      class={`row${isOn ? " on" : ""}${row.word === "needs you" ? " whole" : ""}`}
      href={hrefOf(row)}
      tabIndex={-1}
      aria-current={isOn ? "true" : undefined}
      onClick={(event) => choose(event, row)}
    >
      <Glyph word={row.word} />
      <Who row={row} />
      <Says row={row} />
      <Errors errors={row.errors} />
      <Mail inbox={row.inbox} />
      <span class="model faint">{row.model}</span>
      <Context context={row.context} />
      <span class="num cost">{usd(row.today?.usd ?? 0)}</span>
      <span class="since">
        <Since at={row.since} />
      </span>
    </a>
  )
}

const GroupHead = ({ count, group }: { readonly group: Group; readonly count: number }) => (
  <button type="button" class="group" aria-expanded={!folded.value.has(group)} onClick={() => fold(group)}>
    <svg class="fold icon" width="10" height="10" viewBox="0 0 10 10" aria-hidden="true">
      <path d="M2.5 3.5 5 6.2l2.5-2.7" />
    </svg>
    {group}
    <span class="num faint">{count}</span>
  </button>
)

const Asks = ({ row }: { readonly row: BoardRow }) => (
  <div class="ask-card">
    <p>{row.says}</p>
    <a class="btn you" href={hrefFrom(row)}>
      Look at it<Kbd>a</Kbd>
    </a>
  </div>
)

export const Facts = ({ row: { branch, context, cwd, model, runs, today } }: { readonly row: BoardRow }) => {
  const facts: ReadonlyArray<readonly [string, preact.ComponentChildren] | false> = [
    runs > 0 && ["Runs", <span class="num">{runs}</span>],
    model !== "" && ["Model", model],
    context?.window !== undefined && [
      "Context",
      <span class="line">
        <Context context={context} wide />
        <span class="num">{Math.round((context.used / context.window) * 100)} %</span>
      </span>
    ],
    today !== null && today.usd > 0 && ["Today", <span class="num">{usd(today.usd)} USD</span>],
    branch !== null && ["Branch", <code>{branch}</code>],
    cwd !== null && ["Folder", <code>{cwd}</code>]
  ]
  const known = facts.filter((fact) => fact !== false)
  if (known.length === 0) return null
  return (
    <>
      <h3 class="label">Facts</h3>
      <dl class="facts">
        {known.map(([name, value]) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </Fragment>
        ))}
      </dl>
    </>
  )
}

const Peek = ({ id }: { readonly id: string }) => {
  const row = rows.get(id)?.value
  if (row === undefined) return null
  const isAgent = row.kind === "agent"
  return (
    <aside class="peek" aria-label={`Why ${row.name} is in this state`} tabIndex={0}>
      <header>
        <Glyph word={row.word} />
        <h2>{row.name}</h2>
        <Phrase row={row} />
        <a class="btn small-btn" href={hrefOf(row)}>
          Open<Kbd>↵</Kbd>
        </a>
      </header>
      {row.role !== "" && <p class="muted">{row.role}</p>}
      {row.word === "needs you" ? <Asks row={row} /> : <p class="peek-says">{row.says}</p>}
      {row.asks.length === 0 && <Remedies commands={row.commands} />}
      {row.word === "failed" && isAgent && mayAct.value && (
        <div class="line">
          <button type="button" class="btn" onClick={() => void PageActions.act("Start", { name: row.called })}>
            Start again
          </button>
        </div>
      )}
      {isAgent && <h3 class="label">Why</h3>}
      {isAgent && <WhyStory row={row} />}
      <Facts row={row} />
      {isAgent && <Send name={row.called} />}
    </aside>
  )
}

export const Summary = () => {
  const { Failed, Idle, "Needs you": you, Working } = counts.value
  if (!loaded.value) return null
  return (
    <p class="summary num">
      {you > 0 ? (
        <span class="c-you">{you} need you</span>
      ) : (
        <span class="c-good">Nothing waits for you{others.value.size > 0 && " here"}</span>
      )}
      {othersAsking.value > 0 && <span class="c-you">{othersAsking.value} on other hosts</span>}
      {Failed > 0 && <span class="c-failed">{Failed} failed</span>}
      <span>{Working} working</span>
      <span>{Idle} idle</span>
    </p>
  )
}

const Nothing = () =>
  filter.value === "" ? (
    <Empty title="No agents yet">
      <p>agentd keeps coding agents running. Add one to a project, and it appears here.</p>
      <pre>{"cd your-project\nagentd init\nagentd start"}</pre>
      <p>
        Sessions that you run by hand appear after <Command>agentd hooks install</Command>
      </p>
    </Empty>
  ) : (
    <Empty title="No row matches the filter.">
      <button type="button" class="btn" onClick={() => (filter.value = "")}>
        Show all<Kbd>Esc</Kbd>
      </button>
    </Empty>
  )

const Cols = () => (
  <div class="cols" aria-hidden="true">
    <span />
    <span>Name</span>
    <span>Now</span>
    <span />
    <span />
    <span class="model">Model</span>
    <span>Context</span>
    <span class="num cost">Today</span>
    <span class="since">Since</span>
  </div>
)

const Filter = ({ input }: { readonly input: preact.RefObject<HTMLInputElement | null> }) => (
  <label class="filter">
    <svg class="icon" width="14" height="14" viewBox="0 0 16 16" aria-hidden="true">
      <path d="M2 3.5h12M4.5 8h7M7 12.5h2" />
    </svg>
    <input
      ref={input}
      value={filter.value}
      onInput={(event) => (filter.value = event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key !== "Enter") return
        event.currentTarget.blur()
        cursor.value = moved(items.peek(), undefined, 1)
      }}
      placeholder="Filter"
      aria-label="Filter"
      spellcheck={false}
    />
    <Kbd>/</Kbd>
  </label>
)

const chosen = (): BoardRow | undefined => (cursor.peek() === undefined ? undefined : rows.get(cursor.peek()!)?.peek())

/** Handles the keys that move the selection in the list. Returns false for all other keys. */
const move = (is: string): boolean => {
  const by = { down: 1, up: -1, first: -Infinity, last: Infinity }[is]
  if (by === undefined) return false
  cursor.value = moved(
    items.peek(),
    Number.isFinite(by) ? cursor.peek() : undefined,
    by > 0 === Number.isFinite(by) ? 1 : -1
  )
  return true
}

const onRow = (action: Action, row: BoardRow): boolean => {
  switch (action.is) {
    case "open":
      go(hrefOf(row))
      return true
    case "send":
      if (row.kind !== "agent") return false
      if (WIDE.matches) return focusSend()
      go(hrefOf(row))
      return true
    case "fold":
      fold(LOOKS[row.word].group)
      return true
    case "approve":
    case "deny":
      go(hrefFrom(row))
      return true
    case "interrupt":
    case "restart":
    case "stop":
      return PageActions.end(action.is, row)
    default:
      return false
  }
}

const heightOf = (list: ReadonlyArray<Item>, phone: boolean) => (n: number) =>
  list[n]?.is === "group" ? 36 : phone ? 60 : 34

export const Board = () => {
  const input = useRef<HTMLInputElement>(null)
  const list = items.value
  const phone = usePhone()
  const isThere = cursor.value !== undefined && rows.has(cursor.value)
  useKeys((action) => {
    if (action.is === "option" || action.is === "go") return false
    if (move(action.is)) return true
    if (action.is === "filter") {
      input.current?.focus()
      input.current?.select()
      return true
    }
    if (action.is === "back") {
      if (filter.peek() === "") cursor.value = undefined
      else filter.value = ""
      return true
    }
    const row = chosen()
    return row !== undefined && onRow(action, row)
  })
  useEffect(() => {
    if (!isThere && !phone) cursor.value = moved(items.peek(), undefined, 1)
  }, [isThere, list.length > 0, phone])
  return (
    <div class="page board">
      <header class="top">
        <h1>Board</h1>
        <Summary />
        <Filter input={input} />
      </header>
      <div class="split">
        <section class="list" aria-label="Agents, sessions, goals, channels">
          <Cols />
          {list.length === 0 ? (
            isWhole.value ? (
              <Nothing />
            ) : (
              <Loading />
            )
          ) : (
            <Virtual
              count={list.length}
              heightOf={heightOf(list, phone)}
              label="Board"
              to={list.findIndex((item) => item.is === "row" && item.id === cursor.value)}
            >
              {(n) => {
                const item = list[n]!
                if (item.is === "group") return <GroupHead key={item.group} group={item.group} count={item.count} />
                if (item.is === "ghost") return <div key={`${item.group} ${item.n}`} class="row" aria-hidden="true" />
                return <Row key={item.id} id={item.id} />
              }}
            </Virtual>
          )}
          <OtherHosts />
        </section>
        {isThere && !phone && <Peek id={cursor.value!} key={cursor.value!} />}
      </div>
    </div>
  )
}
