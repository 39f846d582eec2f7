/**
 * LogReader: the interface for reading a store. The log behaves the same with every kind of store.
 *
 * A store is read in pieces: each call reads a bounded number of runes. Therefore no reader keeps a statement open, and
 * a filter that rarely matches does not block other work for long. Runes are ordered by eventId.
 */
import type { Effect } from "effect"
import type { Selection, StorageError } from "./EventLog.ts"
import type { StoredRune } from "./StoredRune.ts"

/** Matching runes, and the position (`cursor`) up to which the store was searched for matches. */
export interface Page {
  readonly runes: ReadonlyArray<StoredRune>
  readonly cursor: number
}

export interface LogReader {
  /**
   * Matching runes with `after` < eventId ≤ `upTo`, oldest first. Each call does a limited amount of work, so the
   * cursor can stop before `upTo`.
   */
  readonly page: (selection: Selection, after: number, upTo: number) => Effect.Effect<Page, StorageError>
  /** Matching runes with `downTo` < eventId ≤ `before`, newest first, at most `count`. Limited like `page`. */
  readonly pageBack: (
    selection: Selection,
    before: number,
    downTo: number,
    count: number
  ) => Effect.Effect<Page, StorageError>
  /** Positions of a stream's runes, from its rune `newest` back to position `after`, at most `count`, oldest first. */
  readonly positions: (
    newest: number,
    after: number,
    count: number
  ) => Effect.Effect<ReadonlyArray<number>, StorageError>
  /**
   * Like `positions`, but returns all positions after `after`, in pieces. The number of runes in a piece and the size
   * of their payloads are limited.
   */
  readonly pages: (newest: number, after: number) => Effect.Effect<ReadonlyArray<ReadonlyArray<number>>, StorageError>
  /** The runes at these positions, in the order of the positions. */
  readonly at: (positions: ReadonlyArray<number>) => Effect.Effect<ReadonlyArray<StoredRune>, StorageError>
  /** The newest `count` matching runes at these positions, newest first. The positions are passed oldest first. */
  readonly newest: (
    positions: ReadonlyArray<number>,
    selection: Selection,
    count: number
  ) => Effect.Effect<ReadonlyArray<StoredRune>, StorageError>
  /** The last eventId of the newest commit, as recorded in the store. */
  readonly lastCommitted: Effect.Effect<number, StorageError>
}
