/**
 * Dropped: work that an agent was asked for and that ended without its answer: what was asked,
 * and why nothing came of it. Pure.
 *
 * Guarantees: the newest are kept whole, bounded in number and size; older ones are let go and
 * counted. What a person ended is no dropped work, and what a channel or a plan asked is theirs
 * to ask again.
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
  /** A channel's or a plan's: a turn of its own; after an error its sender asks again, not agentd. */
  alone: Schema.optional(Schema.Boolean),
  /** True: the message goes before the waiting ones, and steers the present turn away. */
  steer: Schema.optional(Schema.Boolean),
  /** Of an agent's: so many messages of agents led to it, each sent for the one before; 0 where a person did. */
  hops: Schema.optional(Schema.Int),
  /** The id under which its text stands in the log, where it is asked again. */
  first: Schema.optional(Schema.String),
  /** Files that come with it: their contents lie elsewhere, under their hashes. */
  files: Schema.optional(Schema.Array(GivenFile)),
  /** ms since the epoch */
  at: Schema.Finite
})
export type Message = typeof Message.Type

/** Why a turn came to no answer. */
export const End = Schema.Struct({
  turnId: Schema.String,
  /** "refusal", "max_tokens", "max_turns" … */
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
  /** So many older ones were let go. */
  readonly more: number
}

/** Most messages that one agent keeps, and characters of their texts. */
export const MAX_DROPPED = 100
const MAX_CHARACTERS = 2 * 1024 * 1024

export const none: Kept = { dropped: [], more: 0 }

/** The end of a message that is not told: agents among themselves rest. */
export const resting = ({ at }: Message, reason: string): End => ({ turnId: "", errorType: "circle", reason, at })

/** With more of it; the newest is kept, whatever its size. */
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

/** Why the turn that ends with the event leaves work without an answer; undefined where it does not, or a person would have it so. */
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

/** The author of an interrupt that nobody asked for. */
export const BY_ITSELF = "the agent"
