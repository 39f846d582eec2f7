/**
 * Dropped: messages to an agent that were never answered, and the reason for each. Pure.
 *
 * Guarantees: the newest messages are stored whole, bounded in number and size; older ones are discarded and counted.
 * Work that a person cancelled does not count. Channels and plans repeat their own messages.
 */
import { Schema } from "effect"
import { GivenFile } from "../../runs/GivenFile.ts"
import type * as TurnMachine from "./TurnMachine.ts"

export const Message = Schema.Struct({
  messageId: Schema.String,
  /** The sender: a person's login, or `agent:<name>`. */
  from: Schema.String,
  text: Schema.String,
  urgent: Schema.Boolean,
  /** True for a message of a channel or plan: it gets a turn of its own, and after an error its sender repeats it. */
  alone: Schema.optional(Schema.Boolean),
  /** True: the message goes before the other waiting messages, and steers the current turn away. */
  steer: Schema.optional(Schema.Boolean),
  /** For a message of an agent: length of the chain of agent messages that led to it; 0 if a person sent it. */
  hops: Schema.optional(Schema.Int),
  /** If the message is asked again: the id under which its text is in the log. */
  first: Schema.optional(Schema.String),
  /** Files that come with the message. Their contents are stored elsewhere, by hash. */
  files: Schema.optional(Schema.Array(GivenFile)),
  /** ms since the epoch */
  at: Schema.Finite
})
export type Message = typeof Message.Type

/** Why a turn got no answer. */
export const End = Schema.Struct({
  turnId: Schema.String,
  /** For example "refusal", "max_tokens", "max_turns". */
  errorType: Schema.String,
  reason: Schema.String,
  /** ms since the epoch */
  at: Schema.Finite
})
export type End = typeof End.Type

export interface Dropped extends End {
  readonly message: Message
}

export interface Kept {
  /** Oldest first. */
  readonly dropped: ReadonlyArray<Dropped>
  /** Number of older messages that were discarded. */
  readonly more: number
}

/** Maximum number of dropped messages that one agent stores, and of characters of their texts. */
export const MAX_DROPPED = 100
const MAX_CHARACTERS = 2 * 1024 * 1024

export const none: Kept = { dropped: [], more: 0 }

/** The end of a message that is withheld, because agents sent each other too many without a person. */
export const resting = ({ at }: Message, reason: string): End => ({ turnId: "", errorType: "circle", reason, at })

/** Adds dropped messages. The newest is stored whatever its size. */
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

/** Why the turn's end leaves work without an answer; undefined if it does not, or if a person ended the turn. */
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

/** The author of an interrupt that nobody requested. */
export const BY_ITSELF = "the agent"
