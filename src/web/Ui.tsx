/**
 * Ui: small components that all pages share: symbols, status words, amounts of money, ages, bars, lists, and the pages
 * for missing or refused data.
 *
 * Guarantees: each status word has a shape as well as a colour, so that users need not distinguish colours. Text from
 * outside is shown as plain text.
 */
import type { ComponentChildren, JSX } from "preact"
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import type { BoardRow } from "../domain/BoardMessages.ts"
import { LOOKS, phrase, span, type Word } from "../domain/StatusWords.ts"
import type { Problem } from "./Api.ts"
import { marked } from "./Foreign.ts"
import { hrefTo } from "./Router.ts"
import { isWhole, link } from "./BoardStore.ts"
import { clock, now, stamp } from "./Time.ts"

const line = { fill: "none", stroke: "currentColor", "stroke-width": "1.6", "stroke-linecap": "round" } as const
const onFill = { fill: "none", stroke: "var(--on)", "stroke-width": "1.6", "stroke-linecap": "round" } as const
const shapes: { readonly [word in Word]: JSX.Element } = {
  "needs you": (
    <>
      <path d="M8 .9 15.1 8 8 15.1.9 8Z" fill="currentColor" />
      <path d="M8 4.6v3.9M8 11v.4" {...onFill} />
    </>
  ),
  failed: (
    <>
      <circle cx="8" cy="8" r="6.6" fill="currentColor" />
      <path d="m5.8 5.8 4.4 4.4m0-4.4-4.4 4.4" {...onFill} />
    </>
  ),
  retrying: <path d="M13.2 8a5.2 5.2 0 1 1-1.6-3.7M13.4 1.9v3h-3" {...line} stroke-linejoin="round" />,
  waiting: (
    <>
      <circle cx="8" cy="8" r="5.7" {...line} />
      <path d="M8 4.9V8l2 1.4" {...line} stroke-linejoin="round" />
    </>
  ),
  working: (
    <>
      <circle cx="8" cy="8" r="5.7" {...line} opacity=".28" />
      <path class="spin" d="M8 2.3A5.7 5.7 0 0 1 11.4 12.6" {...line} stroke-width="1.8" />
    </>
  ),
  open: <circle cx="8" cy="8" r="5.7" {...line} stroke-dasharray=".2 3.4" />,
  paused: <path d="M5.6 3.6v8.8M10.4 3.6v8.8" {...line} stroke-width="1.9" />,
  idle: <circle cx="8" cy="8" r="5.6" {...line} stroke-width="1.5" stroke-dasharray="2.2 2.2" />,
  stopped: <rect x="4" y="4" width="8" height="8" rx="1" fill="currentColor" />,
  done: (
    <>
      <circle cx="8" cy="8" r="6.6" fill="currentColor" />
      <path d="m5 8.2 2.1 2.1L11 6.2" {...onFill} stroke-linejoin="round" />
    </>
  )
}

export const Glyph = ({ size = 16, word }: { readonly word: Word; readonly size?: number }) => (
  <svg
    class={`glyph c-${LOOKS[word].colour}`}
    width={size}
    height={size}
    viewBox="0 0 16 16"
    role="img"
    aria-label={word}
  >
    {shapes[word]}
  </svg>
)

/** A row's status word with its time, such as `retrying in 8 s`. */
export const Phrase = ({ row }: { readonly row: Pick<BoardRow, "word" | "until" | "reason"> }) => (
  <span class={`phrase c-${LOOKS[row.word].colour}`}>{phrase(row, row.until === null ? 0 : now.value)}</span>
)

/** The header of a page about one row: a link back, the row's name, and its status word. */
export const RowTitle = ({ row }: { readonly row: BoardRow }) => (
  <>
    <a href={hrefTo("")} class="back" aria-label="Board">
      ←
    </a>
    <Glyph word={row.word} />
    <h1>
      <span class="faint">{row.project}/</span>
      {row.name}
    </h1>
    <Phrase row={row} />
  </>
)

/** The time since a moment. When it changes, nothing else is rendered again. */
export const Since = ({ at }: { readonly at: number }) =>
  at === 0 ? (
    <span class="num faint" />
  ) : (
    <time class="num faint" dateTime={new Date(at).toISOString()} title={stamp(at)}>
      {span(now.value - at)}
    </time>
  )

export const Clock = ({ at }: { readonly at: number }) =>
  at === 0 ? null : (
    <time class="num faint clock" dateTime={new Date(at).toISOString()} title={stamp(at)}>
      {clock(at)}
    </time>
  )

/** A number with thin spaces between groups of thousands. Intl is not used, because its first use costs 20 ms. */
export const grouped = (n: number): string => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, "\u202f")
/** A number in short form, such as `122 k` or `1.4 M`. */
export const big = (n: number): string =>
  n >= 1e6 ? `${(n / 1e6).toFixed(1)} M` : n >= 1e3 ? `${Math.round(n / 1e3)} k` : String(Math.round(n))
/** An amount in USD without the currency sign; empty for zero. */
export const usd = (n: number): string =>
  n === 0 ? "" : n < 0.01 ? "<0.01" : n < 100 ? n.toFixed(2) : String(Math.round(n))

/** A bar that shows a fraction, with a label for screen readers. */
export const Bar = ({
  label,
  part,
  wide = false
}: {
  readonly part: number
  readonly label: string
  readonly wide?: boolean
}) => (
  <span class={wide ? "bar wide" : "bar"} title={label} role="img" aria-label={label}>
    <svg width="100%" height="4" preserveAspectRatio="none" viewBox="0 0 100 4" aria-hidden="true">
      <rect class="bar-all" width="100" height="4" />
      <rect class={part > 0.8 ? "bar-part full" : "bar-part"} width={Math.min(1, part) * 100} height="4" />
    </svg>
  </span>
)

export const Context = ({ context, wide }: { readonly context: BoardRow["context"]; readonly wide?: boolean }) => {
  if (context === null || context.window === undefined || context.window === 0) return <span class="bar" />
  const part = context.used / context.window
  return <Bar part={part} label={`${Math.round(part * 100)} % of the context is used`} {...(wide ? { wide } : {})} />
}

/** Maximum number of dots. If more errors are allowed, numbers are shown instead. */
const MAX_PIPS = 5

/** The number of consecutive errors, shown as filled dots; there is one dot for each error that is allowed. */
export const Errors = ({ errors }: { readonly errors: BoardRow["errors"] }) => {
  if (errors === null || errors.inRow === 0) return <span class="pips" />
  const label = `${errors.inRow} of ${errors.maxInRow} errors in a row`
  if (errors.maxInRow > MAX_PIPS)
    return (
      <span class="pips num c-failed small" title={label}>
        {errors.inRow}/{errors.maxInRow}
      </span>
    )
  return (
    <span class="pips" title={label} role="img" aria-label={label}>
      {Array.from({ length: errors.maxInRow }, (_, n) => (
        <i key={n} class={n < errors.inRow ? "on" : ""} />
      ))}
    </span>
  )
}

export const Kbd = ({ children }: { readonly children: ComponentChildren }) => <kbd aria-hidden="true">{children}</kbd>

/** A command that the user can type. A click copies it. */
export const Command = ({ children }: { readonly children: string }) => (
  <button
    type="button"
    class="cmd"
    title="Copy"
    onClick={(event) => {
      event.stopPropagation()
      void navigator.clipboard?.writeText(marked(children).replaceAll("\n", " ")).catch(() => undefined)
    }}
  >
    <code>{children}</code>
  </button>
)

/** A page without data. It says which command to type. */
export const Empty = ({ children, title }: { readonly title: string; readonly children?: ComponentChildren }) => (
  <div class="empty">
    <p class="empty-title">{title}</p>
    <div>{children}</div>
  </div>
)

/** A page whose request was refused. It shows the error and the remedy. */
export const Failed = ({ problem }: { readonly problem: Problem }) => (
  <div class="empty" role="alert">
    <Glyph word="failed" size={20} />
    <p class="empty-title">{problem.error}</p>
    <p>{problem.remedy}</p>
  </div>
)

/** A page that shows only its title and the link back, while its data is loading or was refused. */
export const Bare = ({
  back,
  children,
  title
}: {
  readonly title: string
  /** Route to which the link back leads; empty: the board; undefined: there is no link back. */
  readonly back?: string
  readonly children: ComponentChildren
}) => (
  <div class="page">
    <header class="top">
      {back !== undefined && (
        <a href={hrefTo(back)} class="back" aria-label="Back">
          ←
        </a>
      )}
      <h1 class="clip">{title}</h1>
    </header>
    {children}
  </div>
)

/** Shown while rows are loading, or if the daemon does not answer and there is no data yet. */
export const Loading = () =>
  link.value.state === "gone" ? (
    <Empty title="The daemon cannot be reached">
      <p>There is no data yet. It appears here as soon as the daemon answers.</p>
      <Command>agentd start</Command>
    </Empty>
  ) : (
    <div class="skeleton" role="status" aria-label="Loading" />
  )

/**
 * A page for a row that the board does not contain. `says`: the reason, which is shown when the whole board has
 * arrived.
 */
export const NoRow = ({ name, says }: { readonly name: string; readonly says: string }) => (
  <Bare title={name} back="">
    {isWhole.value ? (
      <Empty title={says}>
        <a href={hrefTo("")} class="btn">
          Board<Kbd>g b</Kbd>
        </a>
      </Empty>
    ) : (
      <Loading />
    )}
  </Bare>
)

/** Renders **bold** and `code`, but no other markup, because an agent's text is not trusted. */
export const rich = (text: string) =>
  text
    .split(/(\*\*[^*\n]+\*\*|`[^`\n]+`)/)
    .map((part, n) =>
      n % 2 === 0 ? (
        part
      ) : part.startsWith("**") ? (
        <b key={n}>{part.slice(2, -2)}</b>
      ) : (
        <code key={n}>{part.slice(1, -1)}</code>
      )
    )

const classOf = (text: string): string => {
  if (/^(@@|diff --git|index |--- |\+\+\+ )/.test(text)) return "hunk"
  return text.startsWith("+") ? "add" : text.startsWith("-") ? "del" : ""
}
export const Patch = ({ text, label = "Changes" }: { readonly text: string; readonly label?: string }) => (
  <pre class="diff" tabIndex={0} role="region" aria-label={label}>
    {text.split("\n").map((one, n) => (
      <div key={n} class={classOf(one)}>
        {one === "" ? " " : one}
      </div>
    ))}
  </pre>
)

interface VirtualProps {
  readonly count: number
  readonly heightOf: (index: number) => number
  readonly children: (index: number) => ComponentChildren
  readonly label: string
  /** Index of the row to scroll to, so that it is visible. */
  readonly to?: number
}
/** Number of rows above and below the visible part that are also rendered. */
const MORE = 6
/** Scroll distance in px after which a list is rendered again. */
const STEP = 204

const placesOf = ({ count, heightOf }: VirtualProps): Float64Array => {
  const tops = new Float64Array(count + 1)
  for (let n = 0; n < count; n++) tops[n + 1] = tops[n]! + heightOf(n)
  return tops
}
const rowAt = (tops: Float64Array, y: number): number => {
  let low = 0
  let high = tops.length - 1
  while (low < high) {
    const middle = (low + high) >> 1
    if (tops[middle + 1]! <= y) low = middle + 1
    else high = middle
  }
  return low
}

/** The visible part of a scroll box, rounded to steps, so that a list is rendered again only once per step. */
export const useView = (step: number) => {
  const [view, setView] = useState({ top: 0, height: 900 })
  const read = ({ clientHeight, scrollTop }: HTMLElement) => {
    const [top, height] = [Math.floor(scrollTop / step) * step, clientHeight + step]
    setView((before) => (before.top === top && before.height === height ? before : { top, height }))
  }
  return { view, read }
}

/** A list of rows with known heights; only the visible rows are rendered. */
export const Virtual = (props: VirtualProps) => {
  const { children, count, label, to } = props
  const box = useRef<HTMLDivElement>(null)
  const { read, view } = useView(STEP)
  const tops = placesOf(props)
  const first = Math.max(0, rowAt(tops, view.top) - MORE)
  const last = Math.min(count, rowAt(tops, view.top + view.height) + MORE + 1)
  useLayoutEffect(() => {
    const element = box.current!
    const look = () => read(element)
    look()
    const sizes = new ResizeObserver(look)
    sizes.observe(element)
    element.addEventListener("scroll", look, { passive: true })
    return () => {
      sizes.disconnect()
      element.removeEventListener("scroll", look)
    }
  }, [])
  useLayoutEffect(() => {
    if (to === undefined || to < 0 || to >= count) return
    const element = box.current!
    if (tops[to]! < element.scrollTop + 32) element.scrollTop = tops[to]! - 40
    else if (tops[to + 1]! > element.scrollTop + element.clientHeight)
      element.scrollTop = tops[to + 1]! - element.clientHeight + 12
  }, [to])
  const shown = Array.from({ length: last - first }, (_, n) => children(first + n))
  return (
    <div class="virtual" ref={box} tabIndex={0} role="region" aria-label={label}>
      <div style={{ height: `${tops[first]}px` }} />
      {shown}
      <div style={{ height: `${tops[count]! - tops[last]!}px` }} />
    </div>
  )
}

const phone = matchMedia("(max-width: 720px)")
export const isPhone = (): boolean => phone.matches
/** True if the page is as small as on a phone; updated when that changes. */
export const usePhone = (): boolean => {
  const [is, set] = useState(phone.matches)
  useEffect(() => {
    const read = () => set(phone.matches)
    phone.addEventListener("change", read)
    return () => phone.removeEventListener("change", read)
  }, [])
  return is
}
