/**
 * Allowance: what agents may still spend, as they ask for it and tell of it: limits of a turn, an agent, a project and
 * the machine, in total, by the day and by the month. The feature behind it is budgets/; without one nothing is limited.
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

/** A limit, and what of it is spent. */
export interface Reach {
  readonly whose: Whose
  readonly period: Period
  /** The turn, the day or the month, by name; empty for all time. */
  readonly label: string
  readonly resource: Resource
  readonly spent: number
  readonly limit: number
  /** When it begins anew by itself, ms since the epoch; null: never. */
  readonly until: number | null
  /** True where its agents are ended and do not wait. */
  readonly stops: boolean
  /** No limit: something about the turn that a person would want to know. */
  readonly mark?: string
}

/** An agent that lives. */
export interface Spender extends Address {
  /** As the file says now. */
  readonly limits: () => { readonly agent: BudgetConfig; readonly project: BudgetConfig }
  /** Ends the turn; `keep`: what it was asked is offered again; `turnId`: that turn alone, and the agent waits for a person. */
  readonly interrupt: (reason: string, keep: boolean, turnId?: string) => Effect.Effect<void>
  readonly turn?: () => string | undefined
  /** Ends the agent for good. */
  readonly exhaust: (reach: Reach) => Effect.Effect<void>
}

/** A limit, and whom it holds: the agent, or its project; of the machine neither. */
export interface Limited extends Reach {
  readonly conversation: string
  readonly agent: string
}

/** Tokens and cost that belong together. */
export interface Cost {
  /** The local day, or the month of one that is long ago; the hour where hours were asked for: "2026-11-24T07". */
  readonly day: string
  readonly conversation: string
  readonly agent: string
  /** Empty: not named. */
  readonly model: string
  /** Empty: none. */
  readonly goal: string
  /** With the parts of a cache. */
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly usd: number
  /** Tokens of which nobody said what they cost, and whose model has no price. */
  readonly unpriced: number
  /** Said by the agent, and not believed: in no sum. */
  readonly unlikely?: { readonly tokens: number; readonly usd: number }
}

export interface Standing {
  /** The limit that keeps it from its next turn. */
  readonly reached: Reach | undefined
  readonly near: ReadonlyArray<Reach>
}

export interface Allowances {
  readonly machine: BudgetConfig
  /** For as long as the scope is open; what its conversation has spent is known when it answers. */
  readonly join: (spender: Spender) => Effect.Effect<void, never, Scope.Scope>
  /**
   * The limit that keeps the agent from a turn; `wake` is called when it is worth asking again. `spent`: by its
   * incarnation up to now, of which the newest may not have been told yet.
   */
  readonly admits: (
    who: Address,
    spent: { readonly tokens: number; readonly usd: number },
    wake: () => void
  ) => Reach | "unread" | undefined
  /** The rune `agent.usage` is durable. */
  readonly used: (who: Address, usage: Usage, ref: RuneRef) => Effect.Effect<void>
  /** A new incarnation: its total begins anew. */
  readonly began: (who: Address, ref: RuneRef) => Effect.Effect<void>
  /** The conversation was resumed from a suspension: its total begins anew. */
  readonly renewed: (conversation: string, ref: RuneRef) => Effect.Effect<void>
  readonly standing: (who: Address) => Standing
  /** A file says something else now: those that wait ask again. */
  readonly wake: Effect.Effect<void>
  /** For the rune that archives the conversation; undefined: nothing is known. */
  readonly archived: (conversation: string) => Effect.Effect<ArchivedSpending | undefined>
  /** All that was spent since the day, by conversation, agent, model, goal and day; a stream that cannot be read is left out. */
  readonly costs: (
    since: string,
    /** By the hour: the newest alone are known. */
    options?: { readonly hours: boolean }
  ) => Effect.Effect<ReadonlyArray<Cost>, StorageError>
  /** Every limit of agents that live, of their projects and of the machine, but those of a turn, once each. */
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

/** Whether so much of a limit is spent that a person is warned. */
export const isNear = (spent: number, limit: number): boolean => spent >= SHARE * limit

const TURN_REACHED = "the turn reached"

/** Whether a turn was interrupted for that. */
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
