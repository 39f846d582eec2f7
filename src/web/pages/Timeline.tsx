/**
 * Timeline: shows all runes and their causes: a histogram of the selected time range, then the list of runes, with arcs
 * from each rune to its cause.
 *
 * Guarantees: only the visible runes are requested, by their position, however many there are. Old rows stay until the
 * new ones arrive. The list follows new runes only if it is scrolled to its end.
 */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks"
import type { Causes, TimelinePage, TimelineRow } from "../../board/TimelineMessages.ts"
import * as Api from "../Api.ts"
import { useKeys } from "../KeyMap.ts"
import { useNews } from "../RefreshTimer.ts"
import type { PageProps } from "../Pages.ts"
import { RowWindow, SIZE } from "../RowWindow.ts"
import { useAnswer } from "../VerbQuery.ts"
import { amend, go, hrefTo } from "../Router.ts"
import { head } from "../BoardStore.ts"
import { stamp } from "../Time.ts"
import { Empty, grouped, Kbd, useView } from "../Ui.tsx"
import { type Range, TimeRange, useRange } from "./TimeRange.tsx"

const HIGH = 26
/** Number of rows above and below the visible part that are also rendered. */
const MORE = 8
/**
 * Maximum number of runes in the list. If there are more, only the newest are listed. The limit exists because browsers
 * support heights of at most about 33 million pixels.
 */
const MOST = 1_200_000
const WIDE = 72
const KNOT = WIDE - 6

/**
 * Parses a filter such as `agent:builder kind:tool. kind:turn.started stream:shop-1 is:internal`. A word without a
 * colon is an agent, or a kind if it contains a dot. Pure.
 */
export const readQuery = (text: string) => {
  const words = text.split(/\s+/).filter(Boolean)
  const of = (name: string) =>
    words.flatMap((word) => (word.startsWith(`${name}:`) ? [word.slice(name.length + 1)] : []))
  const plain = words.filter((word) => !/^(agent|kind|stream|is):/.test(word))
  const kinds = [...of("kind"), ...plain.filter((word) => word.includes("."))].filter((kind) => kind !== "")
  const agent = [...of("agent"), ...plain.filter((word) => !word.includes("."))].find((name) => name !== "")
  const stream = of("stream").find((name) => name !== "")
  return {
    ...(agent === undefined ? {} : { agent }),
    ...(stream === undefined ? {} : { stream }),
    ...(kinds.length === 0 ? {} : { kinds }),
    ...(of("is").includes("internal") ? { internal: true } : {})
  }
}

const time = (at: number): string => `${stamp(at).slice(11)}.${Math.floor((at % 1_000) / 100)}`

interface Known {
  readonly total: number
  readonly more: boolean
  readonly density: TimelinePage["density"] | undefined
  readonly problem: Api.Problem | undefined
}
const NOTHING: Known = { total: 0, more: false, density: undefined, problem: undefined }

/** The rows that match a filter, by position. Rows are requested when they become visible. */
const useRunes = (query: string, range: Range, news: number) => {
  const [known, setKnown] = useState<Known>(NOTHING)
  const places = useRef(new RowWindow<TimelineRow>())
  const total = useRef(0)
  const ask = async (block: number | undefined): Promise<void> => {
    const own = places.current
    try {
      const from = block === undefined ? {} : { from: block * SIZE }
      const page = await Api.verb<TimelinePage>("Timeline", { ...readQuery(query), ...range, n: SIZE, ...from })
      if (own !== places.current) return
      own.take(page.rows, block)
      total.current = page.total
      setKnown({ total: page.total, more: page.more, density: page.density, problem: undefined })
      next()
    } catch (error) {
      if (own !== places.current) return
      if (block !== undefined) own.failed(block)
      const problem = error instanceof Api.Refused ? error.problem : { status: 500, error: String(error), remedy: "" }
      setKnown((before) => ({ ...before, problem }))
    }
  }
  const next = () => {
    const block = places.current.ask(total.current)
    if (block === undefined) return
    void ask(block)
    next()
  }
  useEffect(() => {
    places.current = new RowWindow()
    total.current = 0
    setKnown(NOTHING)
    void ask(undefined)
  }, [query, range])
  useEffect(() => {
    if (news > 0) void ask(undefined)
  }, [news])
  /** Requests the missing rows between these positions. */
  const need = (first: number, last: number) => {
    places.current.see(first, last)
    next()
  }
  return { known, rows: places.current.rows, need }
}

/** Arcs between visible runes and their causes. An arc to a cause above the visible part ends just above the top. */
const Arcs = ({
  first,
  lit,
  shown
}: {
  readonly shown: ReadonlyArray<TimelineRow | undefined>
  readonly first: number
  readonly lit: ReadonlySet<number>
}) => {
  const at = new Map(shown.flatMap((row, n) => (row === undefined ? [] : [[`${row.stream}#${row.seq}`, n] as const])))
  const middle = (n: number) => n * HIGH + HIGH / 2
  return (
    <svg
      class="causes"
      width={WIDE}
      height={Math.max(1, shown.length * HIGH)}
      aria-hidden="true"
      style={{ top: `${first * HIGH}px` }}
    >
      {shown.map((row, n) => {
        if (row?.cause == null) return null
        const from = at.get(`${row.cause.stream}#${row.cause.seq}`)
        const [y, y0] = [middle(n), from === undefined ? -10 : middle(from)]
        const out = Math.min(KNOT - 8, 8 + (y - y0) / 7)
        return (
          <path
            key={row.eventId}
            class={lit.has(row.eventId) ? "arc lit" : "arc"}
            d={`M${KNOT} ${y0}C${KNOT - out} ${y0} ${KNOT - out} ${y} ${KNOT} ${y}`}
          />
        )
      })}
      {shown.map((row, n) =>
        row === undefined ? null : (
          <circle key={n} class={lit.has(row.eventId) ? "knot lit" : "knot"} cx={KNOT} cy={middle(n)} r="2.5" />
        )
      )}
    </svg>
  )
}

const moved = ({ from, to, trigger }: TimelineRow): string =>
  from !== null && from !== to ? `${from} → ${to}` : (trigger ?? "")

interface RowProps {
  readonly row: TimelineRow
  readonly isOn: boolean
  readonly isLit: boolean
  readonly choose: () => void
}
const Row = ({ choose, isLit, isOn, row }: RowProps) => (
  <button
    type="button"
    tabIndex={-1}
    class={`rune-row${isOn ? " on" : ""}${isLit ? " lit" : ""}`}
    aria-pressed={isOn}
    onClick={choose}
  >
    <span class="num faint">{time(row.at)}</span>
    <span class="num faint id">{row.eventId}</span>
    <span class="actor clip">{row.actor}</span>
    <span class="kind clip">{row.kind}</span>
    <span class="moved faint clip">{moved(row)}</span>
    <span class="told-line clip">{row.says}</span>
  </button>
)

/** A histogram of the time range. A click scrolls the list to that time. */
const Density = ({
  density,
  jump,
  when
}: {
  readonly density: TimelinePage["density"] | undefined
  readonly jump: (place: number) => void
  readonly when: string
}) => {
  const counts = density?.counts ?? []
  const most = Math.max(1, ...counts)
  const sum = counts.reduce((a, b) => a + b, 0)
  const bars = useMemo(
    () =>
      counts.map((count, n) => (
        <rect key={n} x={n + 0.12} width=".76" y={28 - (count / most) * 26} height={(count / most) * 26} />
      )),
    [density]
  )
  return (
    <svg
      class="density"
      viewBox="0 0 120 28"
      preserveAspectRatio="none"
      role="img"
      aria-label={`${sum} runes ${when}`}
      onClick={({ currentTarget, offsetX }) => {
        const at = Math.floor((offsetX / currentTarget.clientWidth) * 120)
        const place = density?.places[Math.max(0, Math.min(119, at))]
        if (place !== undefined) jump(place)
      }}
    >
      {bars}
    </svg>
  )
}

const facts = (row: TimelineRow): ReadonlyArray<readonly [string, string]> => [
  ["Kind", row.kind],
  ["Actor", row.actor],
  ["Moved", `${row.from ?? "none"} → ${row.to ?? "none"}`],
  ["Trigger", row.trigger ?? "none"],
  ["Stream", `${row.stream} #${row.seq}`],
  ["Time", stamp(row.at)]
]

const Rail = ({
  causes: { chain, more, rune },
  choose
}: {
  readonly causes: Causes
  readonly choose: (row: TimelineRow) => void
}) =>
  rune === null ? null : (
    <aside class="rail" tabIndex={0} aria-label="Rune">
      <section class="part">
        <h2 class="label">
          Rune <span class="num">{rune.eventId}</span>
        </h2>
        <dl class="facts">
          {facts(rune).map(([name, value]) => (
            <>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </>
          ))}
        </dl>
      </section>
      <section class="part">
        <h2 class="label">What led to it</h2>
        <ol class="why chain">
          {more && (
            <li>
              <span class="faint">…</span>
              <span class="faint">earlier causes</span>
            </li>
          )}
          {chain.map((row) => (
            <li key={row.eventId} class={row.eventId === rune.eventId ? "is" : ""}>
              <span class="num faint">{row.eventId}</span>
              <button type="button" class="linkish" onClick={() => choose(row)}>
                {row.actor} {row.kind}
                {row.says !== "" && <span class="muted"> {row.says}</span>}
              </button>
            </li>
          ))}
        </ol>
      </section>
      <section class="part">
        <h2 class="label">Payload</h2>
        <pre class="payload" tabIndex={0} role="region" aria-label="Payload">
          {rune.payload}
        </pre>
      </section>
    </aside>
  )

/** The visible part of a long list. If the list is scrolled to its end, it follows new rows. */
const useWindow = (count: number) => {
  const box = useRef<HTMLDivElement>(null)
  const { read, view } = useView(HIGH * 8)
  const isAtEnd = useRef(true)
  useLayoutEffect(() => {
    const element = box.current!
    const look = () => {
      isAtEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < HIGH
      read(element)
    }
    const sizes = new ResizeObserver(look)
    sizes.observe(element)
    element.addEventListener("scroll", look, { passive: true })
    return () => {
      sizes.disconnect()
      element.removeEventListener("scroll", look)
    }
  }, [])
  useLayoutEffect(() => {
    if (isAtEnd.current) box.current!.scrollTop = box.current!.scrollHeight
  }, [count])
  const first = Math.max(0, Math.floor(view.top / HIGH) - MORE)
  const last = Math.min(count, Math.ceil((view.top + view.height) / HIGH) + MORE)
  const scroll = (to: number) => void (box.current!.scrollTop = to)
  /** Scrolls so that a row is visible. `centred`: the row is not placed near the edges. */
  const show = (n: number, centred: boolean) => {
    const y = n * HIGH
    const { clientHeight: height, scrollTop: top } = box.current!
    if (centred) scroll(Math.max(0, y - height / 3))
    else if (y < top + HIGH) scroll(y - HIGH)
    else if (y + 2 * HIGH > top + height) scroll(y + 2 * HIGH - height)
  }
  const toEnd = () => {
    isAtEnd.current = true
    scroll(box.current!.scrollHeight)
  }
  return { box, first, last, scroll, show, toEnd }
}

interface ListProps {
  readonly window: ReturnType<typeof useWindow>
  readonly count: number
  readonly shown: ReadonlyArray<TimelineRow | undefined>
  readonly chosen: number | null
  readonly lit: ReadonlySet<number>
  readonly choose: (eventId: number | null) => void
}
const List = ({ choose, chosen, count, lit, shown, window: { box, first } }: ListProps) => (
  <div class="runes-scroll" ref={box} tabIndex={0} role="region" aria-label="Runes, oldest first">
    <div class="runes-in" style={{ height: `${count * HIGH}px` }}>
      <Arcs shown={shown} first={first} lit={lit} />
      <div class="runes-rows" style={{ top: `${first * HIGH}px` }}>
        {shown.map((row, n) =>
          row === undefined ? (
            <div key={`${first + n}`} class="rune-row ghost" />
          ) : (
            <Row
              key={row.eventId}
              row={row}
              isOn={row.eventId === chosen}
              isLit={lit.has(row.eventId)}
              choose={() => choose(row.eventId === chosen ? null : row.eventId)}
            />
          )
        )}
      </div>
    </div>
  </div>
)

const Found = ({ known: { density, problem, total } }: { readonly known: Known }) => {
  if (problem !== undefined)
    return (
      <p class="part c-failed">
        {problem.error} <span class="muted">{problem.remedy}</span>
      </p>
    )
  return total > 0 || density === undefined ? null : (
    <Empty title="No rune matches">
      <p>
        Try <code>agent:builder</code> or <code>kind:worker.</code>, or another time.
      </p>
    </Empty>
  )
}

/** The time range as text, for the histogram. Pure. */
const wordsOf = ({ since, until }: Range): string => {
  if (since === undefined && until === undefined) return "in the last hour, by half minutes"
  const from = since === undefined ? "" : ` from ${stamp(since)}`
  return `${from}${until === undefined ? "" : ` to ${stamp(until)}`}`.trim()
}

interface HeadProps {
  readonly known: Known
  readonly query: string
  readonly setQuery: (query: string) => void
  readonly times: URLSearchParams
  readonly setTimes: (query: URLSearchParams) => void
  readonly isPart: boolean
  readonly input: preact.RefObject<HTMLInputElement | null>
}
const Head = ({ input, isPart, known, query, setQuery, setTimes, times }: HeadProps) => (
  <header class="top">
    <h1>Timeline</h1>
    <span class="num muted clip">
      {known.more && "the newest "}
      {grouped(known.total)} runes
      {isPart && head.value !== undefined && ` of ${grouped(head.value.rune)}`}
    </span>
    <TimeRange query={times} set={setTimes} />
    <label class="filter wide">
      <input
        ref={input}
        value={query}
        spellcheck={false}
        onInput={(event) => setQuery(event.currentTarget.value)}
        placeholder="agent:builder kind:tool."
        aria-label="Filter"
      />
      <Kbd>/</Kbd>
    </label>
  </header>
)

const queryIn = (given: URLSearchParams): string => {
  const agent = given.get("agent")
  return given.get("q") ?? (agent === null ? "" : `agent:${agent}`)
}

export const Timeline = ({ query: given }: PageProps) => {
  const query = queryIn(given)
  const setQuery = (words: string) => {
    const next = new URLSearchParams(given)
    next.delete("agent")
    if (words === "") next.delete("q")
    else next.set("q", words)
    amend(next)
  }
  const range = useRange(given)
  const isPart = query !== "" || range.since !== undefined || range.until !== undefined
  const [chosen, choose] = useState<number | null>(Number(given.get("rune") ?? 0) || null)
  const { known, need, rows } = useRunes(query, range, useNews(1_000))
  const input = useRef<HTMLInputElement>(null)
  const offset = Math.max(0, known.total - MOST)
  const count = known.total - offset
  const window = useWindow(count)
  const { first, last, scroll, show, toEnd } = window
  const { value: causes } = useAnswer<Causes>(
    "Causes",
    { eventId: chosen ?? 0, internal: readQuery(query).internal ?? false },
    chosen
  )
  const lit = new Set(chosen === null ? [] : (causes?.chain ?? []).map(({ eventId }) => eventId))
  useEffect(() => {
    if (count > 0) need(offset + first, offset + last)
  }, [first, last, count, query, range])
  const shown = Array.from({ length: Math.max(0, last - first) }, (_, n) => rows.get(offset + first + n))
  const step = (by: number) => {
    const at = shown.findIndex((row) => row?.eventId === chosen)
    const next = shown[at < 0 ? Math.min(shown.length - 1, MORE + 2) : at + by]
    if (next === undefined) return
    choose(next.eventId)
    show(next.place - offset, false)
  }
  useKeys(({ is }) => {
    if (is === "filter") input.current?.focus()
    else if (is === "back" && chosen !== null) choose(null)
    else if (is === "back" && query !== "") setQuery("")
    else if (is === "back") go(hrefTo(""))
    else if (is === "first") scroll(0)
    else if (is === "last") toEnd()
    else if (is === "down" || is === "up") step(is === "down" ? 1 : -1)
    else return false
    return true
  })
  return (
    <div class="page timeline">
      <Head
        known={known}
        query={query}
        setQuery={setQuery}
        input={input}
        times={given}
        setTimes={amend}
        isPart={isPart}
      />
      <Density density={known.density} jump={(place) => show(place - offset, true)} when={wordsOf(range)} />
      <div class="split">
        <section class="runes-list" aria-label="Runes">
          <Found known={known} />
          <List window={window} count={count} shown={shown} chosen={chosen} lit={lit} choose={choose} />
        </section>
        {chosen !== null && causes !== undefined && <Rail causes={causes} choose={({ eventId }) => choose(eventId)} />}
      </div>
    </div>
  )
}
