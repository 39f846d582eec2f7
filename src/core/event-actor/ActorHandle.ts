/**
 * ActorHandle: the reference that others have to an actor, and every way in which an ask can end.
 *
 * Guarantees: `ask` always ends, with a durable answer or with a typed error, whatever happens to
 * the actor. If the actor restarts, `ask` waits at most 10 s. If the mailbox is full, `tell` waits
 * for room, also during a restart. Messages that cannot be delivered are dead-lettered. Messages
 * that an *action* sends never wait for room, because they follow from mail that was accepted: a
 * cycle of actors cannot block itself.
 */
import type { Effect } from "effect"
import type { RuneRefused, StorageError } from "../event-log/EventLog.ts"
import type { Cause } from "../event-log/Rune.ts"
import type { ActorStopped, MailboxFull } from "./ActorError.ts"
import type { Refused } from "./Refused.ts"

/** An address for messages of one type: a handle, or the result of `context.ref`. */
export interface Ref<in M> {
  /** `<stream>/<actor>` */
  readonly address: string
  /** Exists only in the type: carries the type of the messages. */
  readonly takes?: (message: M) => void
}

/** The answer to an ask if `decide` gives no reply. All of it is durable. */
export interface Committed<S> {
  /** eventId of the newest rune that the message led to; 0 if it led to none. */
  readonly eventId: number
  readonly cause: Cause | null
  readonly state: S
}

/** Every error of an ask, apart from the actor's own (`Refuse`). */
export type AskError = ActorStopped | MailboxFull | Refused | RuneRefused | StorageError

/** `E` is the type of the actor's own errors (`Refuse`). */
export interface ActorHandle<out S, in M, out E = unknown> extends Ref<M> {
  /** The committed state: a plain read, never ahead of the log. */
  readonly state: S
  /** Waits for room while the mailbox is full. Mail to a stopped actor is dead-lettered. */
  tell(message: M, cause?: Cause | null): Effect.Effect<void>
  /** Fails if `tell` would wait. */
  offer(message: M, cause?: Cause | null): Effect.Effect<void, MailboxFull | ActorStopped>
  /**
   * Returns when the runes that the message led to are durable. `Reply` is the reply of the actor's
   * `decide` to this message, or `Committed` if there is none. An ask that is interrupted before
   * its turn is not carried out, and its place in the mailbox becomes free.
   */
  ask<Reply = Committed<S>>(message: M, cause?: Cause | null): Effect.Effect<Reply, AskError | E>
  /**
   * `tell` for code outside of Effect. Does not wait: if the mailbox is full, the message is
   * dead-lettered. Returns true if the mailbox took it.
   */
  tellNow(message: M, cause?: Cause | null): boolean
}
