/**
 * TimelineMessages: requests and replies about the log as a timeline: runes by their `place` (number) among the matches
 * of a filter, and the number of runes over time.
 */
import { Schema } from "effect"
import { Cause } from "../core/event-log/Rune.ts"
import * as Bounds from "./Bounds.ts"
import { Limits } from "./Limits.ts"

/** Maximum number of runes in one reply, and number of time spans for which runes are counted. */
export const MOST_RUNES = 500
export const BUCKETS = 120
/** Number of a filter's newest matches that have a `place`. */
export const MOST_PLACES = 20_000

export const question = {
  agent: Schema.optionalKey(Bounds.name),
  stream: Schema.optionalKey(Bounds.name),
  /** Kinds of runes, or prefixes of kinds, which end with a dot: `tool.`. */
  kinds: Schema.optionalKey(Bounds.list(Bounds.name, Limits.kinds, "Ask for fewer kinds, or for all of them.")),
  /** `place` of the first rune in the reply; undefined for the newest runes. */
  from: Schema.optionalKey(Schema.Int),
  n: Bounds.between(0, MOST_RUNES, "Ask for fewer, then continue after them."),
  /**
   * Only runes from `since` on and before `until`, in ms since the epoch. This time is divided into the spans for which
   * runes are counted. If both are omitted: all runes, and the spans of the last hour.
   */
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
  /** Time of the rune, ms since the epoch. */
  at: Schema.Finite,
  stream: Schema.String,
  seq: Schema.Int,
  actor: Schema.String,
  kind: Schema.String,
  from: Schema.NullOr(Schema.String),
  to: Schema.NullOr(Schema.String),
  trigger: Schema.NullOr(Schema.String),
  cause: Schema.NullOr(Cause),
  /** The beginning of the text in the rune's payload; empty if the payload contains none. */
  says: Schema.String
})
export type TimelineRow = typeof TimelineRow.Type

export const TimelinePage = Schema.Struct({
  /** Number of runes that have a `place`: all matches, or only the newest of them. */
  total: Schema.Int,
  /** True if there are older matches, which have no `place`. */
  more: Schema.Boolean,
  /** `place` of the first row: `from`, moved into the range of existing places if necessary. */
  from: Schema.Int,
  /** The runes. Secret ones, and internal ones that were not requested, are left out, although they have a `place`. */
  rows: Schema.Array(TimelineRow),
  /** eventId of the newest rune in the log. */
  head: Schema.Int,
  /**
   * `counts`: number of runes in each span of `width` ms, from `since` on. `places`: `place` of a span's first rune.
   */
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
  /** The rune with its payload; null if it is not shown or does not exist. */
  rune: Schema.NullOr(Schema.Struct({ ...TimelineRow.fields, payload: Schema.String })),
  /** The chain of causes, oldest first, ending with the rune itself. The field `place` has no meaning in these rows. */
  chain: Schema.Array(TimelineRow),
  /** True if the chain continues further back. */
  more: Schema.Boolean
})
export type Causes = typeof Causes.Type
