/**
 * UsageKinds: the rune that says what an agent has spent: agents write it, budgets are a fold of it.
 */
import { Schema } from "effect"
import { kind, reader } from "../core/event-log/EventKinds.ts"

const text = Schema.String

const ModelUsage = Schema.Struct({
  /** Empty: its run does not name it. */
  model: text,
  input: Schema.Finite,
  output: Schema.Finite,
  /** Parts of the input. */
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
  /** ms in which every open call of the turn waited for a person: they count against no limit. */
  waited: Schema.optionalKey(Schema.Finite),
  /** The turn has made the same call so often that a person is told. */
  same: Schema.optionalKey(text),
  /** Said by the agent, and more than is possible in its time: against its own budget alone. */
  unlikely: Schema.optionalKey(Schema.Struct({ tokens: Schema.Finite, usd: Schema.Finite })),
  /** The tokens and their cost by model; older runes say only the sums. */
  models: Schema.optionalKey(Schema.Array(ModelUsage)),
  goal: Schema.optionalKey(text),
  /** The day on which it was spent, by the calendar of the machine: "2026-11-24". */
  day: Schema.optionalKey(text)
})
export type Usage = typeof Usage.Type

const Period = Schema.Struct({ label: text, tokens: Schema.Finite, usd: Schema.Finite })

/** The spending of a conversation when it was archived: its runes tell it no more. */
export const ArchivedSpending = Schema.Struct({
  tokens: Schema.Finite,
  usd: Schema.Finite,
  /** Of the newest day and month. */
  day: Period,
  month: Period,
  /** By month or day, agent and model. */
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
