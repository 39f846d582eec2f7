/**
 * ReportedSegments: collects the segments that are recorded by runes of the home stream. The key of a segment is the
 * eventId of its first rune. If the store lists a segment that no rune records, the store is damaged. Pure.
 */
import type { readOwn } from "./OwnKinds.ts"
import type { Made } from "./SegmentFile.ts"

const madeOf = ({ bytes, file, first, last, runes, sha256 }: Made): Made => ({
  first,
  last,
  runes,
  file,
  bytes,
  sha256
})

/** Updates the collected segments with a rune of the home stream. Returns true if the rune records segments. */
export const note = (told: Map<number, Made>, own: ReturnType<typeof readOwn>): boolean => {
  switch (own?.kind) {
    case "segment.sealed":
    case "segment.rewritten":
      told.set(own.payload.first, madeOf(own.payload))
      return true
    case "log.begins":
      for (const [first, { last }] of told) if (last <= own.payload.last) told.delete(first)
      told.set(own.payload.first, madeOf(own.payload))
      return true
    case "log.repaired":
      // a repair by an older agentd left all segments unchanged
      if (own.payload.segments === undefined) return false
      told.clear()
      for (const made of own.payload.segments) told.set(made.first, made)
      return true
    default:
      return false
  }
}
