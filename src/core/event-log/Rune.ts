/**
 * Rune: an immutable fact in the log. The log contains all runes, in order. Every state of the program is a fold of
 * these runes.
 *
 * `eventId` is the position in the whole log: a rising integer that readers use as a cursor. `seq` rises by one within
 * the stream and is hashed, so that a gap is detected. A cause names a rune by stream and seq, because positions can
 * change when a log is copied into another store.
 */
import { Schema } from "effect"

/** Readers that may see a rune. Runes of unknown kinds are internal; secret runes never leave the store. */
export const Visibility = Schema.Literals(["public", "internal", "secret"])
export type Visibility = typeof Visibility.Type

/** Payload of a rune: a JSON object, exactly as it is stored. */
export type Payload = { readonly [key: string]: unknown }

/** Reference to the rune that caused this one, by stream and seq. */
export const Cause = Schema.Struct({ stream: Schema.String, seq: Schema.Int })
export type Cause = typeof Cause.Type

/** Format of new runes. Runes of format 1 were hashed with their position, and had no `seq`. */
export const FORMAT = 2

export const Rune = Schema.Struct({
  /** Format in which the rune is hashed: 1 or 2. */
  format: Schema.Int,
  /** Position in the whole log. Rises by one over the whole log, from 1; not hashed in format 2. */
  eventId: Schema.Int,
  /** Sequence number in the stream. Rises by one within the stream, from 1. */
  seq: Schema.Int,
  stream: Schema.String,
  /** When the rune was appended, in ms since the epoch. */
  at: Schema.Finite,
  kind: Schema.String,
  /** The state machine that this fact moves first, as `<kind of machine>/<name>`, for example `turn/builder`. */
  actor: Schema.String,
  from: Schema.NullOr(Schema.String),
  to: Schema.NullOr(Schema.String),
  /** Tag of the event that moved the state machine, or name of the command that caused the fact. */
  trigger: Schema.NullOr(Schema.String),
  cause: Schema.NullOr(Cause),
  /** Other state machines of the scope that this fact moves, for example `agent/builder`. */
  moves: Schema.Array(Schema.String),
  visibility: Visibility,
  payload: Schema.Record(Schema.String, Schema.Unknown)
})
export type Rune = typeof Rune.Type

/** A rune to which the log has not assigned a position and a time yet. */
export interface RuneDraft {
  readonly stream: string
  readonly kind: string
  readonly actor: string
  readonly from?: string | null
  readonly to?: string | null
  readonly trigger?: string | null
  readonly cause?: Cause | null
  readonly moves?: ReadonlyArray<string>
  /** Readers that may see the rune. If omitted, the default of the rune's kind applies. */
  readonly visibility?: Visibility
  readonly payload: Payload
}

/** Reference to a rune by its position in its stream and in the log. Every `Rune` is also a `RuneRef`. */
export interface RuneRef extends Cause {
  readonly eventId: number
}

export const refOf = ({ eventId, seq, stream }: RuneRef): RuneRef => ({ stream, seq, eventId })

export const causeOf = ({ seq, stream }: Cause): Cause => ({ stream, seq })

/** Returns a cause as text for users: `stream#seq`. */
export const causeText = ({ seq, stream }: Cause): string => `${stream}#${seq}`

/** The stream of facts about the daemon itself. */
export const DAEMON_STREAM = "daemon"
