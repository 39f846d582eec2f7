/** Failure: the error of a verb that cannot be carried out. `ErrorText` formats it. */
import { Schema } from "effect"

export class VerbFailed extends Schema.TaggedError<VerbFailed>()("VerbFailed", {
  message: Schema.String,
  remedy: Schema.String,
  exitCode: Schema.Int
}) {}
