/** ChannelMessages: schemas of the control socket and of agent tools for channels, their posts and their seats. */
import { Schema } from "effect"
import { Order, TurnConfig } from "../config/ChannelConfig.ts"
import { Word } from "./BoardMessages.ts"

/** Maximum length of a post's text, in UTF-8 bytes. */
export const MAX_POST_BYTES = 64 * 1024

export const ChannelPost = Schema.Struct({
  /** Position of the post in its channel, starting at 1. */
  seq: Schema.Int,
  eventId: Schema.Int,
  /** When the post was written, in ms since the epoch. */
  at: Schema.Finite,
  kind: Schema.Literals(["person", "agent", "notice"]),
  /** Author of the post: a user's login or an agent's name; empty: the post is a notice from agentd. */
  from: Schema.String,
  text: Schema.String
})
export type ChannelPost = typeof ChannelPost.Type

export const SeatInfo = Schema.Struct({
  agent: Schema.String,
  word: Word,
  state: Schema.Literals(["OFFLINE", "IDLE", "QUEUED", "ACTIVE", "WAITING"]),
  /** When the seat entered its state, in ms since the epoch; 0: its state has never changed. */
  since: Schema.Finite,
  /** eventId of the rune by which the seat entered its state. */
  restsOn: Schema.Int,
  /** Position of the seat in the turn queue, starting at 1; null: the seat is not queued. */
  position: Schema.NullOr(Schema.Int),
  unread: Schema.Int,
  /** When the seat's turn or wait times out, in ms since the epoch; null: no timeout. */
  until: Schema.NullOr(Schema.Finite),
  /** Plain text: what the seat's agent is doing or waiting for. */
  detail: Schema.String
})
export type SeatInfo = typeof SeatInfo.Type

export const ChannelInfo = Schema.Struct({
  conversation: Schema.String,
  project: Schema.String,
  name: Schema.String,
  word: Word,
  topic: Schema.String,
  order: Order,
  paused: Schema.Boolean,
  closed: Schema.Boolean,
  floor: Schema.NullOr(Schema.String),
  /** All seats: first those in the turn queue, in queue order, then the others. */
  seats: Schema.Array(SeatInfo),
  posts: Schema.Int,
  /** Plain text: what is happening in the channel, or why nothing is happening. */
  detail: Schema.String,
  /** Since when the channel waits for the user, in ms since the epoch; undefined: it does not wait for the user. */
  since: Schema.optionalKey(Schema.Finite),
  /** The question or problem that waits for the user, with a command; null: the channel does not wait for the user. */
  waits: Schema.NullOr(Schema.String),
  /** eventId of the channel's newest rune. */
  restsOn: Schema.Int
})
export type ChannelInfo = typeof ChannelInfo.Type

export const ChannelView = Schema.Struct({
  channel: ChannelInfo,
  turnConfig: TurnConfig,
  /** The posts that the daemon still has in memory, oldest first. */
  posts: Schema.Array(ChannelPost)
})
export type ChannelView = typeof ChannelView.Type

/** A signal from an agent: its turn is over, or it waits. */
export const Signal = Schema.Union([
  /** The agent waits for any post in the channel, for a user's post, or for a number of seconds. */
  Schema.TaggedStruct("Wait", {
    reason: Schema.String,
    until: Schema.Union([Schema.Literals(["message", "person"]), Schema.Finite])
  }),
  Schema.TaggedStruct("TurnComplete", {})
])
export type Signal = typeof Signal.Type

/** A post or signal that an agent sends to a channel with a tool call or, with the same effect, as plain text. */
export const Utterance = Schema.Union([Schema.TaggedStruct("Post", { text: Schema.String }), ...Signal.members])
export type Utterance = typeof Utterance.Type
