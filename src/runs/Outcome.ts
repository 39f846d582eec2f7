/**
 * Outcome: how a run ended. The class of the outcome determines what the worker does next: count an error and wait,
 * wait until a limit resets, or stop permanently.
 */
import { Schema } from "effect"

/**
 * Why a run ended without counting as an error. `unavailable`: its provider could not be reached. `auth`: its login was
 * refused. `taken`: agentd ended the run because agentd itself stopped. `lost`: it is unknown how the run ended.
 */
export const UncountedReason = Schema.Literals(["quota", "unavailable", "auth", "overflow", "held", "lost", "taken"])
export type UncountedReason = typeof UncountedReason.Type

export const Outcome = Schema.Union([
  Schema.TaggedStruct("Success", {}),
  /** An end that counts as an error. `detail` contains the exit code or signal, and the last line of output. */
  Schema.TaggedStruct("Error", { detail: Schema.String }),
  Schema.TaggedStruct("Timeout", {}),
  /**
   * An end that does not count as an error. `until`: when to retry, ms since the epoch. `detail`: the provider's
   * message, if no turn has reported it.
   */
  Schema.TaggedStruct("Uncounted", {
    reason: UncountedReason,
    until: Schema.optional(Schema.Finite),
    detail: Schema.optional(Schema.String)
  }),
  /** An error that a retry cannot fix, for example a billing problem or a missing binary. `remedy` says what to do. */
  Schema.TaggedStruct("Fatal", { detail: Schema.String, remedy: Schema.String })
])
export type Outcome = typeof Outcome.Type
