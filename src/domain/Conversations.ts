/**
 * Conversations: tells features whether work continues in the conversation that they belong to. Agents implement this
 * contract.
 *
 * Guarantees: a change is reported after its rune is durable, in the order of the log.
 */
import { Context, type Effect, type Stream } from "effect"
import type { StorageError } from "../core/event-log/EventLog.ts"

export type Standing =
  /** Agents of the conversation take messages. */
  | "working"
  /** Paused, suspended, or about to be closed: its agents take no messages now. */
  | "resting"
  /** Closed or archived: its log accepts no more runes. */
  | "sealed"

export class Conversations extends Context.Service<
  Conversations,
  {
    /** All conversations of the log; returns when all of them are known. */
    readonly known: Effect.Effect<ReadonlyArray<string>>
    /**
     * A plain read; an unknown conversation counts as "working". All conversations are known after
     * `AgentPort.recovered`.
     */
    readonly standing: (conversation: string) => Standing
    /** Changes of all conversations, from the subscription on. */
    readonly changes: Stream.Stream<{ readonly conversation: string; readonly standing: Standing }, StorageError>
  }
>()("agentd/domain/Conversations") {}
