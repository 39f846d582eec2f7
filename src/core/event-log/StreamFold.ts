/**
 * StreamFold: a state of one stream: what its runes, in order, make of an initial state.
 *
 * A snapshot of the state saves reading the runes before it. A checkpoint rune holds states
 * in the chain itself; a fold that meets its own goes on from there.
 */
import { readOwn } from "./OwnKinds.ts"
import * as PlainState from "./PlainState.ts"
import type { Rune, RuneDraft } from "./Rune.ts"
import { sealOf, type SnapshotOrder, type SnapshotRow } from "./Snapshot.ts"

export interface StreamFold<S> {
  /** Of the scope or the subscriber that it is the state of. */
  readonly name: string
  /** Rises with every change of `apply` or of the state: a snapshot of another version is none. */
  readonly version: number
  readonly initial: S
  /** The streams that may hold what it folds; left out: every one. */
  of?(stream: string): boolean
  // Methods, so that a table of folds can hold them whatever their states are.
  apply(state: S, rune: Rune): S
  /** How the state becomes JSON and comes back; left out where `PlainState` knows. */
  toPlain?(state: S): unknown
  fromPlain?(plain: unknown): S
  /** The state out of what an older version has kept, where the runes are deleted; a throw where it does not know how. */
  fromOlder?(plain: unknown, version: number): S
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

export type AnyFold = StreamFold<unknown>

export const CHECKPOINT = "stream.checkpoint"

/** The state as JSON. */
export const plainOf = (fold: AnyFold, state: unknown): unknown =>
  fold.toPlain === undefined ? PlainState.encode(state) : fold.toPlain(state)

/** And back. */
export const stateOf = (fold: AnyFold, plain: unknown): unknown =>
  fold.fromPlain === undefined ? PlainState.decode(plain) : fold.fromPlain(plain)

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
export const restored = (
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
