/**
 * Conversations: the interface that tells features whether a conversation accepts work. The agents feature implements
 * it.
 *
 * Guarantees: a change of status is reported after its rune is durable. Changes are reported in the order of the log.
 */
import { Context, type Effect, type Stream } from "effect"
import type { StorageError } from "../core/event-log/EventLog.ts"

export type Standing =
  /** The agents of the conversation accept messages. */
  | "working"
  /** The conversation is paused, suspended or closing: its agents accept no messages now. */
  | "resting"
  /** The conversation is closed or archived: its log accepts no more runes. */
  | "sealed"

export class Conversations extends Context.Service<
  Conversations,
  {
    /** Ids of all conversations in the log. Waits until the log has been read. */
    readonly known: Effect.Effect<ReadonlyArray<string>>
    /**
     * Returns the current status of a conversation, without waiting. An unknown conversation counts as "working". After
     * `AgentPort.recovered` returns, all conversations are known.
     */
    readonly standing: (conversation: string) => Standing
    /** Status changes of all conversations that happen after the subscription. */
    readonly changes: Stream.Stream<{ readonly conversation: string; readonly standing: Standing }, StorageError>
  }
>()("agentd/domain/Conversations") {}
