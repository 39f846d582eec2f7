/**
 * TimelineMessages: the log as a timeline: runes by their place in what a filter finds, and how many there were when.
 */
import { Schema } from "effect"
import { Cause } from "../core/event-log/Rune.ts"
import * as Bounds from "./Bounds.ts"
import { Limits } from "./Limits.ts"

/** Runes of one reply, and spans of time that are counted apart. */
export const MOST_RUNES = 500
export const BUCKETS = 120
/** Of a filter's runes so many have places, the newest. */
export const MOST_PLACES = 20_000

export const question = {
  agent: Schema.optionalKey(Bounds.name),
  stream: Schema.optionalKey(Bounds.name),
  /** Kinds, or beginnings of kinds that end with a dot: `tool.`. */
  kinds: Schema.optionalKey(Bounds.list(Bounds.name, Limits.kinds, "Ask for fewer kinds, or for all of them.")),
  /** The first place of the reply; not there: the newest. */
  from: Schema.optionalKey(Schema.Int),
  n: Bounds.between(0, MOST_RUNES, "Ask for fewer, then go on behind them."),
  /** Only runes of that time on, and before that time, ms since the epoch; its spans are counted. Neither: all, and the last hour's spans. */
  since: Schema.optionalKey(Schema.Finite),
  until: Schema.optionalKey(Schema.Finite),
  internal: Schema.optionalKey(Schema.Boolean),
  caller: Bounds.caller
}
const TimelineQuestion = Schema.Struct(question)
export type TimelineQuestion = typeof TimelineQuestion.Type

export const TimelineRow = Schema.Struct({
  place: Schema.Int,
  eventId: Schema.Int,
  /** ms since the epoch */
  at: Schema.Finite,
  stream: Schema.String,
  seq: Schema.Int,
  actor: Schema.String,
  kind: Schema.String,
  from: Schema.NullOr(Schema.String),
  to: Schema.NullOr(Schema.String),
  trigger: Schema.NullOr(Schema.String),
  cause: Schema.NullOr(Cause),
  /** The beginning of the text in its payload; empty: there is none. */
  says: Schema.String
})
export type TimelineRow = typeof TimelineRow.Type

export const TimelinePage = Schema.Struct({
  /** Runes that have places: all that the filter finds, or the newest of them. */
  total: Schema.Int,
  /** Older ones that match have no place. */
  more: Schema.Boolean,
  /** The place of the first row; of `from`, as far as there is such a place. */
  from: Schema.Int,
  /** Secret runes, and internal ones that nobody asked for, are left out: their places stay empty. */
  rows: Schema.Array(TimelineRow),
  /** The newest rune of the log. */
  head: Schema.Int,
  /** `counts`: of spans of so many ms, from `since` on; `places`: of the first rune of each. */
  density: Schema.Struct({
    since: Schema.Finite,
    width: Schema.Finite,
    counts: Schema.Array(Schema.Int),
    places: Schema.Array(Schema.Int)
  })
})
export type TimelinePage = typeof TimelinePage.Type

export const MOST_CAUSES = 24

export const Causes = Schema.Struct({
  /** With its payload; null where it is not shown or not there. */
  rune: Schema.NullOr(Schema.Struct({ ...TimelineRow.fields, payload: Schema.String })),
  /** Oldest first, the rune itself last; their places say nothing. */
  chain: Schema.Array(TimelineRow),
  /** True: it goes further back than was followed. */
  more: Schema.Boolean
})
export type Causes = typeof Causes.Type
