/**
 * StreamFold: a state of one stream: what its runes, in order, make of an initial state.
 *
 * Several folds of a stream are recovered together: each begins at its snapshot, and the
 * runes after the oldest of the snapshots are read once. A checkpoint rune holds states in
 * the chain itself; a fold that meets its own goes on from there.
 */
import { Effect } from "effect"
import type { StorageError } from "./EventLog.ts"
import type { LogReader } from "./LogReader.ts"
import { readOwn } from "./OwnKinds.ts"
import * as PlainState from "./PlainState.ts"
import type { Rune, RuneDraft } from "./Rune.ts"
import { sealOf, type SnapshotOrder, type SnapshotRow } from "./Snapshot.ts"
import type { StoredRune } from "./StoredRune.ts"

export interface StreamFold<S> {
  /** Of the scope or the subscriber that it is the state of. */
  readonly name: string
  /** Rises with every change of `apply` or of the state: a snapshot of another version is none. */
  readonly version: number
  readonly initial: S
  // Methods, so that a table of folds can hold them whatever their states are.
  apply(state: S, rune: Rune): S
  /** How the state becomes JSON and comes back; left out where `PlainState` knows. */
  toPlain?(state: S): unknown
  fromPlain?(plain: unknown): S
}

/** A state, and the newest rune that is folded in. */
export interface Recovered<S> {
  readonly state: S
  /** 0 where there is none. */
  readonly eventId: number
  /** Runes that were read for it. */
  readonly read: number
}

export type Folds = { readonly [name: string]: StreamFold<unknown> }

export type RecoveredAll<F> = { readonly [K in keyof F]: F[K] extends StreamFold<infer S> ? Recovered<S> : never }

type AnyFold = StreamFold<unknown>

export const CHECKPOINT = "stream.checkpoint"

const PAGE = 256

const plainOf = (fold: AnyFold, state: unknown): unknown =>
  fold.toPlain === undefined ? PlainState.encode(state) : fold.toPlain(state)

const stateOf = (fold: AnyFold, plain: unknown): unknown =>
  fold.fromPlain === undefined ? PlainState.decode(plain) : fold.fromPlain(plain)

/** A snapshot of the state, for the store to keep. */
export const snapshotOf = <S>(stream: string, fold: StreamFold<S>, state: S, eventId: number): SnapshotOrder => ({
  stream,
  name: fold.name,
  version: fold.version,
  eventId,
  state: Buffer.from(JSON.stringify(plainOf(fold, state)))
})

/** The stream's whole state, as a rune of its chain. */
export const checkpointOf = (
  stream: string,
  actor: string,
  states: ReadonlyArray<readonly [fold: StreamFold<unknown>, state: unknown]>
): RuneDraft => ({
  stream,
  kind: CHECKPOINT,
  actor,
  payload: {
    states: Object.fromEntries(
      states.map(([fold, state]) => [fold.name, { version: fold.version, state: plainOf(fold, state) }])
    )
  }
})

/** The snapshot's state; undefined in doubt. `hashAt`: of the rune that the snapshot names, as the store has it. */
const restored = (
  fold: AnyFold,
  row: SnapshotRow | undefined,
  hashAt: string | undefined
): Recovered<unknown> | undefined => {
  if (row === undefined || row.version !== fold.version || row.hash !== hashAt || sealOf(row) !== row.seal) {
    return undefined
  }
  try {
    return { state: stateOf(fold, JSON.parse(Buffer.from(row.state).toString())), eventId: row.eventId, read: 0 }
  } catch {
    return undefined
  }
}

/** The state that the checkpoint holds for the fold. */
const checkpointed = (fold: AnyFold, rune: Rune): { readonly state: unknown } | undefined => {
  const own = readOwn(rune)
  const kept = own?.kind === "stream.checkpoint" ? own.payload.states[fold.name] : undefined
  return kept === undefined || kept.version !== fold.version ? undefined : { state: stateOf(fold, kept.state) }
}

export const applyTo = (fold: AnyFold, state: unknown, rune: Rune): unknown => {
  if (rune.kind !== CHECKPOINT) return fold.apply(state, rune)
  const kept = checkpointed(fold, rune)
  return kept === undefined ? state : kept.state
}

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
