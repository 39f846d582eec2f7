/**
 * Size: an amount of memory or disk space, as a user writes it in a config.
 *
 * Guarantees: `"4 GB"`, `"512MB"`, `"1.5 GiB"` and a plain number (bytes) decode to a whole number of bytes. Any other
 * value, and a size below 1 MB or above 1000 TB, is refused with a message.
 */
import { Effect, Schema, SchemaGetter, SchemaIssue } from "effect"

const UNITS: { readonly [unit: string]: number } = {
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40
}

const LEAST = 1e6
const MOST = 1e15

const FORM = 'a size such as "4 GB", "512MB", "1.5 GiB", or a number of bytes'

const bytesOf = (text: string): number | undefined => {
  const [, amount, unit = ""] = /^\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*$/i.exec(text) ?? []
  const factor = Object.hasOwn(UNITS, unit.toLowerCase()) ? UNITS[unit.toLowerCase()] : undefined
  return amount === undefined || factor === undefined ? undefined : Math.round(Number(amount) * factor)
}

const refused = (message: string, input: unknown) => Effect.fail(new SchemaIssue.InvalidValue({ message }, input))

const decode = (input: string | number) => {
  const size = typeof input === "number" ? Math.round(input) : bytesOf(input)
  if (size === undefined) return refused(`must be ${FORM}`, input)
  if (size < LEAST) return refused("must be at least 1 MB", input)
  if (size > MOST) return refused("must be at most 1000 TB", input)
  return Effect.succeed(size)
}

/** A size, decoded from text or a number of bytes, and encoded as a number of bytes. */
export const Size = Schema.Union([Schema.String, Schema.Finite])
  .annotate({ expected: FORM })
  .pipe(
    Schema.decodeTo(Schema.Finite, {
      decode: SchemaGetter.transformEffect(decode),
      encode: SchemaGetter.transform((size): string | number => size)
    })
  )
