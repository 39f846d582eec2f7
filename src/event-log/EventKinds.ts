/**
 * EventKinds: a registry of kinds of runes: each with its payload's Schema, who may
 * read it by default, and whether it may be appended lazily.
 *
 * What is checked on writing has its type on reading: `kinds.payload("turn.started",
 * rune)` is of the Schema's type. An unknown kind is refused when it is appended
 * (a bug of the writer) and tolerated when it is read (a newer program wrote it); it
 * is internal then.
 */
import { Cause, Exit, Schema } from "effect"
import type { Rune, Visibility } from "./Rune.ts"

/** A Schema of JSON, as it is stored. */
export type Shape<P = unknown> = Schema.Codec<P, unknown>

export interface Kind<P = unknown> {
  readonly payload: Shape<P>
  readonly visibility: Visibility
  /** Nothing that a fold reads: may be appended without waiting, and dropped under load. */
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

/** Kinds by name. */
export type Table = { readonly [name: string]: Kind<never> | Kind }

/** The type of a kind's payload. */
export type PayloadOf<K> = K extends Kind<infer P> ? P : never

/** A rune whose kind and payload are known. */
export type Typed<Name extends string, P> = Omit<Rune, "kind" | "payload"> & {
  readonly kind: Name
  readonly payload: P
}

/** The part of a registry that the log needs. */
export interface KnownKinds {
  readonly get: (name: string) => Kind | undefined
  /** Kinds after which a stream takes nothing more. */
  readonly sealing: ReadonlyArray<string>
  /** Whether the payload has its kind's shape; false for an unknown kind. */
  readonly accepts: (name: string, payload: unknown) => boolean
  /** What is wrong with a payload, in words: slow, for the message of a refusal. */
  readonly explain: (name: string, payload: unknown) => string
}

export interface EventKinds<T extends Table> extends KnownKinds {
  readonly names: ReadonlyArray<keyof T & string>
  readonly lazy: (name: string) => boolean
  /** Undefined for a rune of another kind, and for a payload that was erased or archived. */
  readonly payload: <Name extends keyof T & string>(name: Name, rune: Rune) => PayloadOf<T[Name]> | undefined
  /** Narrows the rune to the kind and its payload. */
  readonly is: <Name extends keyof T & string>(name: Name, rune: Rune) => rune is Rune & Typed<Name, PayloadOf<T[Name]>>
}

export const make = <const T extends Table>(table: T): EventKinds<T> => {
  const kinds = new Map<string, Kind>(Object.entries(table) as ReadonlyArray<[string, Kind]>)
  // one compiled check a kind
  const checks = new Map([...kinds].map(([name, { payload }]) => [name, Schema.is(payload)]))
  const accepts = (name: string, payload: unknown): boolean => checks.get(name)?.(payload) ?? false
  const explain = (name: string, payload: unknown): string => {
    const entry = kinds.get(name)
    if (entry === undefined) return `no kind of rune is named "${name}"`
    const decoded = Schema.decodeUnknownExit(entry.payload)(payload)
    return Exit.isFailure(decoded) ? String(Cause.squash(decoded.cause)) : "the payload does not have the kind's type"
  }
  const is = (name: string, rune: Rune): boolean => rune.kind === name && accepts(name, rune.payload)
  return {
    names: [...kinds.keys()],
    get: (name) => kinds.get(name),
    sealing: [...kinds].filter(([, { seals }]) => seals).map(([name]) => name),
    lazy: (name) => kinds.get(name)?.lazy ?? false,
    accepts,
    explain,
    payload: (name, rune) => (is(name, rune) ? (rune.payload as never) : undefined),
    is: is as never
  }
}
