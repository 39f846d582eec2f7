/**
 * SegmentLog: the oldest runes leave the store for a segment, as the log sees it: the file is made, then a rune of the
 * home stream names it and the store lists it, in one transaction; then the store lets the rows go.
 *
 * Guarantees: each step is durable before the next; a kill between two of them loses nothing, and the next start
 * removes a file that no rune names, and lists one that a rune names and an older agentd did not list. Texts are erased in segments, too: the file is
 * written anew, and a rune says so; never one that is damaged: a new hash would hide that.
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
import { isBeginning } from "./Beginning.ts"
import * as Forgetting from "./Forgetting.ts"
import { filesIn, type Made, SegmentFile, type SegmentHead, SegmentWriter } from "./SegmentFile.ts"
import type { RuneRow } from "./RuneRow.ts"
import type { Listed, Segments } from "./Segments.ts"
import { storageError } from "./StorageFailure.ts"
import type { StoredRune } from "./StoredRune.ts"

/** Streams whose heads the rune names one by one; of more it has the hash alone. */
const MAX_HEADS = 500
/** SQLite's own code for a damaged file. */
const CORRUPT = 11

export interface Parts extends Forgetting.Parts {
  readonly seal: (sealing: Sealing) => Effect.Effect<Made | undefined, StorageError>
}

const failed = (path: string) => (cause: unknown) => storageError(path, cause)

/** The chains where the segment ends. */
const chainsOf = (heads: ReadonlyArray<SegmentHead>) => {
  const chains = heads.map(({ hash, seq, stream }) => ({ stream, seq, hash }))
  return {
    streams: heads.length,
    chains: createHash("sha256").update(JSON.stringify(chains)).digest("hex"),
    heads: chains.length > MAX_HEADS ? [] : chains
  }
}

/** Whether a daemon before this one has left something to finish. */
export const isBegun = ({ folder }: Parts): boolean => filesIn(folder).length > 0

/** Seals what may go, and answers the rune that says so; undefined where it is too little. */
export const seal =
  (parts: Parts, append: Appender["append"], home: string) =>
  (sealing: Sealing): Effect.Effect<Rune | undefined, StorageError | RuneRefused> =>
    Effect.uninterruptibleMask((restore) =>
      // a file that is made and that no rune names is removed by the next start
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
  // who reads finds them in the file before they are gone from the store
  segments.list([...segments.listed, made])
  yield* change({ _tag: "Leave", made })
  return rune
})

/** Finishes what a daemon that was killed has begun. */
export const resume = (parts: Parts): Effect.Effect<void, StorageError> =>
  Effect.gen(function* () {
    const { change, segments, told } = parts
    for (const made of [...told.values()].toSorted((a, b) => a.first - b.first)) {
      const isListed = segments.listed.some(({ file, first }) => first === made.first && file === made.file)
      if (isBeginning(made.file)) {
        if (!isListed) yield* Forgetting.finish(parts, made)
        continue
      }
      if (isListed) continue
      segments.list([...segments.listed, made])
      yield* change({ _tag: "Leave", made })
    }
    yield* Forgetting.swept(parts)
  })

/** The log, as those see it that write segments anew. */
export interface Remaking {
  readonly append: Appender["append"]
  readonly home: string
  readonly actor: string
  /** By the rune whose texts were erased. */
  readonly erasures: Effect.Effect<ReadonlyMap<number, Erasing>, StorageError>
}

/** Whether each rune of the file is as it was appended, or as an erasure has left it. */
const isWhole = (segments: Segments, file: SegmentFile, first: number, erasures: ReadonlyMap<number, Erasing>) => {
  const before = ({ prev, stream }: StoredRune) => segments.at(prev) ?? segments.beginning?.head(stream)
  const walk = new ChainWalk({ after: first - 1, before })
  for (const [eventId, { left }] of erasures) walk.erasures.set(eventId, left)
  for (let block = 0; block < file.blocks; block++) file.runes(block).forEach((rune) => walk.next(rune))
  walk.end()
  return walk.problems.length === 0
}

/**
 * Writes a segment anew with its rows changed, and a rune that says so. Done twice it makes the same file. A kill before
 * that rune leaves a whole file that is listed as it was before; any other one that is not as it is listed is damaged.
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
    // the store lists it with this rune
    if (made.sha256 !== segment.sha256) {
      yield* append([{ stream: home, kind: "segment.rewritten", actor, payload: { ...made } }])
    }
    segments.list(segments.listed.map((one) => (one.first === made.first ? made : one)))
  })

/** Erases the texts of a rune in its segment. */
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
