/**
 * Allowance: what agents may still spend, and what they report as spent. Limits apply to a turn, an agent, a project
 * and the machine: in total, per day and per month. The feature behind it is budgets/; without it nothing is limited.
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

/** A limit, and how much of it is spent. */
export interface Reach {
  readonly whose: Whose
  readonly period: Period
  /** Name of the turn, the day or the month; empty: all time. */
  readonly label: string
  readonly resource: Resource
  readonly spent: number
  readonly limit: number
  /** When the limit resets by itself, ms since the epoch; null: never. */
  readonly until: number | null
  /** True: agents that reach the limit are ended; they do not wait. */
  readonly stops: boolean
  /** Set if this is not a limit, but something about the turn that a person would want to know. */
  readonly mark?: string
}

/** A live agent. */
export interface Spender extends Address {
  /** The limits that the config file has now. */
  readonly limits: () => { readonly agent: BudgetConfig; readonly project: BudgetConfig }
  /**
   * Ends the turn. `keep`: its messages are offered again. `turnId`: end only that turn; the agent then waits for a
   * person.
   */
  readonly interrupt: (reason: string, keep: boolean, turnId?: string) => Effect.Effect<void>
  readonly turn?: () => string | undefined
  /** Ends the agent for good. */
  readonly exhaust: (reach: Reach) => Effect.Effect<void>
}

/** A limit, and the agent or project that it applies to; both are empty for the machine. */
export interface Limited extends Reach {
  readonly conversation: string
  readonly agent: string
}

/** Tokens and cost with the same keys. */
export interface Cost {
  /** The local day, or only the month if it is long ago; the hour if hours were requested: "2026-11-24T07". */
  readonly day: string
  readonly conversation: string
  readonly agent: string
  /** Empty: the agent did not name it. */
  readonly model: string
  /** Empty: no goal. */
  readonly goal: string
  /** Includes the tokens read from and written to a cache. */
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly usd: number
  /** Tokens without a known cost: none was reported, and the model has no price. */
  readonly unpriced: number
  /** Reported by the agent, but implausible: not part of any sum. */
  readonly unlikely?: { readonly tokens: number; readonly usd: number }
}

export interface Standing {
  /** The limit that keeps the agent from its next turn. */
  readonly reached: Reach | undefined
  readonly near: ReadonlyArray<Reach>
}

export interface Allowances {
  readonly machine: BudgetConfig
  /** Registers the agent while the scope is open. When this returns, the spending of its conversation is known. */
  readonly join: (spender: Spender) => Effect.Effect<void, never, Scope.Scope>
  /**
   * The limit that keeps the agent from a turn. `wake` is called when it is worth asking again. `spent`: spending of
   * the current incarnation, of which the newest part might not be reported yet.
   */
  readonly admits: (
    who: Address,
    spent: { readonly tokens: number; readonly usd: number },
    wake: () => void
  ) => Reach | "unread" | undefined
  /** Call after the rune `agent.usage` is durable. */
  readonly used: (who: Address, usage: Usage, ref: RuneRef) => Effect.Effect<void>
  /** A new incarnation: its total restarts at zero. */
  readonly began: (who: Address, ref: RuneRef) => Effect.Effect<void>
  /** The conversation was resumed from a suspension: its total restarts at zero. */
  readonly renewed: (conversation: string, ref: RuneRef) => Effect.Effect<void>
  readonly standing: (who: Address) => Standing
  /** A config file has changed: waiting agents ask again. */
  readonly wake: Effect.Effect<void>
  /** Spending for the rune that archives the conversation; undefined: nothing is known. */
  readonly archived: (conversation: string) => Effect.Effect<ArchivedSpending | undefined>
  /**
   * All spending since the day, by conversation, agent, model, goal and day. A stream that cannot be read is left out.
   */
  readonly costs: (
    since: string,
    /** Group by hour; only the newest hours are known. */
    options?: { readonly hours: boolean }
  ) => Effect.Effect<ReadonlyArray<Cost>, StorageError>
  /** Every limit of live agents, of their projects and of the machine, once each; limits of turns are left out. */
  readonly limits: () => ReadonlyArray<Limited>
}

export const unlimited: Allowances = {
  machine: {},
  join: () => Effect.void,
  admits: () => undefined,
  used: () => Effect.void,
  began: () => Effect.void,
  renewed: () => Effect.void,
  standing: () => ({ reached: undefined, near: [] }),
  wake: Effect.void,
  archived: () => Effect.succeed(undefined),
  costs: () => Effect.succeed([]),
  limits: () => []
}

export const Allowance = Context.Reference<Allowances>("agentd/domain/Allowance", { defaultValue: () => unlimited })

const SHARE = 0.8

/** Whether enough of a limit is spent to warn a person. */
export const isNear = (spent: number, limit: number): boolean => spent >= SHARE * limit

const TURN_REACHED = "the turn reached"

/** Whether a turn was interrupted because it reached its own limit. */
export const isTurnLimit = (reason: string | null | undefined): boolean => reason?.startsWith(TURN_REACHED) === true

const OF = { agent: "the agent", project: "the project", machine: "this machine" } as const
const RESOURCES = { tokens: "tokens", usd: "USD", tool_calls: "tool calls", wall_time: "time" } as const

const amount = (resource: Resource, value: number): string => {
  if (resource === "usd") return value.toFixed(value < 1 ? 4 : 2)
  return resource === "wall_time" ? `${Math.round(value / 1000)} s` : `${Math.round(value)}`
}

/** "the day's budget of tokens for the project". */
export const nameOf = ({ period, resource, whose }: Pick<Reach, "period" | "resource" | "whose">): string => {
  const when = period === "total" ? "the whole" : `the ${period}'s`
  return `${when} budget of ${RESOURCES[resource]} for ${OF[whose]}`
}

/** "120 of 100". */
export const share = ({ limit, resource, spent }: Reach): string =>
  `${amount(resource, spent)} of ${amount(resource, limit)}`

export const spentWords = (reach: Reach): string => `${nameOf(reach)} is spent: ${share(reach)}`

/** "1 h 30 m". */
const time = (ms: number): string => Duration.format(Duration.millis(ms)).replaceAll(/(?<=\d)(?=[a-z])/g, " ")

/** "the turn reached 2 h: go on, or stop". */
export const turnWords = ({ limit, resource }: Pick<Reach, "limit" | "resource">): string =>
  `${TURN_REACHED} ${resource === "wall_time" ? time(limit) : `${amount(resource, limit)} ${RESOURCES[resource]}`}: go on, or stop`

export const nearWords = (reach: Reach): string =>
  reach.mark ?? `${Math.floor((100 * reach.spent) / reach.limit)} % of ${nameOf(reach)} is spent: ${share(reach)}`
