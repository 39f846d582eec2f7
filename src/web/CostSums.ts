/** CostSums: computes the data of a cost chart: time slots, each split by model or by token kind. Pure. */
import * as Calendar from "../domain/Calendar.ts"
import type { CostRow } from "../board/CostMessages.ts"

export const DAYS = 14
export const HOURS = 24
const DAY = 86_400_000
const HOUR = 3_600_000
/** Number of colours in the chart. If there are more models, the last ones share a colour. */
const SHADES = 4
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

export type Span = "days" | "hours"
export type Unit = "USD" | "tokens" | "kinds"

/** Names of the time slots, oldest first, such as "2026-11-24" or "2026-11-24T07". */
export const slotsOf = (span: Span, now: number): ReadonlyArray<string> =>
  span === "days"
    ? Array.from({ length: DAYS }, (_, n) => Calendar.dayOf(now - (DAYS - 1 - n) * DAY))
    : Array.from({ length: HOURS }, (_, n) => Calendar.hourOf(now - (HOURS - 1 - n) * HOUR))

/** Readable name of a time slot, such as "24 Nov" or "07:00". */
export const spoken = (slot: string): string =>
  slot.length > 10 ? `${slot.slice(11)}:00` : `${Number(slot.slice(8))} ${MONTHS[Number(slot.slice(5, 7)) - 1]}`

const slotOf = ({ day = "", hour }: CostRow): string => hour ?? day

export const sum = (rows: ReadonlyArray<CostRow>, of: (row: CostRow) => number): number =>
  rows.reduce((all, row) => all + of(row), 0)

export interface Slot {
  readonly name: string
  readonly parts: ReadonlyArray<number>
}
export interface Parts {
  readonly names: ReadonlyArray<string>
  readonly slots: ReadonlyArray<Slot>
}

const KINDS: ReadonlyArray<readonly [name: string, of: (row: CostRow) => number]> = [
  ["not cached", ({ cacheRead, input }) => Math.max(0, input - cacheRead)],
  ["from the cache", ({ cacheRead }) => cacheRead],
  ["output", ({ output }) => output]
]

/**
 * Sums per model, the most expensive model first. If there are more models than colours, the last models are added up
 * as "others".
 */
const byModel = (rows: ReadonlyArray<CostRow>, slots: ReadonlyArray<string>, of: (row: CostRow) => number): Parts => {
  const sums = new Map<string, number>()
  for (const row of rows) sums.set(row.model ?? "", (sums.get(row.model ?? "") ?? 0) + of(row))
  const ranked = [...sums].toSorted(([, a], [, b]) => b - a).map(([model]) => model)
  const models = ranked.length <= SHADES ? ranked : [...ranked.slice(0, SHADES - 1), "others"]
  const shade = (model: string) => Math.min(models.length - 1, ranked.indexOf(model))
  return {
    names: models.map((model) => (model === "" ? "unknown" : model)),
    slots: slots.map((name): Slot => {
      const parts = models.map(() => 0)
      for (const row of rows) if (slotOf(row) === name) parts[shade(row.model ?? "")]! += of(row)
      return { name, parts }
    })
  }
}

export const partsOf = (rows: ReadonlyArray<CostRow>, slots: ReadonlyArray<string>, unit: Unit): Parts => {
  if (unit === "USD") return byModel(rows, slots, ({ usd }) => usd)
  if (unit === "tokens") return byModel(rows, slots, ({ input, output }) => input + output)
  return {
    names: KINDS.map(([name]) => name),
    slots: slots.map((name) => {
      const own = rows.filter((row) => slotOf(row) === name)
      return { name, parts: KINDS.map(([, of]) => sum(own, of)) }
    })
  }
}

/** Distance between the grid lines: a round number that gives about four lines. */
export const stepOf = (most: number): number => {
  const raw = Math.max(most, 1e-6) / 4
  const ten = 10 ** Math.floor(Math.log10(raw))
  return ten * (raw / ten <= 1 ? 1 : raw / ten <= 2 ? 2 : raw / ten <= 5 ? 5 : 10)
}

export interface Line {
  readonly agent: string
  readonly models: string
  readonly slots: ReadonlyArray<number>
  readonly tokens: number
  readonly share: number | null
  readonly usd: number
}

/**
 * Table rows, one per agent, the most expensive agent first. The bars show USD; if none of the agent's usage has a
 * price, they show tokens.
 */
export const linesOf = (rows: ReadonlyArray<CostRow>, slots: ReadonlyArray<string>): ReadonlyArray<Line> => {
  const byAgent = new Map<string, Array<CostRow>>()
  for (const row of rows) byAgent.set(row.agent ?? "", [...(byAgent.get(row.agent ?? "") ?? []), row])
  return [...byAgent]
    .map(([agent, own]): Line => {
      const input = sum(own, (row) => row.input)
      const spent = sum(own, (row) => row.usd)
      const of = spent > 0 ? ({ usd }: CostRow) => usd : ({ input, output }: CostRow) => input + output
      return {
        agent,
        models: [...new Set(own.flatMap(({ model = "" }) => (model === "" ? [] : [model])))].join(", "),
        slots: slots.map((slot) =>
          sum(
            own.filter((row) => slotOf(row) === slot),
            of
          )
        ),
        tokens: input + sum(own, (row) => row.output),
        share: input === 0 ? null : sum(own, (row) => row.cacheRead) / input,
        usd: spent
      }
    })
    .toSorted((a, b) => b.usd - a.usd || b.tokens - a.tokens)
}
