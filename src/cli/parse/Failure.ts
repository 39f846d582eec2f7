/** Failure: how a verb fails that cannot do what it is asked. `Explanation` has what is told of it. */
import { Schema } from "effect"

export class VerbFailed extends Schema.TaggedError<VerbFailed>()("VerbFailed", {
  message: Schema.String,
  remedy: Schema.String,
  exitCode: Schema.Int
}) {}
