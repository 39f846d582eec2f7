/**
 * OwnKinds: the kinds that the log itself writes; a program's registry holds them beside
 * its own.
 */
import { Schema } from "effect"
import { kind, reader } from "./EventKinds.ts"

export const ownKinds = {
  "invariant.violated": kind(
    Schema.Struct({
      rule: Schema.String,
      severity: Schema.Literals(["FATAL", "ERROR", "WARN"]),
      /** Of the rune that was refused. */
      kind: Schema.String,
      actor: Schema.String,
      stream: Schema.String,
      message: Schema.String
    })
  ),
  "runes.dropped": kind(Schema.Struct({ count: Schema.Int }), { visibility: "internal" }),
  /** Texts of a rune are about to go, by whom; where they were, the hash of what is left, never what they were. */
  "rune.erasing": kind(
    Schema.Struct({
      eventId: Schema.Int,
      stream: Schema.String,
      fields: Schema.Array(Schema.Array(Schema.String)),
      left: Schema.String,
      by: Schema.String
    })
  ),
  /** Texts of a rune are gone: from the log, its snapshots and its archive. */
  "rune.erased": kind(Schema.Struct({ eventId: Schema.Int, stream: Schema.String, by: Schema.String })),
  /** The stream's whole state, in its chain: from here on it is the truth. */
  "stream.checkpoint": kind(
    Schema.Struct({
      states: Schema.Record(Schema.String, Schema.Struct({ version: Schema.Int, state: Schema.Unknown }))
    }),
    { visibility: "internal" }
  )
}

export const readOwn = reader(ownKinds)
