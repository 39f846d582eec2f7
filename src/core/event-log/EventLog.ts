/**
 * EventLog: the durable, append-only log that everything is a fold of.
 *
 * Guarantees: what `append` returned is on disk; the runes of one call become
 * durable together or not at all; ids rise by one over the store; subscribers
 * see committed runes only, each once, without gaps.
 */
import { Context, type Effect, Schema, type Stream } from "effect"
import type { Cause, Rune, RuneDraft } from "./Rune.ts"
import type { Folds, RecoveredAll, StreamFold } from "./StreamFold.ts"

/** The store does not take writes. `transient` ones were retried before this is seen. */
export class StorageError extends Schema.TaggedError<StorageError>()("StorageError", {
  message: Schema.String,
  remedy: Schema.String,
  /** "full", "locked", "corrupt", "newer-schema", "io", "closed" … */
  reason: Schema.String
}) {}

/** A draft that may not be written: too large, of an unknown shape, or against an invariant. */
export class RuneRefused extends Schema.TaggedError<RuneRefused>()("RuneRefused", {
  kind: Schema.String,
  /** The id of an invariant, or "schema", "size", "sealed". */
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
  /** ms since the epoch */
  readonly since?: number
}

/** A stream, and its newest durable rune. */
export interface StreamHead {
  readonly stream: string
  readonly eventId: number
  /** Nothing is appended to it any more. */
  readonly isSealed: boolean
}

/** The part of the log that may leave the store. */
export interface Sealing {
  /** No rune beyond it. */
  readonly upTo: number
  /** The first rune of this time or later stays, and all behind it; ms since the epoch. */
  readonly before: number
  /** Fewer runes make no segment. */
  readonly least: number
}

/** The part of the log that may be deleted: whole segments, the oldest ones first. */
export interface Forgetting {
  /** Only what is older goes: since then something is open; ms since the epoch. */
  readonly openSince: number
  /** Older runes than this go; ms since the epoch. */
  readonly before: number
  /** Bytes of segments that stay; what is beyond goes, too. */
  readonly keepBytes: number
  /** The person's setting, in words. */
  readonly by: string
}

/** Where the log begins, if not with its first rune: what was before was deleted by a person's setting. */
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

/** The part of a rune that an erasure would take, or has taken. */
export interface Erasable extends Erased {
  readonly kind: string
  /** Names of the fields, with dots between. */
  readonly fields: ReadonlyArray<string>
  /** Characters in all. */
  readonly size: number
}

/** A part of a stream that a feature goes on without. */
export interface SetAside {
  readonly stream: string
  /** In words: "the channel dev". */
  readonly part: string
  readonly message: string
}

/** How far the streams of the start are read. */
export interface Reading {
  /** Streams that features of the program fold. */
  readonly streams: number
  readonly read: number
  /** So many runes were folded up to now: it rises for as long as the reading goes on. */
  readonly runes: number
  readonly unreadable: ReadonlyArray<{ readonly stream: string; readonly message: string }>
  readonly aside: ReadonlyArray<SetAside>
  /** In words: runes that were acknowledged are not there. */
  readonly behind?: string
  /** Archives of an older agentd that could not be put back into the log: a line for each conversation, in words. */
  readonly archives?: string
}

/** A stream whose chain does not hold: it takes nothing more. */
export interface Damage {
  readonly stream: string
  readonly message: string
}

export interface Verdict {
  readonly runes: number
  readonly streams: number
  /** Runes whose texts were erased, as later runes say. */
  readonly erased: ReadonlyArray<Erased>
  /** Left out: with the first rune. */
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
  /** The first problem, in words. */
  readonly first: string | null
}

export class EventLog extends Context.Service<
  EventLog,
  {
    /** Appends in order and atomically; returns when they are durable, with their positions, seqs and times. */
    readonly append: (
      drafts: ReadonlyArray<RuneDraft>
    ) => Effect.Effect<ReadonlyArray<Rune>, StorageError | RuneRefused>
    /** For kinds that no fold reads (deltas, progress): returns at once, durable with the next group. Drops the oldest when its bounded buffer is full, and says so with a `runes.dropped` rune. */
    readonly appendLazy: (drafts: ReadonlyArray<RuneDraft>) => Effect.Effect<void>
    /** Returns when all that was given until now is durable, lazy runes too, but those that were dropped. */
    readonly flushed: Effect.Effect<void, StorageError>
    /** Reads the runes that are there now, oldest first. */
    readonly read: (selection: Selection) => Stream.Stream<Rune, StorageError>
    /** The newest `count` that match, oldest first. */
    readonly tail: (selection: Selection, count: number) => Effect.Effect<ReadonlyArray<Rune>, StorageError>
    readonly get: (eventId: number) => Effect.Effect<Rune | undefined, StorageError>
    /** By stream and seq, as a cause names it: quick for a rune near the end of its stream, or not long before `near`. */
    readonly find: (cause: Cause, near?: Rune) => Effect.Effect<Rune | undefined, StorageError>
    /** By their positions, in their order; what is not there is left out. */
    readonly at: (positions: ReadonlyArray<number>) => Effect.Effect<ReadonlyArray<Rune>, StorageError>
    /**
     * Positions of the newest `count` that match, oldest first, without reading them where that can be. A bounded
     * search: `whole` is false where older ones may match, too.
     */
    readonly places: (
      selection: Selection,
      count: number
    ) => Effect.Effect<{ readonly positions: ReadonlyArray<number>; readonly whole: boolean }, StorageError>
    /** Reads the present runes, then the coming ones, without gap or duplicate. Never blocks the writer: a slow reader reads from disk. */
    readonly subscribe: (selection: Selection) => Stream.Stream<Rune, StorageError>
    /**
     * For a subscriber that lives over restarts: what matches and it has not taken yet, then what comes. A rune
     * that `handle` did not complete is handed over again at the next start.
     */
    readonly follow: <E, R>(
      subscriber: string,
      selection: Selection,
      handle: (runes: ReadonlyArray<Rune>) => Effect.Effect<void, E, R>
    ) => Effect.Effect<void, E | StorageError, R>
    /** The highest eventId that is durable. */
    readonly head: Effect.Effect<number>
    /** The highest eventId that was given away: above `head` while runes wait for the disk. */
    readonly assigned: Effect.Effect<number>
    /**
     * Appends the rune that says that a sealed stream is archived; undefined if it was appended before. No fold reads
     * the stream from the next start on. Its runes stay in the log.
     */
    readonly archive: (stream: string, draft: RuneDraft) => Effect.Effect<Rune | undefined, StorageError | RuneRefused>
    /** Says what an erasure of the rune would take; refuses a rune that holds no text that can be erased. */
    readonly erasable: (eventId: number) => Effect.Effect<Erasable, StorageError | RuneRefused>
    /**
     * Erases the texts of a rune in the store, its segment and its snapshots. A rune says so before, with who asked
     * for it, and another one after: what was begun is finished by the next start. The chain stays whole.
     */
    readonly erase: (eventId: number, by: string) => Effect.Effect<Erasable, StorageError | RuneRefused>
    /**
     * Moves the oldest runes out of the store into a file of their own, as far as `sealing` lets them go; the rune
     * that says so, or undefined where they are too few. Whoever reads finds them as before.
     */
    readonly seal: (sealing: Sealing) => Effect.Effect<Rune | undefined, StorageError | RuneRefused>
    /** The runes that have left the store, by the newest of them, the bytes of their files, and the newest deleted one. */
    readonly sealed: Effect.Effect<{ readonly last: number; readonly bytes: number; readonly deleted: number }>
    /**
     * Deletes the oldest segments, as far as `forgetting` lets them go; the rune that says so, or undefined where none
     * may. The states that their runes had made are kept, and each chain goes on.
     */
    readonly forget: (forgetting: Forgetting) => Effect.Effect<Rune | undefined, StorageError | RuneRefused>
    /** Completes when the store has given up (a full disk that stayed full, a file that is damaged): nothing is appended any more. */
    readonly failed: Effect.Effect<StorageError>
    /**
     * The states of one stream, from the folds' snapshots and the runes after them. The first that asks has the
     * stream read by all the folds that the program has named for it; what the others ask for is there then. A
     * stream that cannot be read fails alone.
     */
    readonly recover: <const F extends Folds>(stream: string, folds: F) => Effect.Effect<RecoveredAll<F>, StorageError>
    /** The streams whose chains do not hold. */
    readonly damaged: Effect.Effect<ReadonlyArray<Damage>>
    /** The same streams, then each that is found later. */
    readonly damages: Stream.Stream<Damage>
    /** How far the streams that were there at the start have been read. */
    readonly reading: Effect.Effect<Reading>
    /** A feature says that it goes on without a part of a stream: `reading` names the part, and people are mailed, once. */
    readonly setAside: (part: SetAside) => Effect.Effect<void>
    readonly streams: Effect.Effect<ReadonlyArray<StreamHead>, StorageError>
    /**
     * Keeps a snapshot of a fold's state at a durable rune of the stream, when the store has time: a saving
     * of the next start, and never the truth.
     */
    readonly keep: <S>(stream: string, fold: StreamFold<S>, state: S, eventId: number) => void
    /** Re-reads the whole store: hash chains, id order, INV-* rows that are checked by verify. */
    readonly verify: Effect.Effect<Verdict, StorageError>
    /** The same at an idle pace; a rune says how it ended, and one more, of which people are mailed, what was found. */
    readonly scrub: Effect.Effect<Checked, StorageError | RuneRefused>
    /** How the last of these ended; null: there was none since the log began, or was repaired. */
    readonly checked: Effect.Effect<Checked | null>
  }
>()("agentd/event-log/EventLog") {}
