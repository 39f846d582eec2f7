/**
 * StreamFold: computes a state of one stream, by applying its runes in order to an initial state.
 *
 * With a snapshot of the state, the runes before it need not be read. A checkpoint rune contains states in the chain
 * itself. A fold that finds its own state in a checkpoint continues from that state.
 */
import { readOwn } from "./OwnKinds.ts"
import * as StateJson from "./StateJson.ts"
import type { Rune, RuneDraft } from "./Rune.ts"
import { sealOf, type SnapshotOrder, type SnapshotRow } from "./Snapshot.ts"

export interface StreamFold<S> {
  /** Name of the scope or subscriber to which the state belongs. */
  readonly name: string
  /** Must rise with every change of `apply` or of the state, because snapshots of other versions are ignored. */
  readonly version: number
  readonly initial: S
  /** Returns true if the stream can contain runes for this fold; if omitted, every stream can. */
  of?(stream: string): boolean
  // Declared as methods, so that a table can contain folds with states of different types.
  apply(state: S, rune: Rune): S
  /** Converts the state to JSON and back; omitted if `StateJson` can convert it. */
  toPlain?(state: S): unknown
  fromPlain?(plain: unknown): S
  /** Converts a state that an older version of the fold saved before its runes were deleted. Throws if it cannot. */
  fromOlder?(plain: unknown, version: number): S
}

export interface Recovered<S> {
  readonly state: S
  /** eventId of the newest rune that the state includes; 0 if it includes no rune. */
  readonly eventId: number
  /** Number of runes that were read to compute the state. */
  readonly read: number
}

export type Folds = { readonly [name: string]: StreamFold<unknown> }

export type RecoveredAll<F> = { readonly [K in keyof F]: F[K] extends StreamFold<infer S> ? Recovered<S> : never }

export type AnyFold = StreamFold<unknown>

export const CHECKPOINT = "stream.checkpoint"

export const plainOf = (fold: AnyFold, state: unknown): unknown =>
  fold.toPlain === undefined ? StateJson.encode(state) : fold.toPlain(state)

export const stateOf = (fold: AnyFold, plain: unknown): unknown =>
  fold.fromPlain === undefined ? StateJson.decode(plain) : fold.fromPlain(plain)

export const snapshotOf = <S>(stream: string, fold: StreamFold<S>, state: S, eventId: number): SnapshotOrder => ({
  stream,
  name: fold.name,
  version: fold.version,
  eventId,
  state: Buffer.from(JSON.stringify(plainOf(fold, state)))
})

/** Creates the draft of a checkpoint rune, which contains the complete state of a stream. */
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

/**
 * Returns the snapshot's state; undefined if the snapshot cannot be trusted. `hashAt`: the hash that the store has at
 * the snapshot's rune.
 */
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
