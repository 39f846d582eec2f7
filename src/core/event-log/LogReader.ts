/**
 * LogReader: what is read of a store. The log's behaviour is the same over every store.
 *
 * Reading is done in pieces: each call looks at a bounded number of runes, so that no
 * reader holds anything open, and a rare filter stops nothing for long. Runes come as
 * they went in, ordered by eventId.
 */
import type { Effect } from "effect"
import type { Selection, StorageError } from "./EventLog.ts"
import type { StoredRune } from "./StoredRune.ts"

/** Some runes, and how far the store has been searched for them. */
export interface Page {
  readonly runes: ReadonlyArray<StoredRune>
  readonly cursor: number
}

export interface LogReader {
  /** Matches with `after` < eventId ≤ `upTo`, oldest first; a bounded piece of work, so the cursor may stop short. */
  readonly page: (selection: Selection, after: number, upTo: number) => Effect.Effect<Page, StorageError>
  /** Matches with `downTo` < eventId ≤ `before`, newest first, at most `count`; as bounded as `page`. */
  readonly pageBack: (
    selection: Selection,
    before: number,
    downTo: number,
    count: number
  ) => Effect.Effect<Page, StorageError>
  /** Positions of the runes of a stream, from its rune `newest` back to `after`, at most `count`, oldest first. */
  readonly positions: (
    newest: number,
    after: number,
    count: number
  ) => Effect.Effect<ReadonlyArray<number>, StorageError>
  /** The positions after `after` as above, all of them, in pieces that are bounded in runes and in bytes of payload. */
  readonly pages: (newest: number, after: number) => Effect.Effect<ReadonlyArray<ReadonlyArray<number>>, StorageError>
  /** The runes at these positions, in their order. */
  readonly at: (positions: ReadonlyArray<number>) => Effect.Effect<ReadonlyArray<StoredRune>, StorageError>
  /** Of the runes at these positions, which are given oldest first, the newest `count` that match: newest first. */
  readonly newest: (
    positions: ReadonlyArray<number>,
    selection: Selection,
    count: number
  ) => Effect.Effect<ReadonlyArray<StoredRune>, StorageError>
  /** The eventId that the last commit ended with, as the store itself remembers it. */
  readonly lastCommitted: Effect.Effect<number, StorageError>
}
