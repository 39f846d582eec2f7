/** ActorError: errors of messages to an actor that does not answer, or whose mailbox is full. */
import { Schema } from "effect"

export class ActorStopped extends Schema.TaggedError<ActorStopped>()("ActorStopped", {
  address: Schema.String,
  /**
   * - `crashed`: the actor crashed on this message.
   * - `self`: an actor asked itself.
   * - `cycle`: the asker works for an ask that this actor has put off.
   * - `unanswered`: the ask was put off, and not answered in time.
   * - `restarting`: the actor crashed on another message; its supervisor restarts it.
   */
  reason: Schema.Literals(["unstarted", "stopped", "restarting", "crashed", "self", "cycle", "unanswered"]),
  message: Schema.String,
  remedy: Schema.String
}) {}

export class MailboxFull extends Schema.TaggedError<MailboxFull>()("MailboxFull", {
  address: Schema.String,
  capacity: Schema.Int,
  message: Schema.String,
  remedy: Schema.String
}) {}

const remedies = {
  unstarted: "it was not started in time: start it under its supervisor first",
  stopped: "start it again before you ask it",
  restarting: "ask again in a moment; it was not carried out",
  crashed: "the message itself breaks the actor: see its crash in the log, then change the message",
  self: "an actor waits for its own answer for ever: read the state at hand, or tell",
  cycle: "each waits for the other: tell one of the two instead of asking it",
  unanswered: "it was taken and put off, and no answer came: read the state, then ask again"
} as const

/**
 * Creates the error without a stack trace. The trace would show the scheduler, not the asker, and is the most expensive
 * part of the error. No other code runs while `stackTraceLimit` is 0.
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
