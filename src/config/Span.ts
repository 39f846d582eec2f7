/**
 * Span: a length of time, as a user writes it in a config.
 *
 * Guarantees: `"30 seconds"`, `"2s"`, `"1.5 minutes"`, `"500ms"` and a plain number (milliseconds) decode to a
 * `Duration`. Any other value, and a span that is negative or longer than 365 days, is refused with a message.
 */
import { Duration, Effect, Schema, SchemaGetter, SchemaIssue } from "effect"

const MS_PER_UNIT: { readonly [unit: string]: number } = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000
}

const UNITS: { readonly [word: string]: keyof typeof MS_PER_UNIT } = {
  ms: "ms",
  milli: "ms",
  millis: "ms",
  millisecond: "ms",
  milliseconds: "ms",
  s: "s",
  sec: "s",
  secs: "s",
  second: "s",
  seconds: "s",
  m: "m",
  min: "m",
  mins: "m",
  minute: "m",
  minutes: "m",
  h: "h",
  hr: "h",
  hour: "h",
  hours: "h",
  d: "d",
  day: "d",
  days: "d"
}

/**
 * Maximum length of a span: longer than any reasonable setting. Effect splits waits that are too long for Node's
 * timers.
 */
const LONGEST_MS = 365 * 86_400_000

const FORM = 'a length of time such as "30 seconds", "2s", "1.5 minutes", "500ms", or a number of milliseconds'

const millisOf = (text: string): number | undefined => {
  const parts = /^\s*(-?\d+(?:\.\d+)?)\s*([a-z]+)\s*$/i.exec(text)
  const unit = parts?.[2]?.toLowerCase()
  if (parts?.[1] === undefined || unit === undefined || !Object.hasOwn(UNITS, unit)) return undefined
  return Number(parts[1]) * MS_PER_UNIT[UNITS[unit]!]!
}

const refused = (message: string, input: unknown) => Effect.fail(new SchemaIssue.InvalidValue({ message }, input))

const decode = (input: string | number) => {
  const millis = typeof input === "number" ? input : millisOf(input)
  if (millis === undefined) return refused(`must be ${FORM}`, input)
  if (millis < 0) return refused("must not be negative", input)
  if (millis > LONGEST_MS) return refused("must be at most 365 days", input)
  return Effect.succeed(Duration.millis(millis))
}

/** A span, decoded from text or a number of milliseconds, and encoded as milliseconds. */
export const Span = Schema.Union([Schema.String, Schema.Finite])
  .annotate({ expected: FORM })
  .pipe(
    Schema.decodeTo(Schema.Duration, {
      decode: SchemaGetter.transformEffect(decode),
      encode: SchemaGetter.transform((span): string | number => Duration.toMillis(span))
    })
  )

export const SpanOrOff = Schema.Union([Schema.Literal("off"), Span])

/** The timeout in ms; null if the timeout is off. */
export const limitIn = (limit: typeof SpanOrOff.Type): number | null =>
  limit === "off" ? null : Duration.toMillis(limit)

const millisIn = (text: string): number => millisOf(text) ?? Infinity

/** A span with limits. The limits are passed as text, because the error message also shows them. */
export const spanBetween = (least: string, most: string) =>
  Span.check(
    Schema.makeFilter(
      (span: Duration.Duration) =>
        Duration.toMillis(span) >= millisIn(least) && Duration.toMillis(span) <= millisIn(most),
      { message: `must be from ${least} to ${most}` }
    )
  )
