/**
 * ActorHandle: the reference through which other code sends messages to an actor, and the possible results of an ask.
 *
 * Guarantees: `ask` always ends, with a durable answer or a typed error. If the actor restarts, `ask` waits at most 10
 * s. If the mailbox is full, `tell` waits for room, even during a restart. Messages that cannot be delivered are
 * dead-lettered. A message that an action sends never waits for room, because it follows from mail that was already
 * accepted. Therefore a cycle of actors cannot block itself.
 */
import type { Effect } from "effect"
import type { RuneRefused, StorageError } from "../event-log/EventLog.ts"
import type { Cause } from "../event-log/Rune.ts"
import type { ActorStopped, MailboxFull } from "./ActorError.ts"
import type { Refused } from "./Refused.ts"

/** A reference to an actor that accepts messages of type `M`: a handle, or the result of `context.ref`. */
export interface Ref<in M> {
  /** Address of the actor: `<stream>/<actor>`. */
  readonly address: string
  /** Never set. The field exists only so that the type contains the message type. */
  readonly takes?: (message: M) => void
}

/** The answer to an ask if `decide` returned no reply. The state and its runes are durable. */
export interface Committed<S> {
  /** eventId of the newest rune that the message caused; 0: the message caused no rune. */
  readonly eventId: number
  readonly cause: Cause | null
  readonly state: S
}

/** The errors with which an ask can fail, in addition to the actor's own error type (`Refuse`). */
export type AskError = ActorStopped | MailboxFull | Refused | RuneRefused | StorageError

/** Type parameter `E`: the actor's own errors (`Refuse`). */
export interface ActorHandle<out S, in M, out E = unknown> extends Ref<M> {
  /** The actor's committed state: all runes that it includes are durable. */
  readonly state: S
  /**
   * Sends a message without waiting for an answer. While the mailbox is full, `tell` waits. If the actor has stopped,
   * the message is dead-lettered.
   */
  tell(message: M, cause?: Cause | null): Effect.Effect<void>
  /** Sends a message like `tell`, but fails if the mailbox is full or the actor has stopped. */
  offer(message: M, cause?: Cause | null): Effect.Effect<void, MailboxFull | ActorStopped>
  /**
   * Sends a message and waits until the runes that it causes are durable. Returns the reply of the actor's `decide`, or
   * a `Committed` if there is none. If the ask is interrupted before the actor handles the message, the message is not
   * handled.
   */
  ask<Reply = Committed<S>>(message: M, cause?: Cause | null): Effect.Effect<Reply, AskError | E>
  /**
   * Sends a message from code that does not use Effect. Never waits: if the mailbox is full, the message is
   * dead-lettered. Returns true if the mailbox accepted the message.
   */
  tellNow(message: M, cause?: Cause | null): boolean
}
