/**
 * ChannelMessages: what channels tell a person, and what an agent says in one:
 * the shapes that cross a boundary.
 */
import { Schema } from "effect"
import { Order, TurnConfig } from "../config/ChannelConfig.ts"
import { Word } from "./BoardMessages.ts"

/** Longest text of one post, UTF-8 bytes. */
export const MAX_POST_BYTES = 64 * 1024

export const ChannelPost = Schema.Struct({
  /** The post's place in the channel, from 1. */
  seq: Schema.Int,
  eventId: Schema.Int,
  /** ms since the epoch */
  at: Schema.Finite,
  kind: Schema.Literals(["person", "agent", "notice"]),
  /** A login or an agent's name; empty for a notice. */
  from: Schema.String,
  text: Schema.String
})
export type ChannelPost = typeof ChannelPost.Type

export const SeatInfo = Schema.Struct({
  agent: Schema.String,
  /** The word for people: who acts next. */
  word: Word,
  state: Schema.Literals(["OFFLINE", "IDLE", "QUEUED", "ACTIVE", "WAITING"]),
  /** When that state was entered, ms since the epoch; 0 before the first move. */
  since: Schema.Finite,
  /** The eventId of the rune that entered it. */
  restsOn: Schema.Int,
  /** The seat's place in the turn queue, from 1; null when it is in none. */
  position: Schema.NullOr(Schema.Int),
  /** Posts that it has not been told of. */
  unread: Schema.Int,
  /** When the turn or the wait ends by itself, ms since the epoch. */
  until: Schema.NullOr(Schema.Finite),
  /** In plain words: what it does or waits for. */
  detail: Schema.String
})
export type SeatInfo = typeof SeatInfo.Type

export const ChannelInfo = Schema.Struct({
  conversation: Schema.String,
  project: Schema.String,
  name: Schema.String,
  /** The word for people: who acts next. */
  word: Word,
  topic: Schema.String,
  order: Order,
  paused: Schema.Boolean,
  closed: Schema.Boolean,
  floor: Schema.NullOr(Schema.String),
  /** In the order of the queue, then those that are in none. */
  seats: Schema.Array(SeatInfo),
  posts: Schema.Int,
  /** In plain words: what it does, or why nothing happens. */
  detail: Schema.String,
  /** When it began to wait for a person, ms since the epoch; not there: it does not. */
  since: Schema.optionalKey(Schema.Finite),
  /** The matter that waits for a person, with the remedy; null while nothing does. */
  waits: Schema.NullOr(Schema.String),
  /** The newest rune of the channel. */
  restsOn: Schema.Int
})
export type ChannelInfo = typeof ChannelInfo.Type

export const ChannelView = Schema.Struct({
  channel: ChannelInfo,
  turnConfig: TurnConfig,
  /** Oldest first; as many as are kept at hand. */
  posts: Schema.Array(ChannelPost)
})
export type ChannelView = typeof ChannelView.Type

/** An agent's signal about its turn: over, or waiting. */
export const Signal = Schema.Union([
  /** Until news in the channel, a person's word there, or so many seconds have passed. */
  Schema.TaggedStruct("Wait", {
    reason: Schema.String,
    until: Schema.Union([Schema.Literals(["message", "person"]), Schema.Finite])
  }),
  Schema.TaggedStruct("TurnComplete", {})
])
export type Signal = typeof Signal.Type

/** An agent's act in a channel through its tools; the same as in plain text. */
export const Utterance = Schema.Union([Schema.TaggedStruct("Post", { text: Schema.String }), ...Signal.members])
export type Utterance = typeof Utterance.Type
