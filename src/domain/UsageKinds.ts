/**
 * UsageKinds: the rune kind `agent.usage`, which records an agent's spending. Agents write these runes; budgets are
 * computed from them.
 */
import { Schema } from "effect"
import { kind, reader } from "../core/event-log/EventKinds.ts"

const text = Schema.String

const ModelUsage = Schema.Struct({
  /** Name of the model; empty: the run did not report it. */
  model: text,
  input: Schema.Finite,
  output: Schema.Finite,
  /** Tokens read from a cache. `input` includes these tokens and those in `cache_write`. */
  cache_read: Schema.optionalKey(Schema.Finite),
  cache_write: Schema.optionalKey(Schema.Finite),
  usd: Schema.optionalKey(Schema.Finite)
})

const Usage = Schema.Struct({
  agent_id: text,
  turn_id: text,
  tokens: Schema.Finite,
  tool_calls: Schema.Finite,
  /** Duration of the turn in ms. */
  wall_time: Schema.Finite,
  usd: Schema.Finite,
  /** Time in ms during which all open calls of the turn waited for the user. This time counts toward no limit. */
  waited: Schema.optionalKey(Schema.Finite),
  /** Warning for the user, set if the turn has repeated the same tool call too often. */
  same: Schema.optionalKey(text),
  /**
   * Implausible part of the reported spending: the part that exceeds what is possible in the elapsed time. Only the
   * agent's own budget includes it.
   */
  unlikely: Schema.optionalKey(Schema.Struct({ tokens: Schema.Finite, usd: Schema.Finite })),
  /** Tokens and cost of each model. Runes of older agentd versions lack this field and have only the sums. */
  models: Schema.optionalKey(Schema.Array(ModelUsage)),
  goal: Schema.optionalKey(text),
  /** Local day on which the spending occurred, such as "2026-11-24". */
  day: Schema.optionalKey(text)
})
export type Usage = typeof Usage.Type

const Period = Schema.Struct({ label: text, tokens: Schema.Finite, usd: Schema.Finite })

/**
 * The spending of a conversation, stored when the conversation is archived, because from then on it can no longer be
 * computed from the conversation's runes.
 */
export const ArchivedSpending = Schema.Struct({
  tokens: Schema.Finite,
  usd: Schema.Finite,
  /** Spending on the last day with any spending, and in the last month with any spending. */
  day: Period,
  month: Period,
  /** Spending for each combination of month or day, agent, model and goal. */
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
