/**
 * SpendingLimits: the interface to budgets: agents report their spending and ask whether they may start another turn. A
 * limit applies to a turn, an agent, a project or the machine: in total, per day or per month. The folder budgets/
 * implements the interface; without it, nothing is limited.
 */
import { Context, Duration, Effect, type Scope } from "effect"
import type { BudgetConfig } from "../config/AgentConfig.ts"
import type { StorageError } from "../core/event-log/EventLog.ts"
import type { RuneRef } from "../core/event-log/Rune.ts"
import type { Address } from "./AgentPort.ts"

import type { ArchivedSpending, Usage } from "./UsageKinds.ts"

export type Whose = "agent" | "project" | "machine"
export type Period = "turn" | "day" | "month" | "total"
export type Resource = "tokens" | "usd" | "tool_calls" | "wall_time"

/** A spending limit, and how much of it has been spent. */
export interface Reach {
  readonly whose: Whose
  readonly period: Period
  /** The turn, day or month to which the limit applies, such as "2026-11-24"; empty: all time. */
  readonly label: string
  readonly resource: Resource
  readonly spent: number
  readonly limit: number
  /** When the limit resets automatically, in ms since the epoch; null: never. */
  readonly until: number | null
  /** True: an agent that reaches the limit ends. False: the agent waits. */
  readonly stops: boolean
  /** A warning. Set if this is not a limit, but an observation about the turn that the user should know about. */
  readonly mark?: string
}

/** A live agent whose spending is counted. */
export interface Spender extends Address {
  /** Returns the current limits from the config file. */
  readonly limits: () => { readonly agent: BudgetConfig; readonly project: BudgetConfig }
  /**
   * Ends the agent's turn. `keep`: if true, the turn's messages are delivered again later. `turnId`: if set, only this
   * turn is ended, and the agent then waits for the user.
   */
  readonly interrupt: (reason: string, keep: boolean, turnId?: string) => Effect.Effect<void>
  readonly turn?: () => string | undefined
  /** Ends the agent permanently. */
  readonly exhaust: (reach: Reach) => Effect.Effect<void>
}

/** A limit, and where it applies. For a project, the field `agent` is empty; for the machine, both fields are empty. */
export interface Limited extends Reach {
  readonly conversation: string
  readonly agent: string
}

/** Total tokens and cost for one combination of day, conversation, agent, model and goal. */
export interface Cost {
  /**
   * The local day ("2026-11-24"), or only the month if the day is long ago. If groups by hour were requested, the hour:
   * "2026-11-24T07".
   */
  readonly day: string
  readonly conversation: string
  readonly agent: string
  /** Name of the model; empty: the agent did not report it. */
  readonly model: string
  /** Id of the goal for which the agent worked; empty: the agent worked for no goal. */
  readonly goal: string
  /** Number of input tokens, including those read from and written to a cache. */
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly usd: number
  /** Number of tokens whose cost is unknown: the agent reported no cost, and no price is known for the model. */
  readonly unpriced: number
  /** Reported spending that is implausibly high. No sum includes it. */
  readonly unlikely?: { readonly tokens: number; readonly usd: number }
}

export interface Standing {
  /** The limit that prevents the agent's next turn; undefined: no limit is reached. */
  readonly reached: Reach | undefined
  readonly near: ReadonlyArray<Reach>
}

export interface Allowances {
  readonly machine: BudgetConfig
  /**
   * Registers the agent until the scope closes. When `join` returns, the previous spending of the agent's conversation
   * has been loaded.
   */
  readonly join: (spender: Spender) => Effect.Effect<void, never, Scope.Scope>
  /**
   * Returns the limit that prevents the agent's next turn; undefined: the turn may start. "unread": earlier spending is
   * not loaded yet. `wake` is called when this answer may have changed. `spent`: spending since the agent was last
   * started, including amounts that were not reported yet.
   */
  readonly admits: (
    who: Address,
    spent: { readonly tokens: number; readonly usd: number },
    wake: () => void
  ) => Reach | "unread" | undefined
  /** True if a limit is reached that ends this turn of the agent. `spent`: as for `admits`. */
  readonly endsTurn: (who: Address, spent: { readonly tokens: number; readonly usd: number }, turnId: string) => boolean
  /** Records spending. Call it only after the rune `agent.usage` is durable. */
  readonly used: (who: Address, usage: Usage, ref: RuneRef) => Effect.Effect<void>
  /** Records that the agent was started again: its total spending restarts at zero. */
  readonly began: (who: Address, ref: RuneRef) => Effect.Effect<void>
  /** Records that a suspended conversation was resumed: its total spending restarts at zero. */
  readonly renewed: (conversation: string, ref: RuneRef) => Effect.Effect<void>
  readonly standing: (who: Address) => Standing
  /** Call this when a config file has changed, so that agents that wait for a budget check their limits again. */
  readonly wake: Effect.Effect<void>
  /** Spending of a conversation, to be stored in the rune that archives it; undefined: no spending is known. */
  readonly archived: (conversation: string) => Effect.Effect<ArchivedSpending | undefined>
  /** All spending since the day `since`. Streams that cannot be read are left out. */
  readonly costs: (
    since: string,
    /** True: group by hour instead of by day. Only the most recent hours are available. */
    options?: { readonly hours: boolean }
  ) => Effect.Effect<ReadonlyArray<Cost>, StorageError>
  /** Returns each limit of live agents, of their projects and of the machine once. Limits of turns are left out. */
  readonly limits: () => ReadonlyArray<Limited>
}

export const unlimited: Allowances = {
  machine: {},
  join: () => Effect.void,
  admits: () => undefined,
  endsTurn: () => false,
  used: () => Effect.void,
  began: () => Effect.void,
  renewed: () => Effect.void,
  standing: () => ({ reached: undefined, near: [] }),
  wake: Effect.void,
  archived: () => Effect.succeed(undefined),
  costs: () => Effect.succeed([]),
  limits: () => []
}

export const SpendingLimits = Context.Reference<Allowances>("agentd/domain/SpendingLimits", {
  defaultValue: () => unlimited
})

const SHARE = 0.8

/** Returns true if so much of a limit is spent that the user must be warned. */
export const isNear = (spent: number, limit: number): boolean => spent >= SHARE * limit

const TURN_REACHED = "the turn reached"

/** Returns true if a turn was interrupted because it reached its own limit. */
export const isTurnLimit = (reason: string | null | undefined): boolean => reason?.startsWith(TURN_REACHED) === true

const OF = { agent: "the agent", project: "the project", machine: "this machine" } as const
const RESOURCES = { tokens: "tokens", usd: "USD", tool_calls: "tool calls", wall_time: "time" } as const

const amount = (resource: Resource, value: number): string => {
  if (resource === "usd") return value.toFixed(value < 1 ? 4 : 2)
  if (resource !== "wall_time") return `${Math.round(value)}`
  return value < 1_000 ? `${Math.round(value)} ms` : `${Math.round(value / 1_000)} s`
}

/** The name of a limit, such as "the day's budget of tokens for the project". */
export const nameOf = ({ period, resource, whose }: Pick<Reach, "period" | "resource" | "whose">): string => {
  const when = period === "total" ? "the whole" : `the ${period}'s`
  return `${when} budget of ${RESOURCES[resource]} for ${OF[whose]}`
}

/** Describes the spent amount and the limit, such as "120 of 100". */
export const share = ({ limit, resource, spent }: Reach): string =>
  `${amount(resource, spent)} of ${amount(resource, limit)}`

export const spentWords = (reach: Reach): string => `${nameOf(reach)} is spent: ${share(reach)}`

/** Formats a duration, such as "1 h 30 m". */
const time = (ms: number): string => Duration.format(Duration.millis(ms)).replaceAll(/(?<=\d)(?=[a-z])/g, " ")

/** Message about the limit of a turn, such as "the turn reached 2 h: go on, or stop". */
export const turnWords = ({ limit, resource }: Pick<Reach, "limit" | "resource">): string =>
  `${TURN_REACHED} ${resource === "wall_time" ? time(limit) : `${amount(resource, limit)} ${RESOURCES[resource]}`}: go on, or stop`

export const nearWords = (reach: Reach): string =>
  reach.mark ?? `${Math.floor((100 * reach.spent) / reach.limit)} % of ${nameOf(reach)} is spent: ${share(reach)}`
