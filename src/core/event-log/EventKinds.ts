/**
 * EventKinds: kinds of runes. A kind has the Schema of its payload, its default visibility, and whether it may be
 * appended lazily. A feature declares its kinds in a table. The program combines all tables into one registry.
 *
 * Payloads are checked when they are written, so they are typed when they are read:
 *
 *     const kinds = { "lamp.lit": kind(Schema.Struct({ by: Schema.String })), … }
 *     const read = reader(kinds)
 *     const rune = read(anyRune) // undefined, or a rune of the table
 *     switch (rune?.kind) {
 *       case "lamp.lit":
 *         return rune.payload.by // a string
 *     }
 *
 * A rune of an unknown kind is refused when it is appended (a bug of the writer). When read, it is accepted, because a
 * newer program wrote it; its visibility is then internal.
 */
import { Cause, Exit, Schema } from "effect"
import type { Payload, Rune, Visibility } from "./Rune.ts"

/** Schema of a payload. The store contains the encoded payload as JSON. */
export type Shape<P = unknown> = Schema.Codec<P, unknown>

export interface Kind<P = unknown> {
  readonly payload: Shape<P>
  readonly visibility: Visibility
  /** True if no fold reads this kind. Its runes may then be appended without waiting, and dropped under load. */
  readonly lazy: boolean
  /** True if the stream accepts no more runes after a rune of this kind. */
  readonly seals: boolean
}

export const kind = <P>(payload: Shape<P>, options: Partial<Omit<Kind, "payload">> = {}): Kind<P> => ({
  payload,
  visibility: options.visibility ?? "public",
  lazy: options.lazy ?? false,
  seals: options.seals ?? false
})

export type Table = { readonly [name: string]: Kind<never> | Kind }

export type PayloadOf<K> = K extends Kind<infer P> ? P : never

/** The fields of a rune that a reader needs. */
export type Said = Pick<Rune, "kind" | "payload">

/** A rune of one of the table's kinds, with the type of its payload: `switch (rune.kind)` narrows that type. */
export type RuneOf<T extends Table, R extends Said = Rune> = {
  readonly [Name in keyof T & string]: Omit<R, "kind" | "payload"> & {
    readonly kind: Name
    readonly payload: PayloadOf<T[Name]>
  }
}[keyof T & string]

/** Returns the typed rune. Undefined if the rune has another kind, or if its payload was erased or archived. */
export type Reader<T extends Table> = <R extends Said>(rune: R) => RuneOf<T, R> | undefined

/** Returns true if a payload is no longer stored: it is empty, or only a mark that the payload is in an archive. */
const isGone = (payload: Payload): boolean => {
  for (const name in payload) return name === "archived" && payload[name] === true
  return true
}

/**
 * Returns a reader for the table's kinds. The reader does not decode payloads, because payloads are checked when they
 * are written.
 */
export const reader = <const T extends Table>(table: T): Reader<T> => {
  const names: ReadonlySet<string> = new Set(Object.keys(table))
  return <R extends Said>(rune: R) =>
    names.has(rune.kind) && !isGone(rune.payload) ? (rune as unknown as RuneOf<T, R>) : undefined
}

/**
 * Like `reader`, but checks each payload again. For code that displays runes and must not fail on a rune of a newer
 * program.
 */
export const checkedReader = <const T extends Table>(table: T): Reader<T> => {
  const checks = checksOf(table)
  return <R extends Said>(rune: R) =>
    checks.get(rune.kind)?.(rune.payload) === true ? (rune as unknown as RuneOf<T, R>) : undefined
}

const checksOf = (table: Table): ReadonlyMap<string, (payload: unknown) => boolean> =>
  new Map(Object.entries(table).map(([name, { payload }]) => [name, Schema.is(payload)]))

/** The part of a registry that the log needs. */
export interface KnownKinds {
  readonly names: ReadonlyArray<string>
  readonly get: (name: string) => Kind | undefined
  /** Kinds of runes after which a stream accepts no more runes. */
  readonly sealing: ReadonlyArray<string>
  /** Returns true if the payload has the shape that its kind requires; false for an unknown kind. */
  readonly accepts: (name: string, payload: unknown) => boolean
  /** Describes what is wrong with a payload. Slow, so it is only used for the message of a refusal. */
  readonly explain: (name: string, payload: unknown) => string
}

export interface EventKinds<T extends Table> extends KnownKinds {
  readonly names: ReadonlyArray<keyof T & string>
  readonly lazy: (name: string) => boolean
}

export const make = <const T extends Table>(table: T): EventKinds<T> => {
  const kinds = new Map<string, Kind>(Object.entries(table) as ReadonlyArray<[string, Kind]>)
  const checks = checksOf(table)
  const explain = (name: string, payload: unknown): string => {
    const entry = kinds.get(name)
    if (entry === undefined) return `no kind of rune is named "${name}"`
    const decoded = Schema.decodeUnknownExit(entry.payload)(payload)
    return Exit.isFailure(decoded) ? String(Cause.squash(decoded.cause)) : "the payload does not have the kind's type"
  }
  return {
    names: [...kinds.keys()],
    get: (name) => kinds.get(name),
    sealing: [...kinds].filter(([, { seals }]) => seals).map(([name]) => name),
    lazy: (name) => kinds.get(name)?.lazy ?? false,
    accepts: (name, payload) => checks.get(name)?.(payload) ?? false,
    explain
  }
}
