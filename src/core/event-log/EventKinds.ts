/**
 * EventKinds: kinds of runes. Each has the Schema of its payload, who may read it by default, and whether it may be
 * appended lazily. A feature declares its kinds in a table; the program makes one registry of all tables.
 *
 * A payload that was checked when it was written has its type when it is read:
 *
 *     const kinds = { "lamp.lit": kind(Schema.Struct({ by: Schema.String })), … }
 *     const read = reader(kinds)
 *     const rune = read(anyRune) // undefined, or a rune of the table
 *     switch (rune?.kind) {
 *       case "lamp.lit":
 *         return rune.payload.by // a string
 *     }
 *
 * An unknown kind is refused when it is appended (a bug of the writer) and tolerated when it is read (a newer program
 * wrote it). Its visibility is internal then.
 */
import { Cause, Exit, Schema } from "effect"
import type { Payload, Rune, Visibility } from "./Rune.ts"

/** A Schema of JSON, as it is stored. */
export type Shape<P = unknown> = Schema.Codec<P, unknown>

export interface Kind<P = unknown> {
  readonly payload: Shape<P>
  readonly visibility: Visibility
  /** No fold reads this kind: its runes may be appended without waiting, and dropped under load. */
  readonly lazy: boolean
  /** The stream takes nothing after a rune of this kind. */
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

/** The part of a rune that a reader looks at. */
export type Said = Pick<Rune, "kind" | "payload">

/** A rune of one of the table's kinds, with its payload's type: `switch (rune.kind)` narrows the payload. */
export type RuneOf<T extends Table, R extends Said = Rune> = {
  readonly [Name in keyof T & string]: Omit<R, "kind" | "payload"> & {
    readonly kind: Name
    readonly payload: PayloadOf<T[Name]>
  }
}[keyof T & string]

/** Undefined for a rune of another kind, and for one whose payload was erased or archived. */
export type Reader<T extends Table> = <R extends Said>(rune: R) => RuneOf<T, R> | undefined

/** Whether a payload is gone: it is empty, or says only that it lies in an archive. */
const isGone = (payload: Payload): boolean => {
  for (const name in payload) return name === "archived" && payload[name] === true
  return true
}

/** Reads runes of the table's kinds. Decodes nothing: payloads were checked when they were written. */
export const reader = <const T extends Table>(table: T): Reader<T> => {
  const names: ReadonlySet<string> = new Set(Object.keys(table))
  return <R extends Said>(rune: R) =>
    names.has(rune.kind) && !isGone(rune.payload) ? (rune as unknown as RuneOf<T, R>) : undefined
}

/**
 * Like `reader`, but checks each payload again. For code that only shows runes to people, where a rune of a newer
 * program must do no harm.
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
  /** Kinds after which a stream takes nothing more. */
  readonly sealing: ReadonlyArray<string>
  /** Whether the payload has its kind's shape; false for an unknown kind. */
  readonly accepts: (name: string, payload: unknown) => boolean
  /** Says what is wrong with a payload. Slow: only for the message of a refusal. */
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
