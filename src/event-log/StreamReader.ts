/**
 * StreamReader: the states of one stream, read once by several folds together: each begins
 * at its snapshot, and the runes after the oldest of the snapshots are read.
 */
import { Effect } from "effect"
import type { StorageError } from "./EventLog.ts"
import type { LogReader } from "./LogReader.ts"
import type { Rune } from "./Rune.ts"
import type { SnapshotRow } from "./Snapshot.ts"
import type { StoredRune } from "./StoredRune.ts"
import { type AnyFold, applyTo, type Folds, type Recovered, type RecoveredAll, restored } from "./StreamFold.ts"

const PAGE = 256

/** Where snapshots are read. */
export interface Snapshots {
  readonly get: (stream: string, name: string) => Effect.Effect<SnapshotRow | undefined, StorageError>
}

export const noSnapshots: Snapshots = { get: () => Effect.void as Effect.Effect<undefined> }

export interface Source {
  readonly reader: LogReader
  readonly snapshots: Snapshots
  /** Stored runes as readers see them. */
  readonly shown: (stored: ReadonlyArray<StoredRune>) => Effect.Effect<ReadonlyArray<Rune>, StorageError>
}

/** `newest`: the stream's newest rune; 0 for a stream without any. */
export const recover = Effect.fnUntraced(function* <F extends Folds>(
  { reader, shown, snapshots }: Source,
  of: { readonly stream: string; readonly newest: number },
  folds: F
): Effect.fn.Return<RecoveredAll<F>, StorageError> {
  const states: Array<[key: string, fold: AnyFold, at: Recovered<unknown>]> = []
  for (const [key, fold] of Object.entries(folds)) {
    const row = yield* snapshots.get(of.stream, fold.name)
    const there = row === undefined ? [] : yield* reader.at([row.eventId])
    const from = restored(fold, row, there[0]?.hash)
    states.push([key, fold, from ?? { state: fold.initial, eventId: 0, read: 0 }])
  }
  const oldest = Math.min(...states.map(([, , { eventId }]) => eventId))
  const positions = yield* reader.positions(of.newest, oldest, Number.MAX_SAFE_INTEGER)
  for (let index = 0; index < positions.length; index += PAGE) {
    const runes = yield* Effect.flatMap(reader.at(positions.slice(index, index + PAGE)), shown)
    for (const entry of states) {
      const [, fold, from] = entry
      let { eventId, read, state } = from
      for (const rune of runes) {
        if (rune.eventId <= eventId) continue
        state = applyTo(fold, state, rune)
        eventId = rune.eventId
        read += 1
      }
      entry[2] = { state, eventId, read }
    }
    yield* Effect.yieldNow
  }
  return Object.fromEntries(states.map(([key, , at]) => [key, at])) as RecoveredAll<F>
})
