/**
 * JsonReader: reads a JSON object from an untrusted sender, field by field.
 *
 * Guarantees: every returned value has its type and stays within its limit. The first problem is recorded with its
 * field and a remedy; values read after it must not be used. Fields that are not read may contain anything.
 */
import { Result, Schema } from "effect"
import { isReadonlyObject as isObject } from "effect/Predicate"

/** The body is not a valid event. Its `field` and `remedy` are part of the 400 response. */
export class EventRefused extends Schema.TaggedError<EventRefused>()("EventRefused", {
  field: Schema.String,
  message: Schema.String,
  remedy: Schema.String
}) {}

type Json = { readonly [key: string]: unknown }

/** Maximum length of an id or a name, in characters. */
export const MAX_NAME = 256
/** Maximum length of a path, in characters. */
export const MAX_PATH = 4_096
/** Maximum length of an error message, in characters. */
const MAX_TEXT = 2_000

const shown = (value: unknown): string =>
  value === null ? "null" : Array.isArray(value) ? "a list" : `a ${typeof value}`

export class JsonReader {
  readonly json: Json
  private problem: EventRefused | undefined = undefined

  private constructor(json: Json) {
    this.json = json
  }

  /** Reads a body. The result is what `read` returns, or the first problem. */
  static read<A>(body: unknown, read: (body: JsonReader) => A): Result.Result<A, EventRefused> {
    if (!isObject(body)) {
      return Result.fail(
        new EventRefused({
          field: "",
          message: `The body is ${shown(body)}, not a JSON object.`,
          remedy: "Send one JSON object, as the coding CLI provides it."
        })
      )
    }
    const reader = new JsonReader(body as Json)
    const read_ = read(reader)
    return reader.problem === undefined ? Result.succeed(read_) : Result.fail(reader.problem)
  }

  refuse(field: string, message: string, remedy: string): void {
    this.problem ??= new EventRefused({ field, message, remedy })
  }

  /** The value of the first of these fields that is present. A null value counts as missing. */
  private first(fields: ReadonlyArray<string>): readonly [field: string, value: unknown] {
    const field = fields.find((name) => this.json[name] !== undefined && this.json[name] !== null) ?? fields[0]!
    return [field, this.json[field] ?? undefined]
  }

  maybe(fields: string | ReadonlyArray<string>, max = MAX_NAME): string | undefined {
    const [field, value] = this.first(typeof fields === "string" ? [fields] : fields)
    if (value === undefined) return undefined
    if (typeof value !== "string") {
      this.refuse(field, `${field} is ${shown(value)}.`, `Give ${field} as a text, or leave it out.`)
      return undefined
    }
    if (value.length > max) {
      this.refuse(field, `${field} has ${value.length} characters.`, `Give at most ${max}.`)
      return undefined
    }
    return value === "" ? undefined : value
  }

  /** Reads a required string. */
  text(fields: string | ReadonlyArray<string>, max = MAX_NAME): string {
    const value = this.maybe(fields, max)
    if (value !== undefined) return value
    const names = typeof fields === "string" ? [fields] : fields
    this.refuse(names[0]!, `${names.join(" or ")} is missing or empty.`, `Add ${names[0]} as a text.`)
    return ""
  }

  /** Reads an optional string for display, cut to `MAX_TEXT` characters. Undefined if it is empty or not a string. */
  words(field: string): string | undefined {
    const value = this.json[field]
    return typeof value === "string" && value !== "" ? value.slice(0, MAX_TEXT) : undefined
  }

  /** Reads an optional integer above 0. */
  count(field: string): number | undefined {
    const value = this.json[field]
    if (value === undefined || value === null) return undefined
    if (typeof value === "number" && Number.isSafeInteger(value) && value > 0) return value
    this.refuse(field, `${field} is not a whole number above 0.`, `Send a whole number above 0, or leave ${field} out.`)
    return undefined
  }

  /** Reads an optional point in time: ISO 8601, or a number of seconds or milliseconds since the epoch. */
  time(field: string): number | undefined {
    const value = this.json[field]
    if (value === undefined || value === null) return undefined
    const at = typeof value === "string" ? Date.parse(value) : typeof value === "number" ? inMillis(value) : Number.NaN
    if (Number.isFinite(at)) return at
    this.refuse(
      field,
      `${field} is not a point in time.`,
      "Give it as ISO 8601 or as a number since 1970, or leave it out."
    )
    return undefined
  }

  /** Reads a nested object; empty if the body has none. */
  within(field: string): Json {
    const value = this.json[field]
    return isObject(value) ? value : {}
  }

  list(field: string): ReadonlyArray<unknown> {
    const value = this.json[field]
    return Array.isArray(value) ? value : []
  }
}

/** Converts a time since the epoch to ms. Numbers below 1e11 are taken as seconds, which is right until year 5138. */
const inMillis = (value: number): number => (Math.abs(value) < 1e11 ? value * 1_000 : value)
