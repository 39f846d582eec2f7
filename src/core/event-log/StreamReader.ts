/**
 * StreamReader: computes the states of streams for the features that fold them. A stream is read once, from its
 * snapshots on, by all folds that the program has registered with the log. Each state is kept until its feature
 * requests the state.
 *
 * Guarantees: a returned state includes the stream's newest durable rune. If a fold throws or a stream cannot be read,
 * only that fold or stream fails, and the failure is reported. If a snapshot would save the next start more time than
 * it costs, it is saved at once. An archived stream is not read, because the rune of the archive in the home stream
 * suffices.
 */
import { Effect, Semaphore } from "effect"
import * as Monotonic from "../supervision/Monotonic.ts"
import { type Reading, StorageError } from "./EventLog.ts"
import type { BaselineFile } from "./BaselineFile.ts"
import { firstState } from "./InitialState.ts"
import { pieces } from "./JsonPieces.ts"
import type { LogReader } from "./LogReader.ts"
import type { Rune } from "./Rune.ts"
import type { SnapshotOrder, SnapshotRow } from "./Snapshot.ts"
import type { StoredRune } from "./StoredRune.ts"
import {
  type AnyFold,
  applyTo,
  type Folds,
  type Recovered,
  type RecoveredAll,
  restored,
  plainOf
} from "./StreamFold.ts"

/** Minimum number of runes that a fold must have read so that a snapshot of its state is saved. */
export const WORTH_KEEPING = 128

/** Maximum size of a snapshot in bytes. Writing and reading a larger one would cost as much as reading the runes. */
export const MAX_SNAPSHOT = 32 * 1024 * 1024

/** Size in bytes above which a state counts as large. Restoring a large state blocks the event loop. */
const LARGE = 2 * 1024 * 1024

/** Number of pieces of a state that are serialized before other work can run. */
const PIECES = 4

/** Serializes a state for a snapshot, in pieces. Returns undefined if the state is too large. */
const bytesOf = Effect.fnUntraced(function* ({ at, fold }: Progress) {
  const parts: Array<Buffer> = []
  let bytes = 0
  for (const piece of pieces(plainOf(fold, at.state))) {
    const part = Buffer.from(piece)
    parts.push(part)
    bytes += part.length
    if (bytes > MAX_SNAPSHOT) return undefined
    if (parts.length % PIECES === 0) yield* Effect.yieldNow
  }
  return Buffer.concat(parts)
})

export interface Snapshots {
  readonly get: (stream: string, name: string) => Effect.Effect<SnapshotRow | undefined, StorageError>
}

export const noSnapshots: Snapshots = { get: () => Effect.void as Effect.Effect<undefined> }

export interface Source {
  readonly reader: LogReader
  readonly snapshots: Snapshots
  readonly shown: (stored: ReadonlyArray<StoredRune>) => Effect.Effect<ReadonlyArray<Rune>, StorageError>
  /** Returns all runes after a cursor, of every stream, if they are all in memory; otherwise undefined. */
  readonly recent: (after: number) => ReadonlyArray<Rune> | undefined
  /**
   * The file that replaces runes which a user's setting has deleted; undefined if there are none. Throws if the file
   * cannot be read.
   */
  readonly beginning?: () => BaselineFile | undefined
}

export const nothingRecent = (): undefined => undefined

interface Progress {
  readonly fold: AnyFold
  at: Recovered<unknown>
  /** Position in the log up to which the fold has read all runes of the stream. */
  upTo: number
  thrown: unknown
}

const fold = (progress: Progress, runes: ReadonlyArray<Rune>): void => {
  if (progress.thrown !== undefined) return
  let { eventId, read, state } = progress.at
  try {
    for (const rune of runes) {
      if (rune.eventId <= eventId) continue
      state = applyTo(progress.fold, state, rune)
      eventId = rune.eventId
      read += 1
    }
    progress.at = { state, eventId, read }
  } catch (cause) {
    progress.thrown = cause ?? "nothing"
  }
}

const unreadable = (cause: unknown): StorageError =>
  new StorageError({
    reason: "corrupt",
    message: `What the log knows of its deleted runes cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`,
    remedy: "Put the file back from a backup: `agentd restore FILE` takes the whole store."
  })

const firstOf = (begins: BaselineFile | undefined, stream: string, fold: AnyFold): Progress => {
  try {
    const eventId = begins?.head(stream)?.eventId ?? 0
    const at = { state: firstState(begins, stream, fold), eventId, read: 0 }
    return { fold, at, upTo: eventId, thrown: undefined }
  } catch (cause) {
    return { fold, at: { state: fold.initial, eventId: 0, read: 0 }, upTo: 0, thrown: cause ?? "nothing" }
  }
}

/** Starts a fold at its snapshot or, if there is none, at the beginning of the stream. */
const begin = Effect.fnUntraced(function* ({ beginning, reader, snapshots }: Source, stream: string, fold: AnyFold) {
  const row = yield* snapshots.get(stream, fold.name)
  const there = row === undefined ? [] : yield* reader.at([row.eventId])
  const saved = restored(fold, row, there[0]?.hash)
  if (saved !== undefined) return { fold, at: saved, upTo: saved.eventId, thrown: undefined } as Progress
  const begins = yield* Effect.try({ try: () => beginning?.(), catch: unreadable })
  return firstOf(begins, stream, fold)
})

interface Standing {
  readonly stream: string
  /** Position of the stream's newest rune; 0 if there is none. */
  readonly newest: number
  /** Position of the newest rune of the log, determined before `newest`. */
  readonly head: number
}

/** Applies the remaining runes to all folds in one pass. Stops at the newest rune or at the deadline `until`. */
const goOn = Effect.fnUntraced(function* (
  { reader, recent, shown }: Source,
  { head, newest, stream }: Standing,
  folds: ReadonlyArray<Progress>,
  until = Number.POSITIVE_INFINITY
) {
  const oldest = folds.reduce((least, { upTo }) => Math.min(least, upTo), newest)
  if (oldest >= newest) return
  const kept = recent(oldest)
  if (kept !== undefined) {
    const runes = kept.filter((rune) => rune.stream === stream && rune.eventId <= newest)
    for (const one of folds) fold(one, runes)
  } else {
    for (const positions of yield* reader.pages(newest, oldest)) {
      const runes = yield* Effect.flatMap(reader.at(positions), shown)
      for (const one of folds) fold(one, runes)
      if ((yield* Monotonic.now) > until) return
      yield* Effect.yieldNow
    }
  }
  for (const one of folds) one.upTo = Math.max(one.upTo, newest, head)
})

const thrownBy = ({ at, fold, thrown }: Progress, stream: string): StorageError =>
  new StorageError({
    reason: "fold",
    message: `The ${fold.name} of ${stream} cannot be made of its runes (after rune ${at.eventId}): ${thrown instanceof Error ? thrown.message : String(thrown)}`,
    remedy: "This is a bug in agentd: report it with the output of `agentd verify`."
  })

/** Reads one stream for these folds only. */
export const recover = Effect.fnUntraced(function* <F extends Folds>(
  source: Source,
  of: Omit<Standing, "head">,
  folds: F
): Effect.fn.Return<RecoveredAll<F>, StorageError> {
  const all = yield* Effect.forEach(Object.values(folds), (fold) => begin(source, of.stream, fold))
  yield* goOn(source, { ...of, head: of.newest }, all)
  for (const one of all) if (one.thrown !== undefined) return yield* thrownBy(one, of.stream)
  return Object.fromEntries(Object.keys(folds).map((key, index) => [key, all[index]!.at])) as RecoveredAll<F>
})

export interface Options extends Source {
  readonly folds: ReadonlyArray<AnyFold>
  /** Position of the stream's newest durable rune; 0 if there is none. */
  readonly newest: (stream: string) => Effect.Effect<number, StorageError>
  /** Position of the newest durable rune of the log. */
  readonly head: Effect.Effect<number, StorageError>
  /** The streams that exist when the log is opened. */
  readonly streams: Iterable<string>
  readonly isArchived: (stream: string) => boolean
  readonly keep: (order: SnapshotOrder) => void
}

/** Initial states for a stream that contains no runes for its folds. */
const untouched = (folds: Folds): unknown =>
  Object.fromEntries(
    Object.entries(folds).map(([key, { initial }]): [string, Recovered<unknown>] => [
      key,
      { state: initial, eventId: 0, read: 0 }
    ])
  )

export class StreamReader {
  private readonly of: Options
  /** Streams that existed at the start and are not yet read. */
  private readonly waiting = new Set<string>()
  private readonly total: number
  /** Streams that were, or are being, read by all their folds together. */
  private readonly begun = new Set<string>()
  private runes = 0
  private readonly unreadable = new Map<string, string>()
  /** States that were read but that no feature has requested yet, by stream and by name of the fold. */
  private readonly ready = new Map<string, Map<string, Progress>>()
  /** Streams whose newest snapshots are large. */
  private readonly large = new Set<string>()
  private readonly locks = new Map<string, { readonly lock: Semaphore.Semaphore; users: number }>()

  constructor(of: Options) {
    const { shown } = of
    this.of = {
      ...of,
      shown: (stored) => {
        this.runes += stored.length
        return shown(stored)
      }
    }
    for (const stream of of.streams) if (this.foldsOf(stream).length > 0) this.waiting.add(stream)
    this.total = this.waiting.size
  }

  get reading(): Omit<Reading, "aside"> {
    return {
      streams: this.total,
      read: this.total - this.waiting.size,
      runes: this.runes,
      unreadable: Array.from(this.unreadable, ([stream, message]) => ({ stream, message }))
    }
  }

  isFolded(stream: string): boolean {
    return this.of.folds.some((fold) => fold.of?.(stream) ?? true)
  }

  /** Returns true if saving snapshots of the stream would block the event loop. */
  isLarge(stream: string): boolean {
    return this.large.has(stream)
  }

  readonly recover = <F extends Folds>(stream: string, folds: F): Effect.Effect<RecoveredAll<F>, StorageError> =>
    this.alone(
      stream,
      Effect.tapError(this.states(stream, folds), ({ message }) =>
        Effect.sync(() => this.unreadable.set(stream, message))
      )
    )

  private states<F extends Folds>(stream: string, folds: F): Effect.Effect<RecoveredAll<F>, StorageError> {
    return Effect.gen({ self: this }, function* () {
      if (this.of.isArchived(stream)) return untouched(folds) as RecoveredAll<F>
      const entries = Object.entries(folds)
      yield* this.readTogether(
        stream,
        entries.map(([, fold]) => fold)
      )
      const states: Array<readonly [key: string, state: Recovered<unknown>]> = []
      for (const [key, fold] of entries) {
        const ready = this.taken(stream, fold)
        const one = ready ?? (yield* begin(this.of, stream, fold))
        if (one.thrown === undefined) yield* goOn(this.of, yield* this.at(stream), [one])
        if (one.thrown !== undefined) return yield* thrownBy(one, stream)
        if (ready === undefined) yield* this.keep(stream, one)
        states.push([key, one.at])
      }
      return Object.fromEntries(states) as RecoveredAll<F>
    })
  }

  /**
   * Reads the runes since the last snapshots and saves new snapshots, without touching the states in use.
   *
   * `until`: deadline by the monotonic clock. At the deadline, the states that are folded so far are saved.
   */
  refresh(stream: string, until?: number): Effect.Effect<void, StorageError> {
    return Effect.gen({ self: this }, function* () {
      const all = yield* Effect.forEach(this.foldsOf(stream), (fold) => begin(this.of, stream, fold))
      yield* goOn(this.of, yield* this.at(stream), all, until)
      yield* this.keepAll(stream, all)
    })
  }

  private foldsOf(stream: string): ReadonlyArray<AnyFold> {
    if (this.of.isArchived(stream)) return []
    return this.of.folds.filter((fold) => fold.of?.(stream) ?? true)
  }

  private at(stream: string) {
    // read the head first, so that a rune appended to the stream meanwhile is after this head
    return Effect.flatMap(this.of.head, (head) =>
      Effect.map(this.of.newest(stream), (newest): Standing => ({ stream, newest, head }))
    )
  }

  /** Reads a stream with all its folds together, when a feature requests one of these folds for the first time. */
  private readonly readTogether = Effect.fnUntraced(
    { self: this },
    function* (this: StreamReader, stream: string, asked: ReadonlyArray<AnyFold>) {
      const named = this.foldsOf(stream)
      if (this.begun.has(stream) || !asked.some((fold) => named.includes(fold))) return
      this.begun.add(stream)
      const others = asked.filter((fold) => !named.includes(fold))
      yield* Effect.gen({ self: this }, function* () {
        const all = yield* Effect.forEach([...named, ...others], (fold) => begin(this.of, stream, fold))
        yield* goOn(this.of, yield* this.at(stream), all)
        yield* this.keepAll(stream, all)
        this.ready.set(stream, new Map(all.map((one) => [one.fold.name, one])))
      }).pipe(Effect.ensuring(Effect.sync(() => this.waiting.delete(stream))))
    }
  )

  /** Removes and returns the state, because from now on only the caller uses it. Undefined: there is no such state. */
  private taken(stream: string, fold: AnyFold): Progress | undefined {
    const ready = this.ready.get(stream)
    const one = ready?.get(fold.name)
    if (ready === undefined || one?.fold !== fold) return undefined
    ready.delete(fold.name)
    if (ready.size === 0) this.ready.delete(stream)
    return one
  }

  private readonly keepAll = Effect.fnUntraced(
    { self: this },
    function* (this: StreamReader, stream: string, all: ReadonlyArray<Progress>) {
      const sizes = yield* Effect.forEach(all, (one) => this.keep(stream, one))
      if (sizes.some((size) => size > LARGE)) this.large.add(stream)
      else this.large.delete(stream)
    }
  )

  /** Saves a snapshot, if enough runes were read for the state. Returns its size in bytes; 0 if none was saved. */
  private readonly keep = Effect.fnUntraced(
    { self: this },
    function* (this: StreamReader, stream: string, one: Progress) {
      const { at, fold, thrown } = one
      if (thrown !== undefined || at.read < WORTH_KEEPING) return 0
      const { eventId } = at
      const { name, version } = fold
      const state = yield* Effect.catchDefect(bytesOf(one), (cause) =>
        Effect.as(Effect.logError(`no snapshot of the ${name} of ${stream} can be kept`, cause), undefined)
      )
      if (state === undefined) {
        yield* Effect.logInfo(`the ${name} of ${stream} have no snapshot at rune ${eventId}: the next start reads on`)
        return 0
      }
      this.of.keep({ stream, name, version, eventId, state })
      return state.length
    }
  )

  /** Runs `read` as soon as no other reader of the stream is running. */
  private alone<A, E>(stream: string, read: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.suspend(() => {
      const known = this.locks.get(stream) ?? { lock: Semaphore.makeUnsafe(1), users: 0 }
      known.users += 1
      this.locks.set(stream, known)
      return known.lock.withPermit(read).pipe(
        Effect.ensuring(
          Effect.sync(() => {
            known.users -= 1
            if (known.users === 0) this.locks.delete(stream)
          })
        )
      )
    })
  }
}
