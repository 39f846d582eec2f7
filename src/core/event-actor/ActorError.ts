/** ActorError: errors of messages to an actor that does not answer, or whose mailbox is full. */
import { Schema } from "effect"

export class ActorStopped extends Schema.TaggedError<ActorStopped>()("ActorStopped", {
  address: Schema.String,
  /**
   * - `crashed`: the actor crashed on this message.
   * - `self`: an actor asked itself.
   * - `cycle`: this actor deferred an ask, and the asker needs this answer to complete that deferred ask.
   * - `unanswered`: the ask was deferred, and was not answered in time.
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
  unstarted: "the actor was not started in time: start it under its supervisor first",
  stopped: "start the actor again, then ask again",
  restarting: "the message was not handled: ask again in a moment",
  crashed: "the message crashes the actor: see the crash in the log, then change the message",
  self: "an actor cannot wait for its own answer: read its state directly, or send a tell",
  cycle: "two actors would wait for each other: send a tell to one of them instead of an ask",
  unanswered: "the actor accepted the message but did not answer in time: read the state, then ask again"
} as const

/**
 * Creates the error without a stack trace, by setting `stackTraceLimit` to 0 during the synchronous call. The trace is
 * the most expensive part of the error, and would show the scheduler instead of the asker.
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
    remedy: "send more slowly, or use tell, which waits for room"
  })
