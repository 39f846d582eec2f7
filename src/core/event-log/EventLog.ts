/**
 * EventLog: the durable, append-only log. All states of the program are folds of its runes.
 *
 * Guarantees: the runes that `append` returned are on disk. The runes of one call become durable together or not at
 * all. Ids rise by one over the whole store. Subscribers see committed runes only, each once, without gaps.
 */
import { Context, type Effect, Schema, type Stream } from "effect"
import type { Cause, Rune, RuneDraft } from "./Rune.ts"
import type { Folds, RecoveredAll, StreamFold } from "./StreamFold.ts"

/** The store cannot be written, or cannot be read. Errors that can pass were retried before this error is raised. */
export class StorageError extends Schema.TaggedError<StorageError>()("StorageError", {
  message: Schema.String,
  remedy: Schema.String,
  /** "full", "locked", "corrupt", "newer-schema", "io", "closed" … */
  reason: Schema.String
}) {}

/**
 * A draft was refused: it is too large, has an unknown shape, or violates an invariant, or its stream is sealed. Also
 * raised for an `archive` or `erase` that is not possible.
 */
export class RuneRefused extends Schema.TaggedError<RuneRefused>()("RuneRefused", {
  kind: Schema.String,
  /** The id of an invariant, or "schema", "size", "sealed", "unsealed" (by `archive`), "erase" (by `erase`). */
  rule: Schema.String,
  message: Schema.String
}) {}

/** A selection of runes: all filters must hold. */
export interface Selection {
  /** Only runes with an eventId above this. */
  readonly after?: number
  readonly stream?: string
  readonly actor?: string
  /** Only runes of one of these actors; `tool/builder/` stands for all actors below it. */
  readonly actors?: ReadonlyArray<string>
  readonly kinds?: ReadonlyArray<string>
  /** Only runes of this time or later; ms since the epoch. */
  readonly since?: number
}

/** A stream, and its newest durable rune. */
export interface StreamHead {
  readonly stream: string
  readonly eventId: number
  /** Nothing more can be appended to the stream. */
  readonly isSealed: boolean
}

/** The part of the log that may move from the store into a segment. */
export interface Sealing {
  /** The last position that may move. */
  readonly upTo: number
  /** The first rune of this time or later stays, and so do all runes after it; ms since the epoch. */
  readonly before: number
  /** Minimum number of runes; with fewer, no segment is made. */
  readonly least: number
}

/** The part of the log that may be deleted: whole segments, the oldest ones first. */
export interface Forgetting {
  /**
   * Something has been open since this time: only segments whose newest rune is older are deleted. ms since the epoch.
   */
  readonly openSince: number
  /** Segments whose newest rune is older than this are deleted; ms since the epoch. */
  readonly before: number
  /** Maximum size of all segments in bytes: beyond it, the oldest are deleted, too. */
  readonly keepBytes: number
  /** The person's setting, in words. */
  readonly by: string
}

/** Where the log begins, if its oldest runes were deleted by a person's setting. */
export interface Begins {
  readonly eventId: number
  /** The time of the newest deleted rune, ms since the epoch. */
  readonly at: number
  readonly by: string
}

/** A rune that is not as it was written. */
export interface Problem {
  readonly eventId: number
  readonly stream: string
  readonly rule: string
  readonly message: string
}

export interface Erased {
  readonly eventId: number
  readonly stream: string
}

/** The part of a rune that an erasure would remove, or has removed. */
export interface Erasable extends Erased {
  readonly kind: string
  /** Paths of the fields: names separated by dots. */
  readonly fields: ReadonlyArray<string>
  /** Total number of characters. */
  readonly size: number
}

/** A part of a stream that a feature goes on without. */
export interface SetAside {
  readonly stream: string
  /** The part in words, such as "the channel dev". */
  readonly part: string
  readonly message: string
}

/** Progress of reading the streams that existed at the start. */
export interface Reading {
  /** Number of those streams that features of the program fold. */
  readonly streams: number
  readonly read: number
  /** Number of runes read so far; it rises while the reading continues. */
  readonly runes: number
  readonly unreadable: ReadonlyArray<{ readonly stream: string; readonly message: string }>
  readonly aside: ReadonlyArray<SetAside>
  /** Says in words that acknowledged runes are missing; absent if none are. */
  readonly behind?: string
  /** Archives of an older agentd that could not be put back into the log, in words: one line for each conversation. */
  readonly archives?: string
}

/** A stream whose chain is broken: it accepts no more runes. */
export interface Damage {
  readonly stream: string
  readonly message: string
}

export interface Verdict {
  readonly runes: number
  readonly streams: number
  /** Runes whose texts were erased, as later runes say. */
  readonly erased: ReadonlyArray<Erased>
  /** Absent if the log begins with its first rune. */
  readonly begins?: Begins
  /** Empty when all is well. */
  readonly problems: ReadonlyArray<Problem>
}

/** How the last check of the whole log ended. */
export interface Checked {
  /** ms since the epoch. */
  readonly at: number
  readonly runes: number
  readonly problems: number
  /** The first problem, in words; null if there is none. */
  readonly first: string | null
}

export class EventLog extends Context.Service<
  EventLog,
  {
    /**
     * Appends in order and atomically. Returns the runes, with their positions, seqs and times, when they are durable.
     */
    readonly append: (
      drafts: ReadonlyArray<RuneDraft>
    ) => Effect.Effect<ReadonlyArray<Rune>, StorageError | RuneRefused>
    /**
     * For kinds that no fold reads (deltas, progress). Returns at once; the runes become durable with the next group.
     * If the bounded buffer is full, the oldest runes are dropped, and a `runes.dropped` rune says so.
     */
    readonly appendLazy: (drafts: ReadonlyArray<RuneDraft>) => Effect.Effect<void>
    /**
     * Completes when all runes that were passed in until now are durable, also lazy ones. Dropped runes do not count.
     */
    readonly flushed: Effect.Effect<void, StorageError>
    /** Reads the runes that exist now, oldest first. */
    readonly read: (selection: Selection) => Stream.Stream<Rune, StorageError>
    /** The newest `count` that match, oldest first. */
    readonly tail: (selection: Selection, count: number) => Effect.Effect<ReadonlyArray<Rune>, StorageError>
    readonly get: (eventId: number) => Effect.Effect<Rune | undefined, StorageError>
    /**
     * Finds a rune by stream and seq, as a cause names it; undefined if there is none. Fast for a rune near the end of
     * its stream, or shortly before `near`.
     */
    readonly find: (cause: Cause, near?: Rune) => Effect.Effect<Rune | undefined, StorageError>
    /** The runes at these positions, in the same order. Missing runes are left out. */
    readonly at: (positions: ReadonlyArray<number>) => Effect.Effect<ReadonlyArray<Rune>, StorageError>
    /**
     * Positions of the newest `count` runes that match, oldest first. If possible, the runes are not read. The search
     * is bounded: `whole` is false if older runes can match, too.
     */
    readonly places: (
      selection: Selection,
      count: number
    ) => Effect.Effect<{ readonly positions: ReadonlyArray<number>; readonly whole: boolean }, StorageError>
    /**
     * Reads the existing runes, then new ones, without gap or duplicate. Never blocks the writer: a slow reader reads
     * from disk.
     */
    readonly subscribe: (selection: Selection) => Stream.Stream<Rune, StorageError>
    /**
     * For a subscriber that continues after restarts: hands over the matching runes that it has not taken yet, then new
     * ones. A rune that `handle` did not complete is handed over again at the next start.
     */
    readonly follow: <E, R>(
      subscriber: string,
      selection: Selection,
      handle: (runes: ReadonlyArray<Rune>) => Effect.Effect<void, E, R>
    ) => Effect.Effect<void, E | StorageError, R>
    /** The highest eventId that is durable. */
    readonly head: Effect.Effect<number>
    /** The highest assigned eventId: above `head` while runes wait for the disk. */
    readonly assigned: Effect.Effect<number>
    /**
     * Appends the rune that says that a sealed stream is archived; undefined if it was appended before. From the next
     * start on, no fold reads the stream. Its runes stay in the log.
     */
    readonly archive: (stream: string, draft: RuneDraft) => Effect.Effect<Rune | undefined, StorageError | RuneRefused>
    /** Returns what an erasure of the rune would remove. Refuses a rune that has no text that can be erased. */
    readonly erasable: (eventId: number) => Effect.Effect<Erasable, StorageError | RuneRefused>
    /**
     * Erases the texts of a rune in the store, its segment and its snapshots. One rune says so before, with the person
     * who requested it, and another rune after. The next start finishes an erasure that was interrupted. The chain
     * stays whole.
     */
    readonly erase: (eventId: number, by: string) => Effect.Effect<Erasable, StorageError | RuneRefused>
    /**
     * Moves the oldest runes out of the store into a file of their own, as far as `sealing` allows. Returns the rune
     * that says so; undefined if the runes are too few. Readers find the moved runes as before.
     */
    readonly seal: (sealing: Sealing) => Effect.Effect<Rune | undefined, StorageError | RuneRefused>
    /**
     * `last`: the newest rune that has left the store. `bytes`: the size of all segment files. `deleted`: the newest
     * deleted rune. Each is 0 if there is none.
     */
    readonly sealed: Effect.Effect<{ readonly last: number; readonly bytes: number; readonly deleted: number }>
    /**
     * Deletes the oldest segments, as far as `forgetting` allows. Returns the rune that says so; undefined if no
     * segment may be deleted now. The states that their runes had produced are kept, and each chain continues.
     */
    readonly forget: (forgetting: Forgetting) => Effect.Effect<Rune | undefined, StorageError | RuneRefused>
    /**
     * Completes when the store has given up (a full disk that stayed full, a damaged file). From then on nothing can be
     * appended.
     */
    readonly failed: Effect.Effect<StorageError>
    /**
     * The states of one stream, from the folds' snapshots and the runes after them. The first call for a stream reads
     * it for all folds that the program has named for it. Calls for the other folds then find their states ready. If a
     * stream cannot be read, only its own calls fail.
     */
    readonly recover: <const F extends Folds>(stream: string, folds: F) => Effect.Effect<RecoveredAll<F>, StorageError>
    /** The streams whose chains are broken. */
    readonly damaged: Effect.Effect<ReadonlyArray<Damage>>
    /** Emits the damaged streams, then each one that is found later. */
    readonly damages: Stream.Stream<Damage>
    /** Progress of reading the streams that existed at the start. */
    readonly reading: Effect.Effect<Reading>
    /** For a feature that goes on without a part of a stream: `reading` names the part, and people are mailed once. */
    readonly setAside: (part: SetAside) => Effect.Effect<void>
    readonly streams: Effect.Effect<ReadonlyArray<StreamHead>, StorageError>
    /**
     * Saves a snapshot of a fold's state at a durable rune of the stream, when the store has time. A snapshot makes the
     * next start faster, and is never the truth.
     */
    readonly keep: <S>(stream: string, fold: StreamFold<S>, state: S, eventId: number) => void
    /**
     * Reads the whole store again, and checks hash chains, the order of ids, and the invariants that can be checked in
     * stored runes.
     */
    readonly verify: Effect.Effect<Verdict, StorageError>
    /**
     * Like `verify`, at an idle pace. A rune records the outcome. If there are problems, another rune reports them, and
     * people are mailed about it.
     */
    readonly scrub: Effect.Effect<Checked, StorageError | RuneRefused>
    /** Outcome of the last check; null if there was none since the log began, or since its last repair. */
    readonly checked: Effect.Effect<Checked | null>
  }
>()("agentd/event-log/EventLog") {}
