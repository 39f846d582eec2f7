/**
 * Conversations: what a feature may know of the conversation that its work belongs
 * to: whether work goes on there. Agents keep this contract.
 *
 * Guarantees: a change is told after its rune is durable, in the order of the log.
 */
import { Context, type Effect, type Stream } from "effect"
import type { StorageError } from "../core/event-log/EventLog.ts"

export type Standing =
  /** Agents of the conversation take messages. */
  | "working"
  /** Paused, suspended, or about to be closed: its agents take none now. */
  | "resting"
  /** Closed or archived: its log takes nothing more. */
  | "sealed"

export class Conversations extends Context.Service<
  Conversations,
  {
    /** All conversations of the log; answers once every one is known. */
    readonly known: Effect.Effect<ReadonlyArray<string>>
    /** A plain read; one that is not known works. All of the log are known once `AgentPort.recovered` answers. */
    readonly standing: (conversation: string) => Standing
    /** From the subscription on, all conversations. */
    readonly changes: Stream.Stream<{ readonly conversation: string; readonly standing: Standing }, StorageError>
  }
>()("agentd/domain/Conversations") {}
