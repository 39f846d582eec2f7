/**
 * ChannelMessages: shapes of channels that cross a boundary: what a channel shows to a person, and what an agent says
 * in one.
 */
import { Schema } from "effect"
import { Order, TurnConfig } from "../config/ChannelConfig.ts"
import { Word } from "./BoardMessages.ts"

/** Longest text of one post, UTF-8 bytes. */
export const MAX_POST_BYTES = 64 * 1024

export const ChannelPost = Schema.Struct({
  /** Position of the post in the channel, from 1. */
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
  /** Number of posts that it has not been sent yet. */
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
  /** Seats in the turn queue in its order, then all others. */
  seats: Schema.Array(SeatInfo),
  posts: Schema.Int,
  /** In plain words: what it does, or why nothing happens. */
  detail: Schema.String,
  /** When it began to wait for a person, ms since the epoch; undefined: it does not wait. */
  since: Schema.optionalKey(Schema.Finite),
  /** The matter that waits for a person, with the remedy; null: nothing waits. */
  waits: Schema.NullOr(Schema.String),
  /** The newest rune of the channel. */
  restsOn: Schema.Int
})
export type ChannelInfo = typeof ChannelInfo.Type

export const ChannelView = Schema.Struct({
  channel: ChannelInfo,
  turnConfig: TurnConfig,
  /** Oldest first; only those that are still in memory. */
  posts: Schema.Array(ChannelPost)
})
export type ChannelView = typeof ChannelView.Type

/** An agent's signal about its turn: over, or waiting. */
export const Signal = Schema.Union([
  /** Waits for news in the channel, for a person's post there, or for a number of seconds. */
  Schema.TaggedStruct("Wait", {
    reason: Schema.String,
    until: Schema.Union([Schema.Literals(["message", "person"]), Schema.Finite])
  }),
  Schema.TaggedStruct("TurnComplete", {})
])
export type Signal = typeof Signal.Type

/** An agent's act in a channel through its tools; equivalent to the plain-text form. */
export const Utterance = Schema.Union([Schema.TaggedStruct("Post", { text: Schema.String }), ...Signal.members])
export type Utterance = typeof Utterance.Type
