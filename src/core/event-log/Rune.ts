/**
 * Rune: one immutable fact. The log holds all runes, in order; every state of the
 * program is a fold of them.
 *
 * `eventId` is the position in the whole log: one rising integer, the cursor of
 * readers. `seq` rises by one within the stream and is hashed, so that a gap shows;
 * a cause names a rune by stream and seq, since positions may be given anew where a
 * log is copied into another store.
 */
import { Schema } from "effect"

/** The readers that may see a rune. Unknown kinds are internal; secret runes never leave the store. */
export const Visibility = Schema.Literals(["public", "internal", "secret"])
export type Visibility = typeof Visibility.Type

/** JSON, as it is stored. */
export type Payload = { readonly [key: string]: unknown }

/** The rune that led here. */
export const Cause = Schema.Struct({ stream: Schema.String, seq: Schema.Int })
export type Cause = typeof Cause.Type

/** The format that is written now. Runes of format 1 were hashed with their position and had no `seq`. */
export const FORMAT = 2

export const Rune = Schema.Struct({
  /** How the rune is hashed: 1 or 2. */
  format: Schema.Int,
  /** Rises by one over the whole log, from 1; not hashed in format 2. */
  eventId: Schema.Int,
  /** Rises by one within the stream, from 1. */
  seq: Schema.Int,
  stream: Schema.String,
  /** Milliseconds since the epoch. */
  at: Schema.Finite,
  kind: Schema.String,
  /** The machine that moved first, as `<kind of machine>/<name>`: `turn/builder`. */
  actor: Schema.String,
  from: Schema.NullOr(Schema.String),
  to: Schema.NullOr(Schema.String),
  /** The machine event's tag, or the command. */
  trigger: Schema.NullOr(Schema.String),
  cause: Schema.NullOr(Cause),
  /** Further machines of the scope that this fact moves: `agent/builder`. */
  moves: Schema.Array(Schema.String),
  visibility: Visibility,
  payload: Schema.Record(Schema.String, Schema.Unknown)
})
export type Rune = typeof Rune.Type

/** A rune before the log gave it its place and time. */
export interface RuneDraft {
  readonly stream: string
  readonly kind: string
  readonly actor: string
  readonly from?: string | null
  readonly to?: string | null
  readonly trigger?: string | null
  readonly cause?: Cause | null
  readonly moves?: ReadonlyArray<string>
  /** Left out: what the kind's entry in the registry says. */
  readonly visibility?: Visibility
  readonly payload: Payload
}

/** A rune by its place in its stream and in the log. Every rune is one. */
export interface RuneRef extends Cause {
  readonly eventId: number
}

export const refOf = ({ eventId, seq, stream }: RuneRef): RuneRef => ({ stream, seq, eventId })

export const causeOf = ({ seq, stream }: Cause): Cause => ({ stream, seq })

/** `stream#seq`, as people see it. */
export const causeText = ({ seq, stream }: Cause): string => `${stream}#${seq}`

/** The stream of facts about the daemon itself. */
export const DAEMON_STREAM = "daemon"
