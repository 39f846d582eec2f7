/**
 * ActorRef: what others hold of an actor, and every way in which it can refuse.
 *
 * Guarantees: `ask` always ends, with an answer that is durable or with a typed
 * error, whatever becomes of the actor; `tell` never loses a message in silence:
 * what cannot be delivered is dead-lettered.
 *
 * An ask belongs to one incarnation: it fails when that ends. A tell belongs to
 * the mailbox, which outlives incarnations.
 */
import { type Effect, Schema } from "effect"
import type { Cause } from "../event-log/Rune.ts"

export class ActorStopped extends Schema.TaggedError<ActorStopped>()("ActorStopped", {
  address: Schema.String,
  /**
   * `crashed`: on this very message. `self`: an actor asked itself. `cycle`: the asker works
   * for an ask that this actor has put off. `unanswered`: put off, and not answered in time.
   * `restarting`: it crashed on another; its supervisor brings it back.
   */
  reason: Schema.Literals(["unstarted", "stopping", "stopped", "restarting", "crashed", "self", "cycle", "unanswered"]),
  message: Schema.String,
  remedy: Schema.String
}) {}

export class MailboxFull extends Schema.TaggedError<MailboxFull>()("MailboxFull", {
  address: Schema.String,
  capacity: Schema.Int,
  message: Schema.String,
  remedy: Schema.String
}) {}

/** `E` is what this actor's answers can fail with besides. */
export interface ActorRef<in M, out A = void, out E = never> {
  /** `<stream>/<actor>`: unique in the registry. */
  readonly address: string
  /** Waits for room while the mailbox is full (back-pressure). */
  tell(message: M, cause?: Cause): Effect.Effect<void>
  /** Refuses where `tell` would wait. */
  offer(message: M, cause?: Cause): Effect.Effect<void, MailboxFull | ActorStopped>
  /** Answers once what the message led to is committed. */
  ask(message: M, cause?: Cause): Effect.Effect<A, E | MailboxFull | ActorStopped>
  /**
   * `tell` for code that runs below Effect (a child's exit, a listener): does not
   * wait; a full mailbox dead-letters the message. True if the mailbox took it.
   */
  tellNow(message: M, cause?: Cause): boolean
}

const remedies = {
  unstarted: "it was not started in time: start it under its supervisor first",
  stopping: "it ends now; ask again once it has been started",
  stopped: "start it again before you ask it",
  restarting: "ask again in a moment; it was not carried out",
  crashed: "the message itself breaks the actor: see its crash in the log, then change the message",
  self: "an actor waits for its own answer for ever: read the state at hand, or tell",
  cycle: "each waits for the other: tell one of the two instead of asking it",
  unanswered: "it was taken and put off, and no answer came: read the state, then ask again"
} as const

/**
 * Carries no stack: it would show the scheduler, not the asker, and recording it
 * costs more than all the rest of the refusal. Nothing else runs under the limit.
 */
export const actorStopped = (address: string, reason: ActorStopped["reason"]) => {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 0
  try {
    return new ActorStopped({
      address,
      reason,
      message: `${address} does not answer: ${reason}`,
      remedy: remedies[reason]
    })
  } finally {
    Error.stackTraceLimit = limit
  }
}

export const mailboxFull = (address: string, capacity: number) =>
  new MailboxFull({
    address,
    capacity,
    message: `${address} has ${capacity} messages waiting`,
    remedy: "send slower, or use tell, which waits for room"
  })
