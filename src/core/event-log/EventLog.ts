/**
 * EventLog: the durable, append-only log. All states of the program are folds of its runes.
 *
 * Guarantees: the runes that `append` returned are on disk. The runes of one call become durable together or not at
 * all. Ids rise by one over the whole store. Subscribers see committed runes only, each once, without gaps.
 */
import { Context, type Effect, Schema, type Stream } from "effect"
import type { Cause, Rune, RuneDraft } from "./Rune.ts"
import type { Folds, RecoveredAll, StreamFold } from "./StreamFold.ts"

/** The store cannot be written, or cannot be read. Temporary errors were retried before this error is raised. */
export class StorageError extends Schema.TaggedError<StorageError>()("StorageError", {
  message: Schema.String,
  remedy: Schema.String,
  /** Kind of failure: "full", "locked", "corrupt", "newer-schema", "io", "closed" and others. */
  reason: Schema.String
}) {}

/**
 * A draft was refused: it is too large, has an unknown shape, violates an invariant, or is for a sealed stream. Also
 * raised if an `archive` or `erase` is not possible.
 */
export class RuneRefused extends Schema.TaggedError<RuneRefused>()("RuneRefused", {
  kind: Schema.String,
  /** The violated rule: an invariant's id, "schema", "size", "sealed", "unsealed" (`archive`) or "erase" (`erase`). */
  rule: Schema.String,
  message: Schema.String
}) {}

/** Selects runes. A rune must match all the filters that are set. */
export interface Selection {
  /** Only runes with a higher eventId than this. */
  readonly after?: number
  readonly stream?: string
  readonly actor?: string
  /** Only runes of one of these actors; `tool/builder/` stands for all actors below it. */
  readonly actors?: ReadonlyArray<string>
  readonly kinds?: ReadonlyArray<string>
  /** Only runes of this time or later; ms since the epoch. */
  readonly since?: number
}

/** A stream and its newest durable rune. */
export interface StreamHead {
  readonly stream: string
  readonly eventId: number
  /** True if the stream accepts no more runes. */
  readonly isSealed: boolean
}

/** Limits of a move of the oldest runes from the store into a segment. */
export interface Sealing {
  /** Highest eventId that may be moved to the segment. */
  readonly upTo: number
  /** Ms since the epoch. The first rune of this time or later, and all runes after it, stay in the store. */
  readonly before: number
  /** Minimum number of runes in a segment. With fewer, nothing is moved. */
  readonly least: number
}

/** Limits of a deletion. Only whole segments are deleted, oldest first. */
export interface Forgetting {
  /**
   * Start time (ms since the epoch) of the oldest item that is still open. A segment with a rune of this time or later
   * is never deleted.
   */
  readonly openSince: number
  /** Segments whose newest rune is older than this are deleted; ms since the epoch. */
  readonly before: number
  /** Maximum total size of all segments in bytes. If they are larger, the oldest segments are deleted, too. */
  readonly keepBytes: number
  /** The user's setting that causes the deletion, as it is shown to the user. */
  readonly by: string
}

/** The beginning of a log whose oldest runes were deleted by a user's setting. */
export interface Begins {
  readonly eventId: number
  /** The time of the newest deleted rune, ms since the epoch. */
  readonly at: number
  readonly by: string
}

/** A problem with a rune: the rune is damaged, missing or out of order. */
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

/** Text in a rune that an erasure would remove, or has removed. */
export interface Erasable extends Erased {
  readonly kind: string
  /** Paths of the erasable fields: field names separated by dots. */
  readonly fields: ReadonlyArray<string>
  /** Total number of characters in the erasable fields. */
  readonly size: number
}

/** A part of a stream that cannot be folded or read, so that a feature works without it. */
export interface SetAside {
  readonly stream: string
  /** Description of the part, such as "the channel dev". */
  readonly part: string
  readonly message: string
}

/** Progress in reading the streams that existed at the start. */
export interface Reading {
  /** Number of streams that existed at the start and that features of the program fold. */
  readonly streams: number
  readonly read: number
  /** Number of runes read so far. The number rises until all streams are read. */
  readonly runes: number
  readonly unreadable: ReadonlyArray<{ readonly stream: string; readonly message: string }>
  readonly aside: ReadonlyArray<SetAside>
  /** Message about missing acknowledged runes; absent if none are missing. */
  readonly behind?: string
  /** Message about archives of an older agentd that could not be restored, with one line for each conversation. */
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
  /** Runes with erased text. Another rune, later in the log, records each erasure. */
  readonly erased: ReadonlyArray<Erased>
  /** The beginning of the log, if its oldest runes were deleted; absent if no runes were deleted. */
  readonly begins?: Begins
  /** Problems that were found; empty if there are none. */
  readonly problems: ReadonlyArray<Problem>
}

/** Result of the last check of the whole log. */
export interface Checked {
  /** When the check ended, in ms since the epoch. */
  readonly at: number
  readonly runes: number
  readonly problems: number
  /** Description of the first problem; null if no problem was found. */
  readonly first: string | null
}

export class EventLog extends Context.Service<
  EventLog,
  {
    /** Appends runes atomically, in order. When they are durable, returns them with their positions, seqs and times. */
    readonly append: (
      drafts: ReadonlyArray<RuneDraft>
    ) => Effect.Effect<ReadonlyArray<Rune>, StorageError | RuneRefused>
    /**
     * Appends lazy runes: runes of kinds that no fold reads (deltas, progress). Returns at once; the runes become
     * durable with the next group. If the buffer is full, the oldest runes are dropped, and a `runes.dropped` rune
     * records how many.
     */
    readonly appendLazy: (drafts: ReadonlyArray<RuneDraft>) => Effect.Effect<void>
    /**
     * Completes when all runes that were passed to the log before this call are durable, including lazy ones. Does not
     * wait for dropped runes.
     */
    readonly flushed: Effect.Effect<void, StorageError>
    /** Reads the matching runes that exist now, oldest first. */
    readonly read: (selection: Selection) => Stream.Stream<Rune, StorageError>
    /** The newest `count` matching runes, oldest first. */
    readonly tail: (selection: Selection, count: number) => Effect.Effect<ReadonlyArray<Rune>, StorageError>
    readonly get: (eventId: number) => Effect.Effect<Rune | undefined, StorageError>
    /**
     * Finds the rune that a cause names by stream and seq; undefined if there is none. Fast for a rune near the end of
     * its stream, or shortly before `near`.
     */
    readonly find: (cause: Cause, near?: Rune) => Effect.Effect<Rune | undefined, StorageError>
    /** The runes at these positions, in the same order. Missing runes are left out. */
    readonly at: (positions: ReadonlyArray<number>) => Effect.Effect<ReadonlyArray<Rune>, StorageError>
    /**
     * Positions of the newest `count` matching runes, oldest first. If possible, the runes themselves are not read. The
     * search is limited: if it stopped early, `whole` is false, and older runes can match, too.
     */
    readonly places: (
      selection: Selection,
      count: number
    ) => Effect.Effect<{ readonly positions: ReadonlyArray<number>; readonly whole: boolean }, StorageError>
    /**
     * Reads the existing matching runes, then new ones, without gaps or duplicates. Never blocks the writer: a slow
     * reader reads from disk.
     */
    readonly subscribe: (selection: Selection) => Stream.Stream<Rune, StorageError>
    /**
     * For a subscriber that continues after restarts. Calls `handle` with the matching runes that the subscriber has
     * not processed yet, then with new ones. If `handle` does not complete, its runes are passed again at the next
     * start.
     */
    readonly follow: <E, R>(
      subscriber: string,
      selection: Selection,
      handle: (runes: ReadonlyArray<Rune>) => Effect.Effect<void, E, R>
    ) => Effect.Effect<void, E | StorageError, R>
    /** The highest eventId that is durable. */
    readonly head: Effect.Effect<number>
    /** The highest assigned eventId. Higher than `head` while runes are not durable yet. */
    readonly assigned: Effect.Effect<number>
    /**
     * Archives a sealed stream by appending a rune. Returns this rune; undefined if the stream was already archived.
     * From the next start on, no fold reads the stream. Its runes stay in the log.
     */
    readonly archive: (stream: string, draft: RuneDraft) => Effect.Effect<Rune | undefined, StorageError | RuneRefused>
    /** Returns the text that an erasure of the rune would remove. Fails if the rune has no erasable text. */
    readonly erasable: (eventId: number) => Effect.Effect<Erasable, StorageError | RuneRefused>
    /**
     * Erases the text of a rune in the store, in its segment and in snapshots. Before the erasure begins, one rune
     * records it with the user who requested it; another rune records its end. The next start finishes an interrupted
     * erasure. The hash chain stays valid.
     */
    readonly erase: (eventId: number, by: string) => Effect.Effect<Erasable, StorageError | RuneRefused>
    /**
     * Moves the oldest runes from the store into a segment file, within the limits of `sealing`. Returns the rune that
     * records the move; undefined if there are too few runes. Moved runes can still be read.
     */
    readonly seal: (sealing: Sealing) => Effect.Effect<Rune | undefined, StorageError | RuneRefused>
    /**
     * `last`: eventId of the newest rune that was moved out of the store. `bytes`: total size of all segment files.
     * `deleted`: eventId of the newest deleted rune. Each is 0 if there is none.
     */
    readonly sealed: Effect.Effect<{ readonly last: number; readonly bytes: number; readonly deleted: number }>
    /**
     * Deletes the oldest segments, within the limits of `forgetting`. Returns the rune that records the deletion;
     * undefined if no segment may be deleted now. The states folded from the deleted runes are kept, and each hash
     * chain continues.
     */
    readonly forget: (forgetting: Forgetting) => Effect.Effect<Rune | undefined, StorageError | RuneRefused>
    /**
     * Completes when the store has failed permanently, for example because the disk stays full or a file is damaged.
     * After that, nothing can be appended.
     */
    readonly failed: Effect.Effect<StorageError>
    /**
     * Recovers the states of one stream from the folds' snapshots and the runes after them. The first call for a stream
     * reads it for all folds that the program declares for that stream. Later calls for other folds of the stream
     * return the states that are ready. If a stream cannot be read, only the calls for this stream fail.
     */
    readonly recover: <const F extends Folds>(stream: string, folds: F) => Effect.Effect<RecoveredAll<F>, StorageError>
    readonly damaged: Effect.Effect<ReadonlyArray<Damage>>
    /** Emits the streams that are already known to be damaged, and then each damaged stream that is found later. */
    readonly damages: Stream.Stream<Damage>
    readonly reading: Effect.Effect<Reading>
    /** Records that a feature works without a part of a stream. `reading` then lists the part, and one mail is sent. */
    readonly setAside: (part: SetAside) => Effect.Effect<void>
    readonly streams: Effect.Effect<ReadonlyArray<StreamHead>, StorageError>
    /**
     * Saves a snapshot of a fold's state at a durable rune of the stream, when the store is idle. A snapshot only makes
     * the next start faster. The runes stay the source of truth.
     */
    readonly keep: <S>(stream: string, fold: StreamFold<S>, state: S, eventId: number) => void
    /**
     * Reads the whole store again, and checks the hash chains, the order of ids, and those invariants that can be
     * checked in stored runes.
     */
    readonly verify: Effect.Effect<Verdict, StorageError>
    /**
     * Like `verify`, but slow and in the background. A rune records the result. If there are problems, another rune
     * reports them, and the user is mailed.
     */
    readonly scrub: Effect.Effect<Checked, StorageError | RuneRefused>
    /** Result of the last check of the whole log; null if there was none since the log began or was last repaired. */
    readonly checked: Effect.Effect<Checked | null>
  }
>()("agentd/event-log/EventLog") {}
