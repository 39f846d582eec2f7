/**
 * CostMessages: rows about spending and its limits, in the form in which they are sent over the control socket.
 */
import { Schema } from "effect"
import type { Cost, Limited } from "../domain/SpendingLimits.ts"
import { plainModel } from "../runs/gateway/Estimated.ts"

export const COST_KEYS = ["project", "agent", "model", "day", "hour", "goal"] as const
export type CostKey = (typeof COST_KEYS)[number]

const key = Schema.optionalKey(Schema.String)

/** Spending by the requested keys. Other keys are not set. */
export const CostRow = Schema.Struct({
  project: key,
  /** The agent, as `project/agent`. */
  agent: key,
  /** Name of the model; empty if the agent did not report it. */
  model: key,
  /** The day, such as "2026-11-24". If the day is long ago, only its month. */
  day: key,
  /** The hour, such as "2026-11-24T07". Only the newest hours are known. */
  hour: key,
  /** Id of the goal; empty if the spending belongs to no goal. */
  goal: key,
  /** Input tokens, including those read from and written to a cache. */
  input: Schema.Finite,
  output: Schema.Finite,
  cacheRead: Schema.Finite,
  cacheWrite: Schema.Finite,
  usd: Schema.Finite,
  unpriced: Schema.Finite,
  /** Number of tokens that were estimated because no answer reported them; undefined if there are none. */
  estimated: Schema.optionalKey(Schema.Finite),
  /** Reported spending that is impossible in the time that the agents ran. Counts only against their own budgets. */
  unlikely: Schema.optionalKey(Schema.Struct({ tokens: Schema.Finite, usd: Schema.Finite }))
})
export type CostRow = typeof CostRow.Type

/** Maximum number of rows in one reply. One more row, without keys, contains the sum of the rest. */
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

/** The day that contains an hour. A day or a month is returned unchanged. */
const dayIn = (day: string): string => day.slice(0, 10)

export const LimitRow = Schema.Struct({
  whose: Schema.Literals(["agent", "project", "machine"]),
  /** The agent as `project/agent`, or the project; empty for the machine. */
  name: Schema.String,
  period: Schema.Literals(["day", "month", "total"]),
  resource: Schema.Literals(["tokens", "usd", "tool_calls", "wall_time"]),
  spent: Schema.Finite,
  limit: Schema.Finite,
  /** When the limit resets by itself, ms since the epoch; null if it never does. */
  until: Schema.NullOr(Schema.Finite),
  /** True if an agent that reaches the limit is ended; false if it waits. */
  stops: Schema.Boolean
})
export type LimitRow = typeof LimitRow.Type

const WHOSE = ["machine", "project", "agent"]

/** Limits of the machine, then projects, then agents, each by spent share. `projects`: names by conversation. Pure. */
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

/** Sums of spending by the requested keys, sorted by these keys. `projects`: project names by conversation. Pure. */
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
