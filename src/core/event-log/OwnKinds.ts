/** OwnKinds: the kinds that the log itself writes. A program's registry contains them together with its own. */
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
      /** Kind, actor and stream are those of the refused rune. */
      kind: Schema.String,
      actor: Schema.String,
      stream: Schema.String,
      message: Schema.String
    })
  ),
  "runes.dropped": kind(Schema.Struct({ count: Schema.Int }), { visibility: "internal" }),
  /**
   * Texts of a rune will be erased: where they are, the hash of what is left, and who requested it; never the texts.
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
  /** Texts of a rune were erased, from the log and its snapshots. */
  "rune.erased": kind(Schema.Struct({ eventId: Schema.Int, stream: Schema.String, by: Schema.String })),
  /**
   * The oldest runes of the log are in a file of their own: their range, the file's hash, and the chains where it ends.
   */
  "segment.sealed": kind(
    Schema.Struct({
      ...segment,
      streams: Schema.Int,
      /** The hash of the newest runes of all chains. `heads` lists them, or is empty if they are too many. */
      chains: Schema.String,
      heads: Schema.Array(Schema.Struct({ stream: Schema.String, seq: Schema.Int, hash: Schema.String }))
    }),
    { visibility: "internal" }
  ),
  /** A segment's file was rewritten: without an erased text, or with payloads from an older agentd's archive. */
  "segment.rewritten": kind(Schema.Struct(segment), { visibility: "internal" }),
  /**
   * The oldest runes, up to `last`, were deleted by a person's setting. The file holds the states that they had
   * produced. The newest rune of this kind stands for all earlier deletions, too.
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
  /** The whole log was read at an idle pace: number of runes and of problems, and the first problem in words. */
  "log.verified": kind(
    Schema.Struct({
      runes: Schema.Int,
      streams: Schema.Int,
      problems: Schema.Int,
      first: Schema.NullOr(Schema.String),
      /** Duration in ms. */
      took: Schema.Finite
    }),
    { visibility: "internal" }
  ),
  /** Takes the place of a rune that a repair could not keep. */
  "rune.lost": kind(
    Schema.Struct({
      stream: Schema.NullOr(Schema.String),
      seq: Schema.NullOr(Schema.Int),
      kind: Schema.NullOr(Schema.String),
      /** Set by a repair of an older agentd: the rune appears again further on. */
      again: Schema.optionalKey(Schema.Boolean)
    }),
    { visibility: "internal" }
  ),
  /**
   * Damaged streams were cut. `folder` holds the store as it was; `streams` lists the cut streams, with their last good
   * runes.
   */
  "log.repaired": kind(
    Schema.Struct({
      folder: Schema.String,
      lost: Schema.Int,
      /** Number of lost runes of which nothing could be read. */
      unknown: Schema.Int,
      /** Number of output runes that lost their payloads. */
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
      /** The segments that were kept. The runes of all other segments are in the store again. */
      segments: Schema.optionalKey(Schema.Array(Schema.Struct(segment)))
    })
  ),
  /** The stream's whole state, in its chain. From here on, this state is the truth. */
  "stream.checkpoint": kind(
    Schema.Struct({
      states: Schema.Record(Schema.String, Schema.Struct({ version: Schema.Int, state: Schema.Unknown }))
    }),
    { visibility: "internal" }
  )
}

export const readOwn = reader(ownKinds)
