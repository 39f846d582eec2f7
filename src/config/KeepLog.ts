/**
 * KeepLog: the setting for how much of the log is kept: a time, or a size on disk.
 *
 * Guarantees: `"90 days"` and `"20 GB"` decode. A number without a unit, and any other value, is refused with a message
 * that shows the valid form. The original text is kept, so that messages can quote it.
 */
import { Duration, Effect, Schema, SchemaGetter, SchemaIssue } from "effect"
import { Size } from "./Size.ts"
import { Span } from "./Span.ts"

const FORM = 'a length of time such as "90 days", or a size such as "20 GB"'

export const Kept = Schema.Struct({
  text: Schema.String,
  /** Maximum age of runes. Older runes are deleted; null: no age limit. */
  time: Schema.NullOr(Schema.Duration),
  /** Maximum size of the log, in bytes. If the log is larger, its oldest runes are deleted; null: no size limit. */
  bytes: Schema.NullOr(Schema.Finite)
})
export type Kept = typeof Kept.Type

const decodeSpan = Schema.decodeUnknownEffect(Span)
const decodeSize = Schema.decodeUnknownEffect(Size)

const decode = (text: string) => {
  const isSize = /b\s*$/i.test(text)
  const decoded: Effect.Effect<Kept, Schema.SchemaError> = isSize
    ? Effect.map(decodeSize(text), (bytes) => ({ text, time: null, bytes }))
    : Effect.map(decodeSpan(text), (time) => ({ text, time, bytes: null }))
  return Effect.mapError(decoded, () => new SchemaIssue.InvalidValue({ message: `must be ${FORM}` }, text))
}

export const KeepLog = Schema.String.annotate({ expected: FORM }).pipe(
  Schema.decodeTo(Schema.toType(Kept), {
    decode: SchemaGetter.transformEffect(decode),
    encode: SchemaGetter.transform(({ text }): string => text)
  })
)

/** The bounds for deleting old runes. `others`: number of bytes of the log outside its segments. */
export const boundsOf = ({ bytes, time }: Kept, now: number, others: number) => ({
  before: time === null ? 0 : now - Duration.toMillis(time),
  keepBytes: bytes === null ? Number.MAX_SAFE_INTEGER : Math.max(0, bytes - others)
})
