/**
 * ConversationPort: what an agent needs from its conversation, and what the conversation can do to its agents. The two
 * have no other connection.
 */
import type { Effect } from "effect"
import type { TurnOutcome } from "../../domain/AgentPort.ts"
import type { StorageError } from "../../core/event-log/EventLog.ts"
import type { Spent } from "../machines/Budget.ts"
import type { RuneRef } from "../../core/event-log/Rune.ts"

/** The conversation, as its agents see it. `cause` is the rune that led to the call. */
export interface ConversationPort {
  /** Why no turn may start now, in words; undefined if one may. A plain read. */
  readonly barred: () => string | undefined
  /** Whether the conversation is closing or closed: no turn ever starts again. */
  readonly isOver: () => boolean
  /** True: the turn is durable. False: the conversation no longer takes turns. */
  readonly newTurn: (agent: string, turnId: string, cause: RuneRef) => Effect.Effect<boolean, StorageError>
  /** Durable when it answers. A turn that the conversation does not know changes nothing. */
  readonly turnEnded: (
    agent: string,
    turnId: string,
    outcome: TurnOutcome,
    cause: RuneRef
  ) => Effect.Effect<void, StorageError>
  readonly firstMessage: (messageId: string, cause: RuneRef) => Effect.Effect<void>
  readonly agentReady: (agent: string, cause: RuneRef) => Effect.Effect<void>
  readonly agentFailed: (agent: string, error: string, cause: RuneRef) => Effect.Effect<void>
  /** An agent has terminated or failed: its sub-agents end with it. A repeated report changes nothing. */
  readonly agentEnded: (agent: string, cause: RuneRef) => Effect.Effect<void>
  /** Counts usage against the conversation's budget, enforced at once. The agent's rune `agent.usage` is durable. */
  readonly used: (agent: string, spent: Partial<Spent>, cause: RuneRef) => Effect.Effect<void>
}

/** An agent, as its conversation sees it. */
export interface AgentControl {
  /** Tells the agent's watchers whether it is available for turns now. */
  readonly announce: Effect.Effect<void>
  /** Makes the agent look for work, because the conversation takes turns again. */
  readonly wake: Effect.Effect<void>
  readonly turnId: () => string | undefined
  /** Ends the current turn. `keep`: its messages are queued again (pause, suspension); otherwise they are dropped. */
  readonly interruptTurn: (by: string, reason: string, keep: boolean) => Effect.Effect<void>
  /** Ends the agent after its turn, or at once by force. Returns when no process of the agent is left. */
  readonly terminate: (how: {
    readonly by: string
    readonly reason: string
    readonly force: boolean
  }) => Effect.Effect<void, StorageError>
}
