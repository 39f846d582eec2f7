/**
 * SegmentLog: coordinates the move of the oldest runes from the store to a segment. First, the segment's file is
 * written. Then, in one transaction, a rune that names the file is appended to the home stream, and the store lists the
 * file. Then the store deletes the rows.
 *
 * Guarantees: each step is durable before the next. A kill between two steps loses nothing. The next start deletes a
 * file that no rune names. If a rune names a file that an older agentd did not list, the next start lists it. Text is
 * erased in segments, too: the file is rewritten, and a rune records this. A damaged file is never rewritten, because a
 * new hash would hide the damage.
 */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { join } from "node:path"
import type { Appender } from "./Appender.ts"
import { ChainWalk } from "./ChainWalk.ts"
import { type Erasing, without } from "./Erasure.ts"
import type { RuneRefused, Sealing, StorageError } from "./EventLog.ts"
import { hashPayload } from "./HashChain.ts"
import type { Rune } from "./Rune.ts"
import { isBeginning } from "./BaselineFile.ts"
import * as Retention from "./Retention.ts"
import { filesIn, type Made, SegmentFile, type SegmentHead, SegmentWriter } from "./SegmentFile.ts"
import type { RuneRow } from "./RuneRow.ts"
import type { Listed, Segments } from "./Segments.ts"
import { storageError } from "./StorageFailure.ts"
import type { StoredRune } from "./StoredRune.ts"

/** Maximum number of stream heads that `segment.sealed` lists. With more, the rune has only the hash of all heads. */
const MAX_HEADS = 500
/** SQLite's result code for a damaged file. */
const CORRUPT = 11

export interface Parts extends Retention.Parts {
  readonly seal: (sealing: Sealing) => Effect.Effect<Made | undefined, StorageError>
}

const failed = (path: string) => (cause: unknown) => storageError(path, cause)

/** Returns data about the newest rune of each stream in the segment, for the rune `segment.sealed`. */
const chainsOf = (heads: ReadonlyArray<SegmentHead>) => {
  const chains = heads.map(({ hash, seq, stream }) => ({ stream, seq, hash }))
  return {
    streams: heads.length,
    chains: createHash("sha256").update(JSON.stringify(chains)).digest("hex"),
    heads: chains.length > MAX_HEADS ? [] : chains
  }
}

/** Returns true if segment files exist. Then an earlier daemon can have left an unfinished move or deletion. */
export const isBegun = ({ folder }: Parts): boolean => filesIn(folder).length > 0

/** Moves the oldest runes to a segment. Returns the rune that records the move; undefined if there are too few. */
export const seal =
  (parts: Parts, append: Appender["append"], home: string) =>
  (sealing: Sealing): Effect.Effect<Rune | undefined, StorageError | RuneRefused> =>
    Effect.uninterruptibleMask((restore) =>
      // an interruption here does no harm, because the next start deletes a file that no rune names
      Effect.flatMap(restore(parts.seal(sealing)), (made) =>
        made === undefined ? Effect.succeed(undefined) : tell(parts, append, home, made)
      )
    )

const tell = Effect.fnUntraced(function* (
  { change, folder, segments }: Parts,
  append: Appender["append"],
  home: string,
  made: Made
) {
  const path = join(folder, made.file)
  const heads = yield* Effect.try({ try: () => new SegmentFile(path).footer.heads, catch: failed(path) })
  const [rune] = yield* append([
    { stream: home, kind: "segment.sealed", actor: "log/sealer", payload: { ...made, ...chainsOf(heads) } }
  ])
  // readers must find the runes in the file before the store deletes them
  segments.list([...segments.listed, made])
  yield* change({ _tag: "Leave", made })
  return rune
})

/** Finishes the moves and deletions that a killed daemon has left unfinished. */
export const resume = (parts: Parts): Effect.Effect<void, StorageError> =>
  Effect.gen(function* () {
    const { change, segments, told } = parts
    for (const made of [...told.values()].toSorted((a, b) => a.first - b.first)) {
      const isListed = segments.listed.some(({ file, first }) => first === made.first && file === made.file)
      if (isBeginning(made.file)) {
        if (!isListed) yield* Retention.finish(parts, made)
        continue
      }
      if (isListed) continue
      segments.list([...segments.listed, made])
      yield* change({ _tag: "Leave", made })
    }
    yield* Retention.swept(parts)
  })

/** The parts of the log that are needed to rewrite a segment. */
export interface Remaking {
  readonly append: Appender["append"]
  readonly home: string
  readonly actor: string
  /** The erasures, each by the position of the erased rune. */
  readonly erasures: Effect.Effect<ReadonlyMap<number, Erasing>, StorageError>
}

/** Returns true if each rune has the payload that was appended, or the payload that remained after an erasure. */
const isWhole = (segments: Segments, file: SegmentFile, first: number, erasures: ReadonlyMap<number, Erasing>) => {
  const before = ({ prev, stream }: StoredRune) => segments.at(prev) ?? segments.beginning?.head(stream)
  const walk = new ChainWalk({ after: first - 1, before })
  for (const [eventId, { left }] of erasures) walk.erasures.set(eventId, left)
  for (let block = 0; block < file.blocks; block++) file.runes(block).forEach((rune) => walk.next(rune))
  walk.end()
  return walk.problems.length === 0
}

/**
 * Rewrites a segment with changed rows, and appends a rune that records this. A second call writes the same file. A
 * kill before the rune is appended leaves a complete new file, while the store still lists the old one. Any other file
 * that differs from the list is damaged, and is not rewritten.
 */
export const remake = ({ folder, segments }: Parts, { actor, append, erasures, home }: Remaking) =>
  Effect.fnUntraced(function* (segment: Listed, changed: (row: RuneRow) => RuneRow) {
    if (isBeginning(segment.file)) return
    const path = join(folder, segment.file)
    const attempt = <A>(work: () => A) => Effect.try({ try: work, catch: failed(path) })
    const file = new SegmentFile(path)
    if ((yield* attempt(() => file.sha256)) !== segment.sha256) {
      const erased = yield* erasures
      yield* attempt(() => {
        if (isWhole(segments, file, segment.first, erased)) return
        throw Object.assign(new Error("it is not as it was made"), { errcode: CORRUPT })
      })
    }
    const heads = yield* attempt(() => file.footer.heads)
    const writer = yield* attempt(() => new SegmentWriter(folder))
    const made = yield* Effect.gen(function* () {
      for (let block = 0; block < file.blocks; block++) {
        yield* attempt(() => writer.add(file.rows(block).map(changed)))
        yield* Effect.yieldNow
      }
      return yield* attempt(() => writer.finish(heads))
    }).pipe(Effect.tapError(() => Effect.ignore(attempt(() => writer.abandon()))))
    // the store updates its list of segments when this rune is appended
    if (made.sha256 !== segment.sha256) {
      yield* append([{ stream: home, kind: "segment.rewritten", actor, payload: { ...made } }])
    }
    segments.list(segments.listed.map((one) => (one.first === made.first ? made : one)))
  })

/** Erases text of a rune in the rune's segment. */
export const rewrite = (parts: Parts, by: Omit<Remaking, "actor">) => {
  const remade = remake(parts, { ...by, actor: "log/eraser" })
  return ({ eventId, fields, left }: Erasing) => {
    const segment = parts.segments.listed.find(({ first, last }) => first <= eventId && eventId <= last)
    if (segment === undefined) return Effect.void
    return remade(segment, (row) => {
      const { payload } = row
      if (row.event_id !== eventId || payload === null || hashPayload(payload) === left) return row
      return { ...row, payload: without(payload, fields) }
    })
  }
}
