/**
 * SendError: the reason why a message could not be sent, a remedy, and whether a retry can help.
 */
import { Schema } from "effect"
import { FailureClass } from "./Retry.ts"

export class SendError extends Schema.TaggedError<SendError>()("SendError", {
  message: Schema.String,
  remedy: Schema.String,
  class: FailureClass
}) {}

/** An error that only the user can fix. */
export const setup = (message: string, remedy: string): SendError => new SendError({ message, remedy, class: "setup" })
