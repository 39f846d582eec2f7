/**
 * OwnKinds: the kinds that the log itself writes; a program's registry holds them beside
 * its own.
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
  /** Texts of a rune are gone: from the log and its snapshots. */
  "rune.erased": kind(Schema.Struct({ eventId: Schema.Int, stream: Schema.String, by: Schema.String })),
  /** The oldest runes of the log are in a file of their own: which, the file's hash, and the chains where it ends. */
  "segment.sealed": kind(
    Schema.Struct({
      ...segment,
      streams: Schema.Int,
      /** The hash of all chains' ends; each of them where they are not too many. */
      chains: Schema.String,
      heads: Schema.Array(Schema.Struct({ stream: Schema.String, seq: Schema.Int, hash: Schema.String }))
    }),
    { visibility: "internal" }
  ),
  /** A segment's file was written anew without a text that was erased. */
  "segment.rewritten": kind(Schema.Struct(segment), { visibility: "internal" }),
  /**
   * The oldest runes were deleted, up to `last`, by a person's setting: what states they had made is in the file. One
   * stands for all that were deleted before.
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
  /** The whole log was read at an idle pace: how many runes, and how many problems; the first in words. */
  "log.verified": kind(
    Schema.Struct({
      runes: Schema.Int,
      streams: Schema.Int,
      problems: Schema.Int,
      first: Schema.NullOr(Schema.String),
      /** ms. */
      took: Schema.Finite
    }),
    { visibility: "internal" }
  ),
  /** In the place of a rune that a repair could not keep. */
  "rune.lost": kind(
    Schema.Struct({
      stream: Schema.NullOr(Schema.String),
      seq: Schema.NullOr(Schema.Int),
      kind: Schema.NullOr(Schema.String),
      /** Of a repair by an older agentd: the rune stands once more further on. */
      again: Schema.optionalKey(Schema.Boolean)
    }),
    { visibility: "internal" }
  ),
  /** Damaged streams were cut; the store as it was is in the folder. Streams that were cut, with their last good runes. */
  "log.repaired": kind(
    Schema.Struct({
      folder: Schema.String,
      lost: Schema.Int,
      /** Of those, runes of which nothing could be read. */
      unknown: Schema.Int,
      /** Runes of output that lost their texts. */
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
      /** The segments that were kept: all others are in the store again. */
      segments: Schema.optionalKey(Schema.Array(Schema.Struct(segment)))
    })
  ),
  /** The stream's whole state, in its chain: from here on it is the truth. */
  "stream.checkpoint": kind(
    Schema.Struct({
      states: Schema.Record(Schema.String, Schema.Struct({ version: Schema.Int, state: Schema.Unknown }))
    }),
    { visibility: "internal" }
  )
}

export const readOwn = reader(ownKinds)
