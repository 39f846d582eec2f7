/**
 * CostMessages: what was spent, as the daemon tells it.
 */
import { Schema } from "effect"
import type { Cost, Limited } from "../domain/Allowance.ts"
import { plainModel } from "../runs/gateway/Estimated.ts"

export const COST_KEYS = ["project", "agent", "model", "day", "hour", "goal"] as const
export type CostKey = (typeof COST_KEYS)[number]

const key = Schema.optionalKey(Schema.String)

/** A sum of spending; it has the keys that were asked for. */
export const CostRow = Schema.Struct({
  project: key,
  /** `project/agent`. */
  agent: key,
  /** Empty: the agent did not name it. */
  model: key,
  /** "2026-11-24"; of long ago the month. */
  day: key,
  /** "2026-11-24T07"; the newest hours alone are known. */
  hour: key,
  /** Empty: none. */
  goal: key,
  /** Tokens, with those of a cache. */
  input: Schema.Finite,
  output: Schema.Finite,
  cacheRead: Schema.Finite,
  cacheWrite: Schema.Finite,
  usd: Schema.Finite,
  unpriced: Schema.Finite,
  /** Tokens that no answer told; left out: none. */
  estimated: Schema.optionalKey(Schema.Finite),
  /** Said by agents, and more than is possible in their time: in no sum but their own budgets. */
  unlikely: Schema.optionalKey(Schema.Struct({ tokens: Schema.Finite, usd: Schema.Finite }))
})
export type CostRow = typeof CostRow.Type

/** Rows of one reply; the rest is one more row, without keys. */
export const MOST = 5_000

const SUMS = ["input", "output", "cacheRead", "cacheWrite", "usd", "unpriced"] as const
const NONE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, usd: 0, unpriced: 0 }

type Sums = Pick<CostRow, (typeof SUMS)[number] | "estimated" | "unlikely">

const estimated = (tokens: number): Pick<CostRow, "estimated"> => (tokens > 0 ? { estimated: tokens } : {})

const sum = (a: Sums, b: Sums): Sums => ({
  ...estimated((a.estimated ?? 0) + (b.estimated ?? 0)),
  input: a.input + b.input,
  output: a.output + b.output,
  cacheRead: a.cacheRead + b.cacheRead,
  cacheWrite: a.cacheWrite + b.cacheWrite,
  usd: a.usd + b.usd,
  unpriced: a.unpriced + b.unpriced,
  ...(a.unlikely === undefined && b.unlikely === undefined
    ? {}
    : {
        unlikely: {
          tokens: (a.unlikely?.tokens ?? 0) + (b.unlikely?.tokens ?? 0),
          usd: (a.unlikely?.usd ?? 0) + (b.unlikely?.usd ?? 0)
        }
      })
})

/** Of an hour, too. */
const dayIn = (day: string): string => day.slice(0, 10)

/** A limit on spending, and how much of it is spent. */
export const LimitRow = Schema.Struct({
  whose: Schema.Literals(["agent", "project", "machine"]),
  /** `project/agent`, or the project; empty: the machine. */
  name: Schema.String,
  period: Schema.Literals(["day", "month", "total"]),
  resource: Schema.Literals(["tokens", "usd", "tool_calls", "wall_time"]),
  spent: Schema.Finite,
  limit: Schema.Finite,
  /** When it begins anew by itself, ms since the epoch; null: never. */
  until: Schema.NullOr(Schema.Finite),
  /** An agent that reaches it is ended, and does not wait. */
  stops: Schema.Boolean
})
export type LimitRow = typeof LimitRow.Type

const WHOSE = ["machine", "project", "agent"]

/** The machine's first, then those of which most is spent; `projects`: names of conversations. Pure. */
export const limitsOf = (
  limits: ReadonlyArray<Limited>,
  projects: ReadonlyMap<string, string>
): ReadonlyArray<LimitRow> =>
  limits
    .flatMap(
      ({ agent, conversation, limit, period, resource, spent, stops, until, whose }): ReadonlyArray<LimitRow> => {
        const project = projects.get(conversation) ?? conversation
        const name = whose === "agent" ? `${project}/${agent}` : whose === "project" ? project : ""
        return period === "turn" ? [] : [{ whose, name, period, resource, spent, limit, until, stops }]
      }
    )
    .toSorted((a, b) => WHOSE.indexOf(a.whose) - WHOSE.indexOf(b.whose) || b.spent * a.limit - a.spent * b.limit)
    .slice(0, MOST)

/** Rows by the keys, in their order; `projects`: names of conversations. Pure. */
export const grouped = (
  costs: ReadonlyArray<Cost>,
  by: ReadonlyArray<CostKey>,
  projects: ReadonlyMap<string, string>
): ReadonlyArray<CostRow> => {
  const rows = new Map<string, CostRow>()
  for (const cost of costs) {
    const project = projects.get(cost.conversation) ?? cost.conversation
    const { agent, day, goal, model } = cost
    const all = {
      project,
      agent: agent === "" ? project : `${project}/${agent}`,
      model,
      day: dayIn(day),
      hour: day,
      goal
    }
    const keys = Object.fromEntries(by.map((name) => [name, all[name]]))
    const id = JSON.stringify(keys)
    const unsure = plainModel(model) === model ? {} : estimated(cost.input + cost.output)
    rows.set(id, { ...keys, ...sum(rows.get(id) ?? NONE, { ...cost, ...unsure }) })
  }
  const sorted = [...rows.entries()].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
  const rest = sorted.slice(MOST)
  return rest.length === 0 ? sorted : [...sorted.slice(0, MOST), rest.reduce<Sums>(sum, NONE)]
}
