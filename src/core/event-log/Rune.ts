/**
 * Rune: one immutable fact. The log holds all runes, in order; every state of the program is a fold of them.
 *
 * `eventId` is the position in the whole log: one rising integer, the cursor of readers. `seq` rises by one within the
 * stream and is hashed, so that a gap is detected. A cause names a rune by stream and seq, since positions can change
 * when a log is copied into another store.
 */
import { Schema } from "effect"

/** Readers that may see a rune. Unknown kinds are internal; secret runes never leave the store. */
export const Visibility = Schema.Literals(["public", "internal", "secret"])
export type Visibility = typeof Visibility.Type

/** A JSON object, as it is stored. */
export type Payload = { readonly [key: string]: unknown }

/** The rune that caused this one, by stream and seq. */
export const Cause = Schema.Struct({ stream: Schema.String, seq: Schema.Int })
export type Cause = typeof Cause.Type

/** Format of new runes. Runes of format 1 were hashed with their position and had no `seq`. */
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
  /** The machine that this fact moves first, as `<kind of machine>/<name>`: `turn/builder`. */
  actor: Schema.String,
  from: Schema.NullOr(Schema.String),
  to: Schema.NullOr(Schema.String),
  /** The tag of the machine's event, or the command. */
  trigger: Schema.NullOr(Schema.String),
  cause: Schema.NullOr(Cause),
  /** Other machines of the scope that this fact moves: `agent/builder`. */
  moves: Schema.Array(Schema.String),
  visibility: Visibility,
  payload: Schema.Record(Schema.String, Schema.Unknown)
})
export type Rune = typeof Rune.Type

/** A rune before the log has assigned its position and time. */
export interface RuneDraft {
  readonly stream: string
  readonly kind: string
  readonly actor: string
  readonly from?: string | null
  readonly to?: string | null
  readonly trigger?: string | null
  readonly cause?: Cause | null
  readonly moves?: ReadonlyArray<string>
  /** If omitted, the visibility from the kind's entry in the registry. */
  readonly visibility?: Visibility
  readonly payload: Payload
}

/** A rune by its place in its stream and in the log. Every `Rune` is also a `RuneRef`. */
export interface RuneRef extends Cause {
  readonly eventId: number
}

export const refOf = ({ eventId, seq, stream }: RuneRef): RuneRef => ({ stream, seq, eventId })

export const causeOf = ({ seq, stream }: Cause): Cause => ({ stream, seq })

/** `stream#seq`, as people see it. */
export const causeText = ({ seq, stream }: Cause): string => `${stream}#${seq}`

/** The stream of facts about the daemon itself. */
export const DAEMON_STREAM = "daemon"
