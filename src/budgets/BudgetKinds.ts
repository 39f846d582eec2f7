/**
 * BudgetKinds: the runes that tell of limits: one is near, one is spent.
 */
import { Schema } from "effect"
import { kind, reader } from "../core/event-log/EventKinds.ts"

const text = Schema.String

const Told = Schema.Struct({
  /** The limit and its period: what was told once under a key is not told again. */
  key: text,
  whose: Schema.Literals(["agent", "project", "machine"]),
  /** The agent, or the project's conversation; empty for the machine. */
  name: text,
  period: Schema.Literals(["turn", "day", "month", "total"]),
  /** The day, the month or the turn. */
  label: text,
  resource: Schema.Literals(["tokens", "usd", "tool_calls", "wall_time"]),
  spent: Schema.Finite,
  limit: Schema.Finite,
  /** When it begins anew by itself, ms since the epoch. */
  until: Schema.NullOr(Schema.Finite),
  stops: Schema.Boolean,
  /** No limit: something about the turn that a person would want to know. */
  mark: Schema.optionalKey(text)
})
export type Told = typeof Told.Type

export const budgetKinds = { "budget.near": kind(Told), "budget.spent": kind(Told) }

export const readBudget = reader(budgetKinds)
