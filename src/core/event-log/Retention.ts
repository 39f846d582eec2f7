/**
 * Retention: deletes the log's oldest segments, according to a user's setting. A new file (`BaselineFile`) stores the
 * states folded from the deleted runes, and the newest deleted rune of each stream.
 *
 * Guarantees: the states are on disk, and a rune names their file, before anything is deleted. If the process is killed
 * between two steps, nothing else is lost, and the next start finishes the deletion. Runes that cannot be folded or
 * read are not deleted, nor are the runes after them.
 */
import { Effect } from "effect"
import { join } from "node:path"
import type { Appender } from "./Appender.ts"
import { type BaselineFile, BeginningWriter } from "./BaselineFile.ts"
import { type RuneRefused, StorageError } from "./EventLog.ts"
import type { Forgetting } from "./EventLog.ts"
import { pieces } from "./JsonPieces.ts"
import type { Change } from "./LogStore.ts"
import type { Rules } from "./LogRules.ts"
import type { Rune } from "./Rune.ts"
import { fromRow } from "./RuneRow.ts"
import { filesIn, type Made, remove, SegmentFile, type SegmentHead } from "./SegmentFile.ts"
import type { Listed, Segments } from "./Segments.ts"
import { storageError } from "./StorageFailure.ts"
import { toRunes } from "./StoredRune.ts"
import { firstState } from "./InitialState.ts"
import { type AnyFold, applyTo, plainOf } from "./StreamFold.ts"

export interface Parts {
  /** Absolute path of the folder that contains the segments. */
  readonly folder: string
  readonly segments: Segments
  /** The segments that are recorded by runes of the home stream, by the eventId of their first rune. */
  readonly told: ReadonlyMap<number, Made>
  readonly change: (change: Change) => Effect.Effect<void, StorageError>
}

export interface Options {
  readonly append: Appender["append"]
  readonly rules: Rules
  /** The folds of the program and those of the log itself. */
  readonly folds: ReadonlyArray<AnyFold>
  /**
   * Returns true if the stream is archived. The states of an archived stream are not saved, because the rune in the
   * home stream that records the archive suffices.
   */
  readonly isArchived: (stream: string) => boolean
}

const failed = (folder: string) => (cause: unknown) => storageError(folder, cause)

/** A segment that may be deleted, with its size in bytes, and the time of its newest rune (ms since the epoch). */
export interface Candidate extends Listed {
  readonly at: number
}

/**
 * Returns the segments to delete, oldest first. All segments after the first one that must stay also stay. `bytes`:
 * total size of all segments. Pure.
 */
export const chosen = (
  candidates: Iterable<Candidate>,
  bytes: number,
  { before, keepBytes, openSince }: Omit<Forgetting, "by">
): ReadonlyArray<Candidate> => {
  const gone: Array<Candidate> = []
  let left = bytes
  for (const one of candidates) {
    if (one.at >= openSince || (one.at >= before && left <= keepBytes)) break
    gone.push(one)
    left -= one.bytes
  }
  return gone
}

/** Yields the segments that still contain runes. A segment is read only when the caller requests it. */
export function* candidatesIn(segments: Segments): Generator<Candidate> {
  for (const listed of segments.listed) {
    if (listed.last <= segments.deleted) continue
    const newest = segments.row(listed.last)
    if (newest === undefined) throw new Error(`${listed.file} does not hold its newest rune`)
    yield { ...listed, at: newest.at }
  }
}

/** The states of streams, to which runes are applied one by one. */
class States {
  private readonly of: Options
  private readonly beginning: BaselineFile | undefined
  /** States of each stream's folds, by stream. */
  readonly all = new Map<string, Map<AnyFold, unknown>>()

  constructor(of: Options, beginning: BaselineFile | undefined) {
    this.of = of
    this.beginning = beginning
  }

  next(rune: Rune): void {
    const { stream } = rune
    if (this.of.isArchived(stream)) return
    const states = this.all.get(stream) ?? this.begin(stream)
    this.all.set(stream, states)
    for (const [fold, state] of states) states.set(fold, applyTo(fold, state, rune))
  }

  private begin(stream: string): Map<AnyFold, unknown> {
    const folds = this.of.folds.filter((fold) => fold.of?.(stream) ?? true)
    return new Map(folds.map((fold) => [fold, firstState(this.beginning, stream, fold)]))
  }
}

/** Folds the runes that will be deleted, one block at a time. Other work can run between the blocks. */
const folded = Effect.fnUntraced(function* (
  { segments }: Parts,
  upTo: number,
  states: States,
  attempt: <A>(work: () => A) => Effect.Effect<A, StorageError>
) {
  for (let after = segments.deleted; after < upTo;) {
    const rows = yield* attempt(() => segments.after(after))
    const last = rows.at(-1)
    if (last === undefined || rows[0]!.event_id !== after + 1) {
      return yield* attempt(() => {
        throw new Error(`rune ${after + 1} is in no segment`)
      })
    }
    const runes = yield* toRunes(rows.map(fromRow))
    yield* attempt(() => runes.forEach((rune) => states.next(rune)))
    after = last.event_id
    yield* Effect.yieldNow
  }
})

/** Returns the newest deleted rune of each stream. The stream continues after this rune. */
const headsOf = (segments: Segments, gone: ReadonlyArray<Listed>): ReadonlyArray<SegmentHead> => {
  const heads = new Map((segments.beginning?.summary.heads ?? []).map((head) => [head.stream, head]))
  const files = new Set(gone.map(({ file }) => file))
  for (const { content, file } of segments.open) {
    if (files.has(file)) for (const head of content.footer.heads) heads.set(head.stream, head)
  }
  return [...heads.values()]
}

/** Writes the file that replaces the segments to delete. */
const write = Effect.fnUntraced(function* (
  parts: Parts,
  of: Options,
  gone: ReadonlyArray<Candidate>,
  attempt: <A>(work: () => A) => Effect.Effect<A, StorageError>
) {
  const { folder, segments } = parts
  const { at, last } = gone.at(-1)!
  const before = yield* attempt(() => segments.beginning)
  const states = new States(of, before)
  yield* folded(parts, last, states, attempt)
  const heads = yield* attempt(() => headsOf(segments, gone))
  const writer = yield* attempt(() => new BeginningWriter(folder))
  return yield* Effect.gen(function* () {
    for (const kept of before?.states ?? []) {
      if (states.all.has(kept.stream) || of.isArchived(kept.stream)) continue
      yield* attempt(() => writer.add(kept, before!.json(kept.stream, kept.name)!))
      yield* Effect.yieldNow
    }
    for (const [stream, folds] of states.all) {
      for (const [fold, state] of folds) {
        if (state === fold.initial) continue
        const { name, version } = fold
        yield* attempt(() => writer.add({ stream, name, version }, [...pieces(plainOf(fold, state))].join("")))
        yield* Effect.yieldNow
      }
    }
    const versions = Object.fromEntries(of.folds.map(({ name, version }) => [name, version]))
    return yield* attempt(() => writer.finish({ last, at, heads, folds: { ...before?.summary.folds, ...versions } }))
  }).pipe(Effect.onError(() => Effect.ignore(attempt(() => writer.abandon()))))
})

/** Deletes the oldest segments. Returns the rune that records the deletion; undefined if no segment may be deleted. */
export const forget =
  (parts: Parts, of: Options) =>
  (forgetting: Forgetting): Effect.Effect<Rune | undefined, StorageError | RuneRefused> =>
    Effect.gen(function* () {
      const { folder, segments } = parts
      const attempt = <A>(work: () => A) => Effect.try({ try: work, catch: failed(folder) })
      const gone = yield* attempt(() => chosen(candidatesIn(segments), segments.bytes, forgetting))
      if (gone.length === 0) return undefined
      const made = yield* write(parts, of, gone, attempt)
      const heads = yield* attempt(() => new SegmentFile(join(folder, made.file)).footer.heads)
      const { at } = gone.at(-1)!
      const payload = { ...made, streams: heads.length, at, by: forgetting.by }
      const [rune] = yield* of.append([
        { stream: of.rules.home, kind: "log.begins", actor: "log/sealer", payload: { ...payload } }
      ])
      yield* finish(parts, made)
      return rune
    }).pipe(Effect.uninterruptible)

/** Lists the new file in the store, then deletes the old files. Repeating this has no further effect. */
export const finish = Effect.fnUntraced(function* (parts: Parts, made: Made) {
  const { change, segments } = parts
  const stays = segments.listed.filter(({ last }) => last > made.last)
  yield* change({ _tag: "Forget", made })
  segments.list([made, ...stays])
  yield* swept(parts)
})

/** Deletes segment files that the store does not list. */
export const swept = ({ folder, segments }: Parts): Effect.Effect<void, StorageError> =>
  Effect.try({
    try: () => {
      const known = new Set(segments.listed.map(({ file }) => file))
      for (const name of filesIn(folder)) if (!known.has(name)) remove(join(folder, name))
    },
    catch: failed(folder)
  })
