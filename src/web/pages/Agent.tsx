/**
 * Agent: shows an agent's live conversation, or the changes that the agent has made. A side panel explains the agent's
 * state, and shows its state machine, its spending and its runs.
 *
 * Guarantees: the end of the conversation stays visible as it grows, unless the user has scrolled up.
 */
import { signal, useSignal } from "@preact/signals"
import type { ComponentChildren } from "preact"
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import type { BoardRow } from "../../domain/BoardMessages.ts"
import type { Rune } from "../../core/event-log/Rune.ts"
import type { CostRow } from "../../board/CostMessages.ts"
import * as PageActions from "../PageActions.ts"
import * as Api from "../Api.ts"
import { Changes } from "../Changes.tsx"
import { Chat } from "../Chat.tsx"
import { useKeys } from "../KeyMap.ts"
import { Machine } from "../Machine.tsx"
import type { PageProps } from "../Pages.ts"
import { useAnswer } from "../VerbQuery.ts"
import { go, hrefTo } from "../Router.ts"
import { focusSend, Send } from "../Send.tsx"
import { mayAct, rowNamed } from "../BoardStore.ts"
import { Remedies, WhyStory } from "../WhyStory.tsx"
import { type Item, KINDS, type RunOf, type Said, ChatItems } from "../ChatItems.ts"
import { now } from "../Time.ts"
import { span } from "../../domain/StatusWords.ts"
import {
  Bar,
  big,
  Clock,
  Command,
  Context,
  Empty,
  Errors,
  Failed,
  Glyph,
  Kbd,
  Loading,
  NoRow,
  RowTitle,
  usd
} from "../Ui.tsx"

/**
 * Number of newest runes to load at first. Each time the user asks for older ones, the number is multiplied by four.
 */
const TAIL = 600
const MOST = 10_000

interface Heard {
  readonly items: ReadonlyArray<Item>
  readonly runs: ReadonlyArray<RunOf>
  readonly isThere: boolean
  /** Number of runes that have arrived so far. */
  readonly count: number
  readonly problem?: Api.Problem
}

/** Loads the agent's newest runes, then adds later ones as they arrive. */
const useTalk = (name: string, tail: number): Heard => {
  const heard = useSignal<Heard>({ items: [], runs: [], isThere: false, count: 0 })
  useEffect(() => {
    const talk = new ChatItems()
    const abort = new AbortController()
    let isDue = false
    let count = 0
    const show = () => {
      isDue = false
      heard.value = { items: talk.items, runs: talk.runs, isThere: true, count }
    }
    // render only once for all runes that arrive together
    const due = () => {
      if (!isDue) queueMicrotask(show)
      isDue = true
    }
    const listener: Api.Listener<Rune> = {
      heard: (rune) => {
        talk.feed(rune)
        count++
        due()
      },
      up: () => setTimeout(due, 300),
      down: (problem) => {
        if (problem.status === 409) heard.value = { ...heard.peek(), isThere: true, problem }
      }
    }
    const query = new URLSearchParams({ agent: name, tail: String(tail), kinds: KINDS.join(",") })
    void Api.listen<Rune>(`/events?${query}`, listener, abort.signal, true)
    return () => abort.abort()
  }, [name, tail])
  return heard.value
}

const Part = ({
  children,
  note,
  title
}: {
  readonly title: string
  readonly note?: ComponentChildren
  readonly children: ComponentChildren
}) => (
  <section class="part">
    <h2 class="label">
      {title}
      {note !== undefined && <span>{note}</span>}
    </h2>
    {children}
  </section>
)

const Spent = ({ row }: { readonly row: BoardRow }) => {
  const costs = useAnswer<ReadonlyArray<CostRow>>("Costs", { by: ["agent"], since: "" }, row.today?.tokens ?? 0)
  const all = costs.value?.find(({ agent }) => agent === `${row.project}/${row.name}`)
  const cached = all === undefined || all.input === 0 ? undefined : all.cacheRead / all.input
  return (
    <dl class="facts">
      {row.context !== null && (
        <>
          <dt>Context</dt>
          <dd class="line">
            {row.context.window !== undefined && <Context context={row.context} wide />}
            <span class="num">
              {big(row.context.used)}
              {row.context.window !== undefined && ` of ${big(row.context.window)}`}
            </span>
          </dd>
        </>
      )}
      <dt>Today</dt>
      <dd class="num">
        {row.today === null || (row.today.usd === 0 && row.today.tokens === 0)
          ? "nothing"
          : `${row.today.usd > 0 ? `${usd(row.today.usd)} USD, ` : ""}${big(row.today.tokens)} tokens`}
      </dd>
      {all !== undefined && (
        <>
          <dt>Total</dt>
          <dd class="num">
            {all.usd > 0 && `${usd(all.usd)} USD, `}
            {big(all.input)} in, {big(all.output)} out
          </dd>
        </>
      )}
      {cached !== undefined && cached > 0 && (
        <>
          <dt>Cache</dt>
          <dd class="line">
            <Bar part={cached} wide label={`${Math.round(cached * 100)} % of the input came from a cache`} />
            <span class={cached < 0.6 ? "num strong" : "num"}>{Math.round(cached * 100)} % of the input</span>
          </dd>
        </>
      )}
    </dl>
  )
}

const Inbox = ({ items }: { readonly items: ReadonlyArray<Item> }) => (
  <>
    {items
      .filter((item): item is Said => item.is === "said" && item.isWaiting)
      .map(({ at, by, key, text }) => (
        <p key={key} class="inboxed told">
          <b>{by}</b> <Clock at={at} />
          <br />
          {text.slice(0, 400)}
        </p>
      ))}
  </>
)

const Runs = ({ runs }: { readonly runs: ReadonlyArray<RunOf> }) => (
  <table class="runs">
    <thead class="hidden">
      <tr>
        <th>Began</th>
        <th>Lasted</th>
        <th>Ended</th>
        <th>Cost</th>
      </tr>
    </thead>
    <tbody>
      {runs.slice(0, 12).map(({ began, end, ended, id, isBad, tokens, turns, usd: spent }) => (
        <tr key={id} title={`${turns} turns`}>
          <td>
            <Clock at={began} />
          </td>
          <td class="num">{span((ended ?? now.value) - began)}</td>
          <td class="clip">
            {ended === undefined ? (
              <span class="c-work">now</span>
            ) : (
              <span class={isBad ? "c-failed" : "muted"} title={end}>
                {end}
              </span>
            )}
          </td>
          <td class="num">{spent > 0 ? usd(spent) : tokens > 0 ? big(tokens) : ""}</td>
        </tr>
      ))}
    </tbody>
  </table>
)

const Ends = ({ row }: { readonly row: BoardRow }) =>
  !mayAct.value ? null : (
    <span class="acts">
      {(["interrupt", "restart", "stop"] as const).map((what) => (
        <button key={what} type="button" class="btn quiet-btn" onClick={() => void PageActions.end(what, row)}>
          {what[0]!.toUpperCase() + what.slice(1)}
          <Kbd>{PageActions.ENDINGS[what].key}</Kbd>
        </button>
      ))}
    </span>
  )

const Rail = ({ heard, row }: { readonly row: BoardRow; readonly heard: Heard }) => {
  const waiting = heard.items.filter((item) => item.is === "said" && item.isWaiting).length
  return (
    <aside class="rail" tabIndex={0} aria-label="Why and state">
      <Part title="Why">
        <WhyStory row={row} />
        <Remedies commands={row.asks.length > 0 ? [] : row.commands} />
      </Part>
      <Part title="Spent" note={row.model}>
        <Spent row={row} />
      </Part>
      <Part title="Inbox" note={row.inbox === 0 ? "empty" : `${row.inbox} waiting`}>
        {waiting > 0 && <Inbox items={heard.items} />}
      </Part>
      <Part title="Runs" note={row.runs > 0 ? row.runs : undefined}>
        <Runs runs={heard.runs} />
      </Part>
      <div class="part phone-acts">
        <Ends row={row} />
      </div>
      <Part title="Location">
        <dl class="facts">
          {row.branch !== null && (
            <>
              <dt>Branch</dt>
              <dd>
                <code>{row.branch}</code>
              </dd>
            </>
          )}
          {row.cwd !== null && (
            <>
              <dt>Folder</dt>
              <dd>
                <code>{row.cwd}</code>
              </dd>
            </>
          )}
          {row.pid !== null && (
            <>
              <dt>Process</dt>
              <dd class="num">{row.pid}</dd>
            </>
          )}
        </dl>
      </Part>
      <details class="part">
        <summary class="faint">State machine</summary>
        <Machine name="worker" lit={row.state} />
      </details>
    </aside>
  )
}

/** Distance in px from the end of the conversation within which it counts as scrolled to the end. */
const NEAR = 60

const Conversation = ({
  heard,
  more,
  row
}: {
  readonly row: BoardRow
  readonly heard: Heard
  readonly more: (() => void) | undefined
}) => {
  const box = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  const { isThere, items, problem } = heard
  useLayoutEffect(() => {
    const element = box.current
    if (element !== null && isAtEnd.current) element.scrollTop = element.scrollHeight
  }, [items, isThere])
  useLayoutEffect(() => {
    const element = box.current
    if (element === null) return
    const sizes = new ResizeObserver(() => {
      if (isAtEnd.current) element.scrollTop = element.scrollHeight
    })
    sizes.observe(element)
    return () => sizes.disconnect()
  }, [isThere])
  const onScroll = ({ currentTarget }: preact.TargetedEvent<HTMLDivElement>) => {
    const { clientHeight, scrollHeight, scrollTop } = currentTarget
    isAtEnd.current = scrollHeight - scrollTop - clientHeight < NEAR
  }
  if (!isThere) return <Loading />
  if (problem !== undefined && items.length === 0) return <Failed problem={problem} />
  return (
    <div class="talk scroll" ref={box} onScroll={onScroll} tabIndex={0} role="region" aria-label="Conversation">
      <div class="talk-in">
        {more !== undefined && (
          <button type="button" class="btn quiet-btn earlier" onClick={more}>
            Earlier
          </button>
        )}
        {items.length === 0 && (
          <Empty title="No messages yet">
            <p>Send the agent a message:</p>
            <Command>{`agentd send ${row.called} "…"`}</Command>
          </Empty>
        )}
        <Chat items={items} name={row.name} />
        {row.word === "working" && (
          <p class="doing">
            <Glyph word="working" size={14} />
            {row.says}
          </p>
        )}
      </div>
    </div>
  )
}

type Tab = "talk" | "changes" | "state"
const TABS: ReadonlyArray<readonly [Tab, string]> = [
  ["talk", "Conversation"],
  ["changes", "Changes"],
  ["state", "Why and state"]
]
const tabs = signal<{ readonly [name: string]: Tab }>({})

const Switch = ({ set, tab }: { readonly tab: Tab; readonly set: (tab: Tab) => void }) => (
  <div class="switch" role="group" aria-label="What is shown">
    {TABS.map(([of, title]) => (
      <button key={of} type="button" class={`to-${of}`} aria-pressed={tab === of} onClick={() => set(of)}>
        {title}
        {of === "changes" && <Kbd>v</Kbd>}
      </button>
    ))}
  </div>
)

const Top = ({ row, set, tab }: { readonly row: BoardRow; readonly tab: Tab; readonly set: (tab: Tab) => void }) => (
  <header class="top">
    <RowTitle row={row} />
    <Errors errors={row.errors} />
    <Switch tab={tab} set={set} />
    <span class="grow" />
    <Ends row={row} />
  </header>
)

const Shown = ({ row }: { readonly row: BoardRow }) => {
  const [tail, setTail] = useState(TAIL)
  const heard = useTalk(row.called, tail)
  const tab = tabs.value[row.id] ?? "talk"
  const set = (to: Tab) => {
    tabs.value = { ...tabs.peek(), [row.id]: to }
  }
  useKeys((action) => {
    switch (action.is) {
      case "back":
        if (tab === "talk") go(hrefTo(""))
        else set("talk")
        return true
      case "diff":
        set(tab === "changes" ? "talk" : "changes")
        return true
      case "approve":
      case "deny":
        if (row.word === "needs you") go(hrefTo("needs", row.asks[0]))
        return true
      case "send":
        if (tab !== "talk") set("talk")
        return focusSend()
      case "interrupt":
      case "restart":
      case "stop":
        return PageActions.end(action.is, row)
      default:
        return false
    }
  })
  const more = tail < MOST && heard.count >= tail ? () => setTail(Math.min(MOST, tail * 4)) : undefined
  return (
    <div class={`page agent tab-${tab}`}>
      <Top row={row} tab={tab} set={set} />
      <div class="split">
        <div class="talk-col">
          {tab === "changes" ? (
            <Changes name={row.called} when={`${row.word} ${row.restsOn}`} />
          ) : (
            <>
              <Conversation row={row} heard={heard} more={more} />
              <div class="composer">
                <Send name={row.called} />
              </div>
            </>
          )}
        </div>
        <Rail row={row} heard={heard} />
      </div>
    </div>
  )
}

export const Agent = ({ rest }: PageProps) => {
  const row = rowNamed("agent", rest)?.value
  return row === undefined ? (
    <NoRow name={rest} says={`No agent is called ${rest}`} />
  ) : (
    <Shown row={row} key={row.id} />
  )
}
