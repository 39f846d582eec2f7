/** BudgetKinds: the kinds of runes that report limits: one is near, or one is exceeded. */
import { Schema } from "effect"
import { kind, reader } from "../core/event-log/EventKinds.ts"

const text = Schema.String

const Told = Schema.Struct({
  /** Identifies the limit and its period. Each key is reported only once. */
  key: text,
  whose: Schema.Literals(["agent", "project", "machine"]),
  /** The agent, or the project's conversation; empty for the machine. */
  name: text,
  period: Schema.Literals(["turn", "day", "month", "total"]),
  /** The day, the month, or the turn's id; empty for a total. */
  label: text,
  resource: Schema.Literals(["tokens", "usd", "tool_calls", "wall_time"]),
  spent: Schema.Finite,
  limit: Schema.Finite,
  /** When the period ends and the spending is reset, ms since the epoch; null if it is never reset by itself. */
  until: Schema.NullOr(Schema.Finite),
  stops: Schema.Boolean,
  /** A remarkable fact about the turn, in words. If present, the rune reports this fact, not a limit. */
  mark: Schema.optionalKey(text)
})
export type Told = typeof Told.Type

export const budgetKinds = { "budget.near": kind(Told), "budget.spent": kind(Told) }

export const readBudget = reader(budgetKinds)
