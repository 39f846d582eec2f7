/**
 * UnansweredMessages: messages to an agent that were never answered, each with the reason. Pure.
 *
 * Guarantees: The newest messages are stored in full, limited in number and size. Older messages are deleted and only
 * counted. Messages of work that the user cancelled are not stored. Messages of channels and plans are not stored,
 * because their senders repeat them.
 */
import { Schema } from "effect"
import { AttachedFile } from "../../runs/AttachedFile.ts"
import type * as TurnMachine from "./TurnMachine.ts"

export const Message = Schema.Struct({
  messageId: Schema.String,
  /** The sender: a user's login, or a prefixed name such as `agent:<name>`. */
  from: Schema.String,
  text: Schema.String,
  urgent: Schema.Boolean,
  /** True for a message from a channel or plan. It gets its own turn, and its sender repeats it after an error. */
  alone: Schema.optional(Schema.Boolean),
  /** True if the message goes first in the queue and interrupts the current turn. */
  steer: Schema.optional(Schema.Boolean),
  /** For a message from an agent: how many messages from agents led to it, one after another. */
  hops: Schema.optional(Schema.Int),
  /** The original id of a message that was queued again. The log contains the text under that id. */
  first: Schema.optional(Schema.String),
  /** Files attached to the message. Their contents are stored separately, by hash. */
  files: Schema.optional(Schema.Array(AttachedFile)),
  /** When the message was received or queued again, ms since the epoch. */
  at: Schema.Finite
})
export type Message = typeof Message.Type

/** Why a turn got no answer. */
export const End = Schema.Struct({
  turnId: Schema.String,
  /** The stop reason, for example "refusal", "max_tokens" or "max_turns". */
  errorType: Schema.String,
  reason: Schema.String,
  /** When the turn ended, ms since the epoch. */
  at: Schema.Finite
})
export type End = typeof End.Type

export interface UnansweredMessages extends End {
  readonly message: Message
}

export interface Kept {
  /** Stored messages, oldest first. */
  readonly dropped: ReadonlyArray<UnansweredMessages>
  /** Number of older messages, which are no longer stored. */
  readonly more: number
}

/** Maximum number of dropped messages stored for one agent. `MAX_CHARACTERS`: their maximum total length. */
export const MAX_DROPPED = 100
const MAX_CHARACTERS = 2 * 1024 * 1024

export const none: Kept = { dropped: [], more: 0 }

/** The reason for a withheld message: agents sent each other too many messages without a message from the user. */
export const resting = ({ at }: Message, reason: string): End => ({ turnId: "", errorType: "circle", reason, at })

/** Removes the oldest messages beyond the limits. The newest message is kept regardless of its size. */
export const add = ({ dropped, more }: Kept, messages: ReadonlyArray<Message>, end: End): Kept => {
  const { at, errorType, reason, turnId } = end
  const all = [...dropped, ...messages.map((message) => ({ message, turnId, errorType, reason, at }))]
  let [from, room] = [all.length, MAX_CHARACTERS]
  while (from > 0 && all.length - from < MAX_DROPPED) {
    room -= all[from - 1]!.message.text.length
    if (room < 0 && from < all.length) break
    from -= 1
  }
  return { dropped: all.slice(from), more: more + from }
}

export const without = ({ dropped, more }: Kept, messageIds: ReadonlyArray<string>): Kept => {
  const gone = new Set(messageIds)
  return { dropped: dropped.filter(({ message }) => !gone.has(message.messageId)), more }
}

/** Why the turn's end leaves messages without an answer; undefined if it leaves none, or if the user ended the turn. */
export const endOf = (event: TurnMachine.Event, turnId: string, now: number): End | undefined => {
  switch (event._tag) {
    case "stream_error":
      return { turnId, errorType: event.errorType, reason: event.message, at: now }
    case "tool_crash":
      return { turnId, errorType: "tool_crash", reason: event.message, at: now }
    case "interrupt":
      return event.by === BY_ITSELF ? { turnId, errorType: "interrupted", reason: event.reason, at: now } : undefined
    default:
      return undefined
  }
}

/** Recorded as the author of an interrupt that no user requested. */
export const BY_ITSELF = "the agent"
