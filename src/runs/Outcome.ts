/**
 * Outcome: how a run ended. Its class picks the worker's policy: count and back
 * off, wait until it resets, or stop for good.
 */
import { Schema } from "effect"

/**
 * Why a run ended without counting as an error; `unavailable`: its provider could not be had, `auth`: its login was
 * refused, `taken`: agentd's own end took it, `lost`: nobody knows how it ended.
 */
export const UncountedReason = Schema.Literals(["quota", "unavailable", "auth", "overflow", "held", "lost", "taken"])
export type UncountedReason = typeof UncountedReason.Type

export const Outcome = Schema.Union([
  Schema.TaggedStruct("Success", {}),
  /** Counts. `detail` says code or signal, and what the last line was. */
  Schema.TaggedStruct("Error", { detail: Schema.String }),
  Schema.TaggedStruct("Timeout", {}),
  /** Does not count; `until` (ms since the epoch) is when to try again; `detail`: what its provider said, where no turn tells it. */
  Schema.TaggedStruct("Uncounted", {
    reason: UncountedReason,
    until: Schema.optional(Schema.Finite),
    detail: Schema.optional(Schema.String)
  }),
  /** Billing, a binary that is not there: no retry will help. `remedy` says what will. */
  Schema.TaggedStruct("Fatal", { detail: Schema.String, remedy: Schema.String })
])
export type Outcome = typeof Outcome.Type
