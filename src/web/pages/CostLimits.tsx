/** CostLimits: shows how much of each limit is used: spending limits in configs, and usage limits of providers. */
import { useState } from "preact/hooks"
import { isOver, usedWords } from "../../domain/UsageWindow.ts"
import { span } from "../../domain/StatusWords.ts"
import type { AccountRow } from "../../board/AccountMessages.ts"
import type { LimitRow } from "../../board/CostMessages.ts"
import { useAnswer } from "../VerbQuery.ts"
import { now } from "../Time.ts"
import { Bar, big, usd } from "../Ui.tsx"

const PERIODS = { day: "today", month: "this month", total: "in total" } as const
/** Number of limits that are shown at first. A button shows all. */
const FEW = 6

/** The limit in the form in which it is written in the config, such as "60" or "0.50". */
export const limitOf = (resource: LimitRow["resource"], value: number): string =>
  resource === "usd" && Number.isInteger(value) ? String(value) : amount(resource, value)

const amount = (resource: LimitRow["resource"], value: number): string => {
  if (resource === "usd") return value === 0 ? "0" : usd(value)
  return resource === "wall_time" ? span(value) : big(value)
}
const UNITS = { usd: "USD", tokens: "tokens", tool_calls: "tool calls", wall_time: "of turns" } as const

/** The used part of a limit, such as "44.26 of 60 USD". Pure. */
export const wordsOf = ({ limit, resource, spent }: LimitRow): string =>
  `${amount(resource, spent)} of ${limitOf(resource, limit)} ${UNITS[resource]}`

interface Line {
  readonly name: string
  readonly what: string
  readonly part: number
  readonly words: string
  readonly until: string
}

const left = (until: number | null | undefined, at: number): string =>
  until == null || until <= at ? "" : `resets in ${span(until - at)}`

/** Spending limits, then usage limits of providers, one per line. Pure. */
export const linesOf = (
  limits: ReadonlyArray<LimitRow>,
  accounts: ReadonlyArray<AccountRow>,
  at: number
): ReadonlyArray<Line> => [
  ...limits.map((row) => ({
    name: row.whose === "machine" ? "this machine" : row.name,
    what: PERIODS[row.period],
    part: row.limit === 0 ? 1 : row.spent / row.limit,
    words: wordsOf(row),
    until: left(row.until, at)
  })),
  ...accounts.flatMap(({ account, provider, windows }) =>
    windows
      .filter((window) => !isOver(window, at))
      .map((window) => ({
        name: `${provider} (${account})`,
        what: window.name.replaceAll("_", " "),
        part: window.used ?? 0,
        words: usedWords(window, at),
        until: left(window.resetsAt, at)
      }))
  )
]

/**
 * The daily limit to show next to today's costs: the machine's limit; without one, the limit of the project if there is
 * only one project. Pure.
 */
export const todayOf = (
  limits: ReadonlyArray<LimitRow>,
  resource: LimitRow["resource"],
  projects: number
): LimitRow | undefined => {
  const days = limits.filter((row) => row.period === "day" && row.resource === resource)
  return (
    days.find(({ whose }) => whose === "machine") ??
    (projects === 1 ? days.find(({ whose }) => whose === "project") : undefined)
  )
}

export const useLimits = (news: number): ReadonlyArray<LimitRow> =>
  useAnswer<ReadonlyArray<LimitRow>>("Limits", {}, news).value ?? []

export const Limits = ({ limits, news }: { readonly limits: ReadonlyArray<LimitRow>; readonly news: number }) => {
  const [all, setAll] = useState(false)
  const accounts = useAnswer<ReadonlyArray<AccountRow>>("Accounts", {}, news).value ?? []
  const lines = linesOf(limits, accounts, now.value)
  if (lines.length === 0) return null
  const shown = all ? lines : lines.slice(0, FEW)
  return (
    <section class="limits" aria-label="Limits">
      <h2 class="label">Limits</h2>
      <ul>
        {shown.map(({ name, part, until, what, words }) => (
          <li key={`${name} ${what} ${words.split(" of ").at(-1)}`}>
            <span class="clip">{name}</span>
            <span class="muted">{what}</span>
            <Bar part={part} label={`${Math.round(part * 100)} % is spent`} wide />
            <span class={part > 0.8 ? "num strong" : "num"}>{words}</span>
            <span class="faint num">{until}</span>
          </li>
        ))}
      </ul>
      {shown.length < lines.length && (
        <button type="button" class="btn" onClick={() => setAll(true)}>
          All {lines.length}
        </button>
      )}
    </section>
  )
}
