/**
 * Bounds: schemas with limits for what a caller may send. A limit is part of the field's schema, together with the
 * message that rejects a value beyond it.
 *
 * Guarantees: a payload that does not fit its schema becomes a refusal, never a defect. The refusal names the field,
 * its value, the limit and a remedy.
 */
import { Schema, type SchemaIssue } from "effect"
import { quoted } from "../runs/FileDescription.ts"
import { MAX_NAME } from "../runs/AttachedFile.ts"
import { CommandRefused, refuse } from "../domain/Messages.ts"
import type { RefusalCode } from "../domain/RefusalCode.ts"
import { NAME, NAME_FORM } from "../config/Fields.ts"
import { Limits } from "./Limits.ts"

type Refusal<A> = (
  field: string,
  value: A
) => { readonly code?: RefusalCode; readonly message: string; readonly remedy: string }

const REFUSAL = "agentd/refusal"

/** Checks a value against a limit. `json`: the JSON Schema keywords that express the limit, as far as possible. */
const bound = <A>(holds: (value: A) => boolean, refusal: Refusal<A>, json: object = {}) =>
  Schema.makeFilter(holds, { [REFUSAL]: refusal, toJsonSchema: () => ({ ...json }) })

const tooLong = (field: string, is: number, may: number, unit: string): string =>
  `${field} has ${is} ${unit} and may have ${may}.`

/** A string of at most `limit` characters. */
export const line = (limit: number) =>
  Schema.String.check(
    bound<string>(
      ({ length }) => length <= limit,
      (field, { length }) => ({
        code: "too_large",
        message: tooLong(field, length, limit, "characters"),
        remedy: `Give a shorter ${field}.`
      }),
      { maxLength: limit }
    )
  )

export const pid = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2 ** 31 - 1 }))
export const name = line(Limits.nameLength)
/** A day or a month, such as 2026-11-24 or 2026-11; empty for any day. */
export const day = Schema.String.check(
  bound<string>(
    (value) => /^(\d{4}-\d\d(-\d\d)?)?$/u.test(value),
    (field) => ({ message: `${field} is not a day or a month.`, remedy: "Give it as 2026-11-24 or 2026-11." }),
    { pattern: String.raw`^(\d{4}-\d\d(-\d\d)?)?$` }
  )
)
export const path = line(Limits.pathLength)
export const reason = line(Limits.reasonLength)

/** A string of at most `limit` bytes that is not blank. */
export const text = (
  limit: number = Limits.textBytes,
  remedy = "Put the long part in a file that the agent can read, and send its path."
) =>
  Schema.String.check(
    bound<string>(
      (value) => Buffer.byteLength(value) <= limit,
      (field, value) => ({
        code: "too_large",
        message: tooLong(field, Buffer.byteLength(value), limit, "bytes"),
        remedy
      }),
      { maxLength: limit }
    ),
    bound<string>(
      (value) => value.trim() !== "",
      (field) => ({ message: `${field} is empty.`, remedy: `Send a ${field} that is not blank.` }),
      { pattern: String.raw`\S` }
    )
  )

/** A list of at most `limit` entries. */
export const list = <S extends Schema.Constraint>(item: S, limit: number, remedy: string) =>
  Schema.Array(item).check(
    bound<ReadonlyArray<S["Type"]>>(
      ({ length }) => length <= limit,
      (field, { length }) => ({ code: "too_large", message: tooLong(field, length, limit, "entries"), remedy }),
      { maxItems: limit }
    )
  )

/** An integer between two numbers, both included. */
export const between = (least: number, most: number, remedy: string) =>
  Schema.Int.check(
    bound<number>(
      (value) => value >= least && value <= most,
      (field, value) => ({ message: `${field} is ${value} and must lie between ${least} and ${most}.`, remedy }),
      { minimum: least, maximum: most }
    )
  )

/** A file name: not a path, and not empty. */
export const filename = line(MAX_NAME).check(
  bound<string>(
    (value) => value !== "" && value !== "." && value !== ".." && !/[/\0]/u.test(value),
    (_, value) => ({ message: `${quoted(value)} is not a file name.`, remedy: "Give its name without a path." })
  )
)

export const sha256 = Schema.String.check(
  bound<string>(
    (value) => /^[0-9a-f]{64}$/u.test(value),
    (field) => ({ message: `${field} is not a SHA-256 hash.`, remedy: "Give it in 64 hexadecimal digits." }),
    { pattern: "^[0-9a-f]{64}$" }
  )
)

/** A piece of a file's content, in base64. */
export const piece = line(Math.ceil(Limits.pieceBytes / 3) * 4).check(
  bound<string>(
    (value) => /^[A-Za-z0-9+/]*={0,2}$/u.test(value),
    (field) => ({ message: `${field} is not in base64.`, remedy: "Give it in base64." }),
    { pattern: "^[A-Za-z0-9+/]*={0,2}$" }
  )
)

export const agentName = Schema.String.check(
  bound<string>(
    (value) => NAME.test(value),
    (_, value) => ({ message: `"${value.slice(0, 100)}" cannot be an agent's name.`, remedy: `Use ${NAME_FORM}.` }),
    { pattern: NAME.source }
  )
)

/** A user's login or a program's name: not `agentd`, and without a colon, unlike names of agents and channels. */
const by = name.check(
  bound<string>(
    (value) => value !== "agentd" && !value.includes(":"),
    (field, value) => ({
      message: `${field}: "${value.slice(0, 100)}" is not a user's name.`,
      remedy: "Give a login, or the name of a program."
    })
  )
)

export const caller = Schema.Struct({ by, config: Schema.NullOr(path) })

export const named = { name, caller }

/** Names of wrapper objects in payloads. Field names in messages do not contain them. */
const WRAPPERS = new Set<PropertyKey>(["request", "report", "utterance"])

const fieldOf = (path: ReadonlyArray<PropertyKey>): string => {
  const named = path.filter((key) => typeof key !== "number")
  return (WRAPPERS.has(named[0] ?? "") && named.length > 1 ? named.slice(1) : named).map(String).join(".")
}

const shown = (value: unknown): string => {
  const json = JSON.stringify(value) ?? String(value)
  return json.length <= 100 ? json : `${json.slice(0, 100)}…`
}

/** The first field that does not fit its schema, and the issue with it. */
const first = (
  issue: SchemaIssue.Issue,
  path: ReadonlyArray<PropertyKey>
): { readonly issue: SchemaIssue.Issue; readonly path: ReadonlyArray<PropertyKey> } => {
  switch (issue._tag) {
    case "Pointer":
      return first(issue.issue, [...path, ...issue.path])
    case "Encoding":
      return first(issue.issue, path)
    case "Composite":
      return first(issue.issues[0], path)
    case "AnyOf": {
      const [inner] = issue.issues
      return inner === undefined ? { issue, path } : first(inner, path)
    }
    default:
      return { issue, path }
  }
}

/** The refusal for a schema issue. The issue must include the rejected input. */
export const refusalOf = (whole: SchemaIssue.Issue): CommandRefused => {
  const { issue, path } = first(whole, [])
  const field = path.length === 0 ? "the payload" : fieldOf(path)
  const remedy =
    "Send what this daemon's version accepts. If agentd itself sent it, the versions of client and daemon differ: agentd restart."
  if (issue._tag === "Filter") {
    const says = issue.filter.annotations?.[REFUSAL] as Refusal<unknown> | undefined
    if (says !== undefined) return new CommandRefused({ code: "invalid", ...says(field, issue.input) })
  }
  if (issue._tag === "MissingKey") return refuse("invalid", `${field} is missing.`, remedy)
  if (issue._tag === "UnexpectedKey") return refuse("invalid", `${field} is not known.`, remedy)
  return refuse("invalid", `${field} cannot be ${shown(issue.input)}.`, remedy)
}
