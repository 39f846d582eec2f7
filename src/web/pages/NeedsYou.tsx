/**
 * NeedsYou: shows the items that wait for a user, one at a time, with the queue next to them.
 *
 * Guarantees: a user approves exactly what was shown: the whole call, by its hash. A key or click counts only after the
 * call has been visible for a moment, because the next call appears at the same position.
 */
import { computed } from "@preact/signals"
import { useLayoutEffect, useRef, useState } from "preact/hooks"
import type { AskedCall } from "../../domain/Messages.ts"
import { span } from "../../domain/StatusWords.ts"
import { batchTitle, groupsOf, type WaitingGroup } from "../../board/WaitingGroups.ts"
import type { WaitingReply, WaitingRow } from "../../board/WaitingMessages.ts"
import { act, VIEW_ONLY } from "../PageActions.ts"
import { briefOf, Call } from "../Call.tsx"
import { useKeys } from "../KeyMap.ts"
import type { PageProps } from "../Pages.ts"
import { useAnswer, useAnswers } from "../VerbQuery.ts"
import { go, hrefOf, hrefTo } from "../Router.ts"
import { mayAct, ordered, right, rows } from "../BoardStore.ts"
import { now } from "../Time.ts"
import { Empty, Failed, Glyph, Kbd, Loading, Since } from "../Ui.tsx"
import { Approve, type Read, useSettled, useWhole } from "../Whole.tsx"
import { Choices } from "./Choices.tsx"
import { Lasting, Parts } from "./Lasting.tsx"
import { WaitingItem } from "./WaitingItem.tsx"
import { Who } from "./Board.tsx"

/** The id of the call or permission request to decide; undefined if the item cannot be decided on this page. */
export const askOf = ({ id, kind }: WaitingRow): string | undefined => {
  if (kind !== "approval" && kind !== "question") return undefined
  const [what, name] = id.split("/")
  return what === "call" || what === "plate" ? name : undefined
}

const rowOf = ({ of }: WaitingRow) => (of === undefined ? undefined : rows.get(of)?.value)

/** A text that changes whenever an item starts or stops waiting for the user. */
const waits = computed(() => {
  void ordered.value
  return [...rows.values()]
    .map((row) => row.value)
    .filter(({ word }) => word === "needs you")
    .map(({ asks, id, restsOn, since }) => `${id} ${since} ${restsOn} ${asks.join()}`)
    .join("\n")
})

const Times = ({ row: { since, until } }: { readonly row: Pick<WaitingRow, "since" | "until"> }) => {
  const left = until === null ? undefined : until - now.value
  return (
    <span class="times num muted">
      {since > 0 && <>{span(now.value - since)} ago</>}
      {left !== undefined && <span class={left < 120_000 ? "c-failed" : ""}> · {span(left)} left</span>}
    </span>
  )
}

const Head = ({ row, title }: { readonly row: WaitingRow; readonly title: string }) => {
  const board = rowOf(row)
  return (
    <header>
      <p class="line">
        <Glyph word="needs you" />
        {board === undefined ? (
          <b class="clip">{row.who}</b>
        ) : (
          <a href={hrefOf(board)} class="clip">
            <Who row={board} />
          </a>
        )}
        <span class="grow" />
        <Times row={row} />
      </p>
      <h2>{title}</h2>
    </header>
  )
}

const Deny = ({ deny, cancel }: { readonly deny: (reason: string) => void; readonly cancel: () => void }) => {
  const input = useRef<HTMLInputElement>(null)
  useLayoutEffect(() => input.current?.focus(), [])
  return (
    <form
      class="deny"
      onSubmit={(event) => {
        event.preventDefault()
        deny(input.current?.value ?? "")
      }}
      onKeyDown={(event) => event.key === "Escape" && cancel()}
    >
      <input
        ref={input}
        placeholder="Why not? The agent reads this and continues."
        aria-label="Why not"
        maxLength={2_000}
      />
      <button class="btn danger">
        Deny<Kbd>↵</Kbd>
      </button>
      <button type="button" class="btn quiet-btn" onClick={cancel}>
        Cancel<Kbd>Esc</Kbd>
      </button>
    </form>
  )
}

interface OneProps {
  readonly group: WaitingGroup
  readonly next: () => void
  /** Shows one call of the group by itself. */
  readonly pick: (row: WaitingRow) => void
}

const Facts = ({ asked }: { readonly asked: AskedCall }) => (
  <dl class="facts">
    {asked.reason !== null && asked.reason !== "" && asked.reason !== briefOf(asked.input) && (
      <>
        <dt>Why it asks</dt>
        <dd>{asked.reason}</dd>
      </>
    )}
    <dt>Runs in</dt>
    <dd>
      <code>{asked.folder}</code>
    </dd>
    <dt>Call</dt>
    <dd>
      <code>{asked.id}</code>{" "}
      <code class="faint hash" title={asked.hash}>
        sha256 {asked.hash.slice(0, 8)} {asked.hash.slice(8, 16)} {asked.hash.slice(16, 24)} {asked.hash.slice(24, 32)}
      </code>
    </dd>
  </dl>
)

interface LeaveProps extends Pick<OneProps, "next"> {
  readonly asked: AskedCall
  /** Calls of the same kind, which an approval covers, too. */
  readonly others: ReadonlyArray<AskedCall>
  /** Loads the calls again, after an answer was refused. */
  readonly again: () => void
  readonly isSettled: () => boolean
  readonly read: Read
}
const Leave = ({ again, asked, isSettled, next, others, read }: LeaveProps) => {
  const [isDenying, setDenying] = useState(false)
  const [isLasting, setLasting] = useState(false)
  const canLast = (asked.offers ?? []).length > 0 && (asked.scopes ?? []).length > 0
  const isBusy = useRef(false)
  const answer = async (decision: "allow" | "deny", reason = "") => {
    if (!isSettled() || isBusy.current) return
    isBusy.current = true
    const { hash, id } = asked
    const also = others.map((one) => ({ name: one.id, hash: one.hash }))
    const seen = decision === "deny" ? {} : also.length === 0 ? { hash } : { hash, also }
    if (await act("Answer", { name: id, decision, reason, ...seen })) next()
    else again()
    isBusy.current = false
  }
  const approve = () => (read.isWhole ? void answer("allow") : read.goOn())
  const last = () => (read.isWhole ? setLasting(true) : read.goOn())
  useKeys(({ is }) => {
    if (is === "approve") approve()
    else if (is === "deny" && others.length === 0) setDenying(true)
    else if (is === "longer" && canLast) last()
    else return false
    return true
  })
  if (isDenying) return <Deny deny={(reason) => void answer("deny", reason)} cancel={() => setDenying(false)} />
  if (isLasting) return <Lasting asked={asked} next={next} cancel={() => setLasting(false)} />
  return (
    <div class="answers">
      <Approve read={read} approve={approve}>
        {others.length === 0 ? "Approve once" : `Approve all ${others.length + 1} once`}
      </Approve>
      {canLast && (
        <button type="button" class="btn large" onClick={last}>
          For longer …<Kbd>l</Kbd>
        </button>
      )}
      {others.length === 0 && (
        <button type="button" class="btn large" onClick={() => setDenying(true)}>
          Deny …<Kbd>d</Kbd>
        </button>
      )}
      <span class="grow" />
      <button type="button" class="btn quiet-btn large" onClick={next}>
        Later<Kbd>j</Kbd>
      </button>
    </div>
  )
}

interface WholeProps extends Pick<OneProps, "pick"> {
  readonly asked: AskedCall
  /** The row of the call, if further calls are shown with it. */
  readonly row: WaitingRow | undefined
}
const Whole = ({ asked, pick, row }: WholeProps) => (
  <>
    {row !== undefined && (
      <p class="line">
        <b class="clip grow">{row.who}</b>
        <button type="button" class="btn quiet-btn" onClick={() => pick(row)}>
          Decide alone
        </button>
      </p>
    )}
    <Call asked={asked} {...(row === undefined ? {} : { of: ` of ${asked.id}` })} />
    {asked.parts !== undefined && <Parts parts={asked.parts} />}
    <Facts asked={asked} />
  </>
)

interface DecidedProps extends OneProps {
  readonly names: readonly [string, ...ReadonlyArray<string>]
}
/** A call, a permission request of a session, or calls of one kind, with the buttons to decide about them. */
const Decided = ({ group, names, next, pick }: DecidedProps) => {
  const [tries, setTries] = useState(0)
  const { batch, rows: among } = group
  const payloads = names.map((name) => ({ name }))
  const { problem, value } = useAnswers<AskedCall>("Asked", payloads, `${among[0].since} ${tries}`)
  const shown = value?.map(({ hash }) => hash).join()
  const read = useWhole(shown)
  const isSettled = useSettled(read.isWhole ? shown : undefined)
  if (value === undefined) return problem === undefined ? <Loading /> : <Failed problem={problem} />
  const [asked, ...others] = value as [AskedCall, ...ReadonlyArray<AskedCall>]
  const { questions } = asked
  const title =
    batch !== undefined
      ? batchTitle(among, batch)
      : questions === undefined
        ? `Asks to run ${asked.tool}`
        : "Asks you to choose"
  return (
    <article class="one">
      <div class="fields" {...(questions === undefined ? { ref: read.box } : {})}>
        <Head row={among[0]} title={title} />
        {questions === undefined
          ? value.map((one, n) => (
              <Whole key={one.id} asked={one} pick={pick} row={batch === undefined ? undefined : among[n]} />
            ))
          : asked.parts !== undefined && <Parts parts={asked.parts} />}
      </div>
      {!mayAct.value && right.value === "view" && <p class="muted">{VIEW_ONLY}</p>}
      {mayAct.value && questions === undefined && (
        <Leave
          asked={asked}
          others={others}
          isSettled={isSettled}
          next={next}
          again={() => setTries(tries + 1)}
          read={read}
        />
      )}
      {questions !== undefined && (
        <Choices asked={asked} questions={questions} isSettled={isSettled} next={next} read={read} />
      )}
    </article>
  )
}

/** The item's title. For a question without options, this is the question itself. */
const titleOf = ({ details, kind, text }: WaitingRow): string =>
  kind === "question" && details.length === 1 ? details[0]! : text.charAt(0).toUpperCase() + text.slice(1)

const One = (props: OneProps) => {
  const { group, next } = props
  const [row] = group.rows
  const [name, ...names] = group.rows.flatMap((one) => askOf(one) ?? [])
  if (name !== undefined) return <Decided {...props} names={[name, ...names]} />
  return (
    <article class="one">
      <Head row={row} title={titleOf(row)} />
      <WaitingItem row={row} board={rowOf(row)} next={next} />
    </article>
  )
}

const Queue = ({
  chosen,
  list,
  pick
}: {
  readonly list: ReadonlyArray<WaitingGroup>
  readonly chosen: WaitingRow
  readonly pick: (row: WaitingRow) => void
}) => (
  <ul class="queue scroll" aria-label="Waiting">
    {list.map(({ batch, rows: [row, ...others] }) => (
      <li key={row.id}>
        <button type="button" aria-current={row.id === chosen.id ? "true" : undefined} onClick={() => pick(row)}>
          <span class="line">
            <b class="clip grow">{batch === undefined ? row.who : batchTitle([row, ...others], batch)}</b>
            <span class="small">
              <Since at={row.since} />
            </span>
          </span>
          {[row, ...others].map((one) => (
            <span key={one.id} class="muted clip small">
              {one.kind === "approval" || one.kind === "question" ? briefOf(one.details[0] ?? one.text) : one.text}
            </span>
          ))}
        </button>
      </li>
    ))}
  </ul>
)

const useQueue = () => {
  const { problem, value } = useAnswer<WaitingReply>("Waiting", {}, waits.value)
  // leave out failed rows: they are on the board, but do not wait for an answer
  const waiting = value?.rows.filter((row) => {
    const board = rowOf(row)
    return board === undefined ? row.of === undefined : board.word === "needs you"
  })
  return { list: waiting === undefined ? undefined : groupsOf({ ...value, rows: waiting }), problem }
}

const at = (list: ReadonlyArray<WaitingGroup>, id: string): number =>
  Math.max(
    0,
    list.findIndex((group) =>
      group.rows.some((row) => row.id === id || row.of === id || (askOf(row) ?? "").startsWith(id))
    )
  )

export const NeedsYou = ({ rest }: PageProps) => {
  const { list, problem } = useQueue()
  const [id, setId] = useState(rest === "" ? "\n" : rest)
  /** Id of the row that is shown by itself, although its group has further ones. */
  const [alone, setAlone] = useState("")
  const index = list === undefined ? 0 : at(list, id)
  const group = list?.[index]
  const single = group?.rows.find((one) => one.id === alone)
  const shown = single === undefined ? group : { rows: [single] as const }
  const row = shown?.rows[0]
  const move = (by: number) => {
    const to = list?.[(index + by + list.length) % list.length]
    if (to !== undefined) setId(to.rows[0].id)
    setAlone("")
    return true
  }
  // keep the shown item: if another item is added before it in the queue, that one does not replace it
  useLayoutEffect(() => {
    if (row !== undefined && row.id !== id) setId(row.id)
  }, [row?.id])
  useKeys(({ is }) => {
    if (is === "down" || is === "up") return move(is === "down" ? 1 : -1)
    if (is === "open" && row !== undefined) {
      const board = rowOf(row)
      if (board !== undefined) go(hrefOf(board))
      return true
    }
    if (is !== "back") return false
    if (single === undefined) go(hrefTo(""))
    else setAlone("")
    return true
  })
  return (
    <div class="page needs">
      <header class="top">
        <h1>Needs you</h1>
        <span class="num muted">{list === undefined || row === undefined ? "" : `${index + 1} of ${list.length}`}</span>
      </header>
      {list === undefined ? (
        problem === undefined ? (
          <Loading />
        ) : (
          <Failed problem={problem} />
        )
      ) : shown === undefined || row === undefined ? (
        <Empty title="Nothing waits for you">
          <p>
            Questions and calls that need approval appear here, oldest first. Keep this page open: its title counts
            them.
          </p>
        </Empty>
      ) : (
        <div class="split">
          <Queue list={list} chosen={group?.rows[0] ?? row} pick={(one) => (setAlone(""), setId(one.id))} />
          <section class="stage scroll" aria-label="What is asked" tabIndex={0} key={row.id}>
            <One
              group={shown}
              key={`${row.id} ${shown.rows.length}`}
              next={() => move(1)}
              pick={(one) => setAlone(one.id)}
            />
          </section>
        </div>
      )}
    </div>
  )
}
