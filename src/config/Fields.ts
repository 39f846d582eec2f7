/**
 * Fields: building blocks for config schemas: strings, numbers and names with limits. Each has a description, which
 * editors, error messages and docs show.
 *
 * Guarantees: no string contains a NUL byte. Every number has a limit. A pattern is part of the JSON Schema (flag `u`).
 */
import { Effect, Schema } from "effect"

/** Matches names that are safe in a path, an address, a mail subject and a unit name. */
export const NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/u
export const NAME_FORM = "lower-case letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 63"

/** The cast is safe, because the rebuilt schema has the same types. */
export const described = <S extends Schema.Top>(
  schema: S,
  description: string,
  extra?: { readonly default: S["Encoded"] }
): S => Schema.annotateEncoded<S>({ description, ...extra })(schema) as unknown as S

export const withDefault =
  <S extends Schema.Top>(value: S["Encoded"], description: string) =>
  (schema: S) =>
    Schema.withDecodingDefaultKey<S>(Effect.succeed(value))(described(schema, description, { default: value }))

/** A field that can be omitted; the decoded value then has no such field. */
export const optional = <S extends Schema.Top>(schema: S, description: string) =>
  Schema.optionalKey(described(schema, description))

/** Patterns need the flag `u` to become part of the JSON Schema. */
export const matching = (pattern: RegExp, message: string) => Schema.isPattern(pattern, { message })

/** Text without NUL bytes, because the kernel would end an argument or a path at a NUL byte. */
// oxlint-disable-next-line no-control-regex
export const Text = Schema.String.check(matching(/^[^\u0000]*$/u, "must not contain a NUL byte"))
// One pattern for both rules, because a second check would lose the description. Matching is linear: the look-ahead
// runs once.
// oxlint-disable-next-line no-control-regex
export const Word = Schema.String.check(matching(/^(?=[^\u0000]*$)\s*\S/u, "must not be empty or contain a NUL byte"))
export const FilePath = Schema.String.check(
  matching(
    // oxlint-disable-next-line no-control-regex
    /^(?!~)(?=[^\u0000]*$)\s*\S/u,
    "must be a path, absolute or relative to the folder of this file; ~ is not expanded"
  )
)

export const whole = (least: number, most: number) => {
  const message = `must be a whole number from ${least} to ${most}`
  return Schema.Finite.check(
    Schema.isInt({ message }),
    Schema.isBetween({ minimum: least, maximum: most }, { message })
  )
}

export const Name = Schema.String.check(matching(NAME, `must be ${NAME_FORM}`))

export const VariableName = Schema.String.check(
  matching(/^(?!AGENTD_)[A-Za-z_][A-Za-z0-9_]*$/u, "must be the name of an environment variable")
)

export const Environment = Schema.Record(VariableName, Text)
