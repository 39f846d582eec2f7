/**
 * ConversationPort: the interface between an agent and its conversation, in both directions. They have no other
 * connection.
 */
import type { Effect } from "effect"
import type { TurnOutcome } from "../../domain/AgentPort.ts"
import type { StorageError } from "../../core/event-log/EventLog.ts"
import type { Spent } from "../machines/Budget.ts"
import type { RuneRef } from "../../core/event-log/Rune.ts"

/** `cause`: the rune that led to the call. */
export interface ConversationPort {
  /** Why no turn may start now; undefined if a turn may start. Reads memory only. */
  readonly barred: () => string | undefined
  /** True if the conversation is closing or closed, so that no turn will ever start again. */
  readonly isOver: () => boolean
  /** Returns true when the turn is durable, or false if the conversation no longer accepts turns. */
  readonly newTurn: (agent: string, turnId: string, cause: RuneRef) => Effect.Effect<boolean, StorageError>
  /**
   * Reports the end of a turn, which is durable on return. If the conversation does not know the turn, nothing changes.
   */
  readonly turnEnded: (
    agent: string,
    turnId: string,
    outcome: TurnOutcome,
    cause: RuneRef
  ) => Effect.Effect<void, StorageError>
  readonly firstMessage: (messageId: string, cause: RuneRef) => Effect.Effect<void>
  readonly agentReady: (agent: string, cause: RuneRef) => Effect.Effect<void>
  readonly agentFailed: (agent: string, error: string, cause: RuneRef) => Effect.Effect<void>
  /** Reports that an agent has terminated or failed. Its sub-agents then end too. A repeated report changes nothing. */
  readonly agentEnded: (agent: string, cause: RuneRef) => Effect.Effect<void>
  /**
   * Counts usage against the conversation's budget, which is checked at once. The rune `agent.usage` is already
   * durable.
   */
  readonly used: (agent: string, spent: Partial<Spent>, cause: RuneRef) => Effect.Effect<void>
}

export interface AgentControl {
  /** Reports to the agent's watchers whether the agent is available for turns now. */
  readonly announce: Effect.Effect<void>
  /** Makes the agent look for work when the conversation accepts turns again. */
  readonly wake: Effect.Effect<void>
  readonly turnId: () => string | undefined
  /** Ends the current turn. `keep`: true queues its messages again (after a pause or suspension), false drops them. */
  readonly interruptTurn: (by: string, reason: string, keep: boolean) => Effect.Effect<void>
  /**
   * Ends the agent after its current turn, or at once if forced. On return, all processes of the agent have ended.
   */
  readonly terminate: (how: {
    readonly by: string
    readonly reason: string
    readonly force: boolean
  }) => Effect.Effect<void, StorageError>
}
