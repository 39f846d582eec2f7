/** UsageKinds: the rune that records what an agent has spent. Agents write it; budgets are a fold of it. */
import { Schema } from "effect"
import { kind, reader } from "../core/event-log/EventKinds.ts"

const text = Schema.String

const ModelUsage = Schema.Struct({
  /** Empty: the run does not name its model. */
  model: text,
  input: Schema.Finite,
  output: Schema.Finite,
  /** Included in `input`. */
  cache_read: Schema.optionalKey(Schema.Finite),
  cache_write: Schema.optionalKey(Schema.Finite),
  usd: Schema.optionalKey(Schema.Finite)
})

const Usage = Schema.Struct({
  agent_id: text,
  turn_id: text,
  tokens: Schema.Finite,
  tool_calls: Schema.Finite,
  /** ms */
  wall_time: Schema.Finite,
  usd: Schema.Finite,
  /** ms during which every open call of the turn waited for a person; they count against no limit. */
  waited: Schema.optionalKey(Schema.Finite),
  /** Set if the turn has made the same call so often that a person is notified. */
  same: Schema.optionalKey(text),
  /** Reported by the agent, but more than is possible in its time: counts only against the agent's own budget. */
  unlikely: Schema.optionalKey(Schema.Struct({ tokens: Schema.Finite, usd: Schema.Finite })),
  /** Tokens and cost by model; older runes have only the sums. */
  models: Schema.optionalKey(Schema.Array(ModelUsage)),
  goal: Schema.optionalKey(text),
  /** Local day on which it was spent: "2026-11-24". */
  day: Schema.optionalKey(text)
})
export type Usage = typeof Usage.Type

const Period = Schema.Struct({ label: text, tokens: Schema.Finite, usd: Schema.Finite })

/** The spending of a conversation when it was archived, because its runes can no longer be read for it. */
export const ArchivedSpending = Schema.Struct({
  tokens: Schema.Finite,
  usd: Schema.Finite,
  /** Spending of the newest day and month. */
  day: Period,
  month: Period,
  /** Spending by month or day, agent and model. */
  costs: Schema.Array(
    Schema.Struct({
      day: text,
      agent: text,
      model: text,
      goal: text,
      input: Schema.Finite,
      output: Schema.Finite,
      cacheRead: Schema.Finite,
      cacheWrite: Schema.Finite,
      usd: Schema.Finite,
      unpriced: Schema.Finite
    })
  )
})
export type ArchivedSpending = typeof ArchivedSpending.Type

export const usageKinds = { "agent.usage": kind(Usage) }

export const readUsage = reader(usageKinds)
