/**
 * StateJson: converts the state of a fold to JSON, and back.
 *
 * Values that JSON cannot express become `{"$": kind, …}`: Map, Set, Effect's HashMap, HashSet and Option, undefined,
 * -0, and numbers that are not finite. An object of another class causes an error: its fold must define how such an
 * object is converted.
 */
import { HashMap, HashSet, Option } from "effect"

type Json = string | number | boolean | null | ReadonlyArray<Json> | { readonly [key: string]: Json }

const entriesOf = (entries: Iterable<readonly [unknown, unknown]>): Json =>
  Array.from(entries, ([key, value]) => [encode(key), encode(value)])

const encodeObject = (value: object): Json => {
  if (Array.isArray(value)) return value.map(encode)
  if (value instanceof Map) return { $: "Map", of: entriesOf(value) }
  if (value instanceof Set) return { $: "Set", of: Array.from(value, encode) }
  if (HashMap.isHashMap(value)) return { $: "HashMap", of: entriesOf(value) }
  if (HashSet.isHashSet(value)) return { $: "HashSet", of: Array.from(value, encode) }
  if (Option.isOption(value)) return Option.isSome(value) ? { $: "Some", of: encode(value.value) } : { $: "None" }
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) {
    throw new TypeError(`${(prototype as { constructor: { name: string } }).constructor.name} is no plain state`)
  }
  const entries = Object.entries(value).map(([key, one]) => [key, encode(one)] as const)
  return "$" in value ? { $: "Object", of: entries } : Object.fromEntries(entries)
}

export const encode = (value: unknown): Json => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0)
        ? value
        : { $: "Number", of: Object.is(value, -0) ? "-0" : String(value) }
    case "undefined":
      return { $: "Undefined" }
    case "object":
      return value === null ? null : encodeObject(value)
    default:
      throw new TypeError(`a ${typeof value} is no plain state`)
  }
}

const pairs = (of: unknown): ReadonlyArray<readonly [unknown, unknown]> =>
  (of as ReadonlyArray<readonly [unknown, unknown]>).map(([key, value]) => [decode(key), decode(value)])

const decodeTagged = (tag: unknown, of: unknown): unknown => {
  switch (tag) {
    case "Map":
      return new Map(pairs(of))
    case "Set":
      return new Set((of as ReadonlyArray<unknown>).map(decode))
    case "HashMap":
      return HashMap.fromIterable(pairs(of))
    case "HashSet":
      return HashSet.fromIterable((of as ReadonlyArray<unknown>).map(decode))
    case "Some":
      return Option.some(decode(of))
    case "None":
      return Option.none()
    case "Object":
      return Object.fromEntries(
        (of as ReadonlyArray<readonly [string, unknown]>).map(([key, one]) => [key, decode(one)])
      )
    case "Number":
      return Number(of)
    case "Undefined":
      return undefined
    default:
      throw new TypeError(`${String(tag)} is no form of a plain state`)
  }
}

export const decode = (plain: unknown): unknown => {
  if (typeof plain !== "object" || plain === null) return plain
  if (Array.isArray(plain)) return plain.map(decode)
  if ("$" in plain) return decodeTagged(plain.$, "of" in plain ? plain.of : undefined)
  return Object.fromEntries(Object.entries(plain).map(([key, one]) => [key, decode(one)]))
}
