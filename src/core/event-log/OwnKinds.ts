/**
 * OwnKinds: the kinds of runes that the log itself writes. A program's registry contains them together with the
 * program's own kinds.
 */
import { Schema } from "effect"
import { kind, reader } from "./EventKinds.ts"

const segment = {
  first: Schema.Int,
  last: Schema.Int,
  runes: Schema.Int,
  file: Schema.String,
  bytes: Schema.Int,
  sha256: Schema.String
}

export const ownKinds = {
  "invariant.violated": kind(
    Schema.Struct({
      rule: Schema.String,
      severity: Schema.Literals(["FATAL", "ERROR", "WARN"]),
      /** Kind, actor and stream of the rune that was refused. */
      kind: Schema.String,
      actor: Schema.String,
      stream: Schema.String,
      message: Schema.String
    })
  ),
  "runes.dropped": kind(Schema.Struct({ count: Schema.Int }), { visibility: "internal" }),
  /**
   * Text of a rune will be erased. Records the paths of the fields, the hash of the remaining payload, and the user who
   * requested the erasure. Never contains the text.
   */
  "rune.erasing": kind(
    Schema.Struct({
      eventId: Schema.Int,
      stream: Schema.String,
      fields: Schema.Array(Schema.Array(Schema.String)),
      left: Schema.String,
      by: Schema.String
    })
  ),
  /** Text of a rune was erased from the log and its snapshots. */
  "rune.erased": kind(Schema.Struct({ eventId: Schema.Int, stream: Schema.String, by: Schema.String })),
  /**
   * The oldest runes of the log were moved to a segment file. Records the range of the moved runes, the file's hash,
   * and the newest rune of each chain.
   */
  "segment.sealed": kind(
    Schema.Struct({
      ...segment,
      streams: Schema.Int,
      /** Hash of the newest runes of all chains. `heads` lists these runes; if there are too many, it is empty. */
      chains: Schema.String,
      heads: Schema.Array(Schema.Struct({ stream: Schema.String, seq: Schema.Int, hash: Schema.String }))
    }),
    { visibility: "internal" }
  ),
  /** A segment's file was rewritten, either without erased text or with payloads from an older agentd's archive. */
  "segment.rewritten": kind(Schema.Struct(segment), { visibility: "internal" }),
  /**
   * A user's setting has deleted the oldest runes, up to `last`. The file contains the states that were folded from the
   * deleted runes. The newest rune of this kind covers all earlier deletions, too.
   */
  "log.begins": kind(
    Schema.Struct({
      ...segment,
      streams: Schema.Int,
      /** The time of the newest deleted rune, ms since the epoch. */
      at: Schema.Finite,
      by: Schema.String
    })
  ),
  /**
   * The whole log was checked in the background. Records the numbers of runes, streams and problems, and a description
   * of the first problem.
   */
  "log.verified": kind(
    Schema.Struct({
      runes: Schema.Int,
      streams: Schema.Int,
      problems: Schema.Int,
      first: Schema.NullOr(Schema.String),
      /** Duration of the check in ms. */
      took: Schema.Finite
    }),
    { visibility: "internal" }
  ),
  /** Replaces a rune that a repair could not keep. */
  "rune.lost": kind(
    Schema.Struct({
      stream: Schema.NullOr(Schema.String),
      seq: Schema.NullOr(Schema.Int),
      kind: Schema.NullOr(Schema.String),
      /** For repairs by an older agentd: set if the lost rune appears again later in the log. */
      again: Schema.optionalKey(Schema.Boolean)
    }),
    { visibility: "internal" }
  ),
  /**
   * A repair has cut damaged streams. `folder` contains a copy of the old store. `streams` lists the cut streams, each
   * with its last intact rune.
   */
  "log.repaired": kind(
    Schema.Struct({
      folder: Schema.String,
      lost: Schema.Int,
      /** Number of lost runes of which no part could be read. */
      unknown: Schema.Int,
      /** Number of lazy runes that lost their payloads. */
      blanked: Schema.Int,
      streams: Schema.Array(
        Schema.Struct({
          stream: Schema.String,
          eventId: Schema.Int,
          seq: Schema.Int,
          reason: Schema.String,
          lost: Schema.Int
        })
      ),
      /** The segments that were kept. The runes of all other segments were written back into the store. */
      segments: Schema.optionalKey(Schema.Array(Schema.Struct(segment)))
    })
  ),
  /**
   * Checkpoint: the states of a stream, stored in the stream's hash chain. A fold that finds its own state here
   * continues from that state.
   */
  "stream.checkpoint": kind(
    Schema.Struct({
      states: Schema.Record(Schema.String, Schema.Struct({ version: Schema.Int, state: Schema.Unknown }))
    }),
    { visibility: "internal" }
  )
}

export const readOwn = reader(ownKinds)
