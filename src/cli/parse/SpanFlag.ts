/** SpanFlag: parses the duration in a flag, such as `90s`, `10m` or `2 hours`. */
import { Duration, Option, Schema } from "effect"
import { Span } from "../../config/Span.ts"

const decodeSpan = Schema.decodeUnknownOption(Span)

/** The duration in ms. Throws if the text is not a duration. */
export const spanOf = (text: string): number => {
  const span = decodeSpan(text)
  if (Option.isNone(span)) throw new Error('Expected a duration such as 90s, 10m or "2 hours"')
  return Duration.toMillis(span.value)
}
