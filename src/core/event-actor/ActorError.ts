/**
 * ActorError: why an actor does not answer, or takes no message.
 */
import { Schema } from "effect"

export class ActorStopped extends Schema.TaggedError<ActorStopped>()("ActorStopped", {
  address: Schema.String,
  /**
   * `crashed`: on this very message. `self`: an actor asked itself. `cycle`: the asker works
   * for an ask that this actor has put off. `unanswered`: put off, and not answered in time.
   * `restarting`: it crashed on another; its supervisor brings it back.
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
