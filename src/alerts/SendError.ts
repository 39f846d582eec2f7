/**
 * SendError: why a message could not be sent, with what helps and whether trying again will.
 */
import { Schema } from "effect"
import { FailureClass } from "./Retry.ts"

export class SendError extends Schema.TaggedError<SendError>()("SendError", {
  message: Schema.String,
  remedy: Schema.String,
  class: FailureClass
}) {}

/** Only a person can mend it. */
export const setup = (message: string, remedy: string): SendError => new SendError({ message, remedy, class: "setup" })
