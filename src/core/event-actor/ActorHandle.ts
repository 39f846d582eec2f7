/**
 * ActorHandle: what others hold of an actor, and every way in which an ask can end.
 *
 * Guarantees: `ask` always ends, with an answer that is durable or with a typed error,
 * whatever becomes of the actor; it waits out a restart, for 10 s at most. `tell` waits
 * for room while the mailbox is full, through a restart too; what cannot be delivered is
 * dead-lettered. What an *action* sends never waits for room, since it follows from mail
 * that was taken: no circle of actors can block itself.
 */
import type { Effect } from "effect"
import type { RuneRefused, StorageError } from "../event-log/EventLog.ts"
import type { Cause } from "../event-log/Rune.ts"
import type { ActorStopped, MailboxFull } from "./ActorError.ts"
import type { Refused } from "./Refused.ts"

/** Where messages of one type can be sent: a handle, or what `context.ref` answers. */
export interface Ref<in M> {
  /** `<stream>/<actor>` */
  readonly address: string
  /** Only names the type of its messages. */
  readonly takes?: (message: M) => void
}

/** The answer to an ask where `decide` names no reply: durable by then. */
export interface Committed<S> {
  /** The newest rune that the message led to; 0 where it led to none. */
  readonly eventId: number
  readonly cause: Cause | null
  readonly state: S
}

/** Every way in which an ask ends without an answer, besides the actor's own words. */
export type AskError = ActorStopped | MailboxFull | Refused | RuneRefused | StorageError

/** `E` is what the actor refuses with in its own words (`Refuse`). */
export interface ActorHandle<out S, in M, out E = unknown> extends Ref<M> {
  /** The committed state: a plain read, never ahead of the log. */
  readonly state: S
  /** Waits for room while the mailbox is full. A stopped actor's mail is dead-lettered. */
  tell(message: M, cause?: Cause | null): Effect.Effect<void>
  /** Refuses where `tell` would wait. */
  offer(message: M, cause?: Cause | null): Effect.Effect<void, MailboxFull | ActorStopped>
  /**
   * Answers once what the message led to is durable. `Reply` is what the actor's `decide`
   * replies to this message; where it names no reply, `Committed`. An ask that is
   * interrupted before its turn is not carried out, and gives its place back.
   */
  ask<Reply = Committed<S>>(message: M, cause?: Cause | null): Effect.Effect<Reply, AskError | E>
  /**
   * `tell` for code that runs below Effect: does not wait; a full mailbox dead-letters the
   * message. True if the mailbox took it.
   */
  tellNow(message: M, cause?: Cause | null): boolean
}
