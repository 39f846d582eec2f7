/**
 * Rune: one immutable fact. The rune log holds all of them, in order; every
 * state in agentd is a fold of them.
 *
 * `eventId` is one rising integer for the whole store: order within a stream,
 * cursor over all. `hash` chains the runes of one stream.
 */
import { Schema } from "effect"

/** Who may read it. Unknown kinds are internal; secret ones never leave the store. */
export const Visibility = Schema.Literals(["public", "internal", "secret"])
export type Visibility = typeof Visibility.Type

/** JSON, as it is stored. */
export type Payload = { readonly [key: string]: unknown }

export const Rune = Schema.Struct({
  /** Rises by one over the whole store, from 1. */
  eventId: Schema.Int,
  /** A conversation's id, a plate's id, or `daemon`. */
  stream: Schema.String,
  /** Milliseconds since the epoch. */
  at: Schema.Finite,
  kind: Schema.String,
  /** The machine that moved, as `<kind of machine>/<name>`: `worker/builder`. */
  actor: Schema.String,
  from: Schema.NullOr(Schema.String),
  to: Schema.NullOr(Schema.String),
  /** The machine event's tag, or the command. */
  trigger: Schema.NullOr(Schema.String),
  /** The eventId that led here, across streams too. */
  cause: Schema.NullOr(Schema.Int),
  visibility: Visibility,
  payload: Schema.Record(Schema.String, Schema.Unknown),
  /** Hex SHA-256 over the previous hash of the stream, the header, and the payload's hash. */
  hash: Schema.String
})
export type Rune = typeof Rune.Type

/** A rune before the writer gave it its id, time and hash. */
export interface RuneDraft {
  readonly stream: string
  readonly kind: string
  readonly actor: string
  readonly from?: string | null
  readonly to?: string | null
  readonly trigger?: string | null
  readonly cause?: number | null
  /** Left out: what the kind's entry in the registry says. */
  readonly visibility?: Visibility
  readonly payload: Payload
}

/** The stream of facts about agentd itself. */
export const DAEMON_STREAM = "daemon"
