/**
 * TimeRange: reads the time range of a page from its address: `last=1h`, or `from=2026-11-26T07:00&to=…`.
 *
 * Guarantees: the start of a range without an end is fixed when the user chooses it, and does not move.
 */
import { useMemo } from "preact/hooks"
import { stamp } from "../Time.ts"

const MINUTE = 60_000
const LAST: { readonly [name: string]: readonly [text: string, ms: number] } = {
  "15m": ["Last 15 minutes", 15 * MINUTE],
  "1h": ["Last hour", 60 * MINUTE],
  "24h": ["Last 24 hours", 1_440 * MINUTE],
  "7d": ["Last 7 days", 10_080 * MINUTE]
}
const CHOSEN = "chosen"
const FIELDS = ["last", "from", "to"] as const

export interface Range {
  /** Start of the range, in ms since the epoch; undefined if the range has no start. */
  readonly since?: number
  readonly until?: number
}

/** The local time without seconds, in the form that an input field needs. */
const local = (at: number): string => stamp(at).slice(0, 16).replace(" ", "T")

const timeIn = (text: string | null): number | undefined => {
  const at = text === null || text === "" ? Number.NaN : new Date(text).getTime()
  return Number.isNaN(at) ? undefined : at
}

/** The range in the query of an address. Pure except for the time zone. */
export const rangeOf = (query: URLSearchParams, now: number): Range => {
  const last = LAST[query.get("last") ?? ""]
  if (last !== undefined) return { since: now - last[1] }
  const [since, until] = [timeIn(query.get("from")), timeIn(query.get("to"))]
  return { ...(since === undefined ? {} : { since }), ...(until === undefined ? {} : { until }) }
}

/** The name of the selected range; empty for all time. */
const nameOf = (query: URLSearchParams): string => {
  const last = query.get("last") ?? ""
  if (last in LAST) return last
  return query.has("from") || query.has("to") ? CHOSEN : ""
}

/** The selected range, computed at the time when it was selected. */
export const useRange = (query: URLSearchParams): Range => {
  const key = FIELDS.map((name) => query.get(name) ?? "").join(" ")
  return useMemo(() => rangeOf(query, Date.now()), [key])
}

const choose = (query: URLSearchParams, name: string): URLSearchParams => {
  const next = new URLSearchParams(query)
  for (const field of FIELDS) next.delete(field)
  if (name === CHOSEN) next.set("from", local(rangeOf(query, Date.now()).since ?? Date.now() - 60 * MINUTE))
  else if (name !== "") next.set("last", name)
  return next
}

interface Props {
  readonly query: URLSearchParams
  readonly set: (query: URLSearchParams) => void
}
export const TimeRange = ({ query, set }: Props) => {
  const name = nameOf(query)
  const end = (field: "from" | "to", label: string) => (
    <input
      type="datetime-local"
      class="time"
      aria-label={label}
      value={query.get(field) ?? ""}
      onChange={(event) => {
        const next = new URLSearchParams(query)
        if (event.currentTarget.value === "") next.delete(field)
        else next.set(field, event.currentTarget.value)
        set(next)
      }}
    />
  )
  return (
    <div class="range">
      <select
        class="time"
        aria-label="Time"
        value={name}
        onChange={(event) => set(choose(query, event.currentTarget.value))}
      >
        <option value="">All time</option>
        {Object.entries(LAST).map(([value, [text]]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
        <option value={CHOSEN}>From … to …</option>
      </select>
      {name === CHOSEN && (
        <>
          {end("from", "From")}
          <span class="faint">to</span>
          {end("to", "To")}
        </>
      )}
    </div>
  )
}
