/**
 * ConversationPort: what an agent needs of the conversation that it lives in, and what the
 * conversation can do to its agents. The two meet nowhere else.
 */
import type { Effect } from "effect"
import type { TurnOutcome } from "../../domain/AgentPort.ts"
import type { StorageError } from "../../core/event-log/EventLog.ts"
import type { Spent } from "../machines/Budget.ts"
import type { RuneRef } from "../../core/event-log/Rune.ts"

/** The conversation, as its agents see it. `cause` is the rune that led there. */
export interface ConversationPort {
  /** Why no turn may start now, in words; undefined when one may. A plain read. */
  readonly barred: () => string | undefined
  /** Whether it is being closed, or is: no turn starts ever again. */
  readonly isOver: () => boolean
  /** Durable when it answers true; false: it is not open to turns any more. */
  readonly newTurn: (agent: string, turnId: string, cause: RuneRef) => Effect.Effect<boolean, StorageError>
  /** Durable when it answers; a turn it does not know (any more) changes nothing. */
  readonly turnEnded: (
    agent: string,
    turnId: string,
    outcome: TurnOutcome,
    cause: RuneRef
  ) => Effect.Effect<void, StorageError>
  readonly firstMessage: (messageId: string, cause: RuneRef) => Effect.Effect<void>
  readonly agentReady: (agent: string, cause: RuneRef) => Effect.Effect<void>
  readonly agentFailed: (agent: string, error: string, cause: RuneRef) => Effect.Effect<void>
  /** An agent is terminated or has failed, for whatever reason: its sub-agents end with it. Again for the same end: nothing. */
  readonly agentEnded: (agent: string, cause: RuneRef) => Effect.Effect<void>
  /** Counted against the conversation's budget; enforced at once. The rune `agent.usage` of the agent is durable. */
  readonly used: (agent: string, spent: Partial<Spent>, cause: RuneRef) => Effect.Effect<void>
}

/** An agent, as its conversation sees it. */
export interface AgentControl {
  /** Tells watchers of the agent whether it is there for turns now. */
  readonly announce: Effect.Effect<void>
  /** Makes the agent look for work: the conversation takes turns again. */
  readonly wake: Effect.Effect<void>
  readonly turnId: () => string | undefined
  /** Ends the turn in progress; `keep`: what it was asked is offered again (a pause, a suspension), else it is dropped. */
  readonly interruptTurn: (by: string, reason: string, keep: boolean) => Effect.Effect<void>
  /** Ends the agent: after its turn, or at once by force. Answers when no process of it is left. */
  readonly terminate: (how: {
    readonly by: string
    readonly reason: string
    readonly force: boolean
  }) => Effect.Effect<void, StorageError>
}
