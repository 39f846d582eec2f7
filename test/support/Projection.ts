/**
 * Projection: runs several folds in one pass over the log. Each rune goes to the fold for the first part of its actor's
 * name (`worker/builder` → `worker`).
 */
import { Effect, Stream } from "effect"
import type { Rune } from "../../src/core/event-log/Rune.ts"
import type { EventLog, Selection, StorageError } from "../../src/core/event-log/EventLog.ts"

/** A fold over the runes of actors whose names have the same first part. */
export interface Fold<S> {
  readonly initial: S
  // A method, so that one table can contain folds with different types of state.
  apply(state: S, rune: Rune): S
}

/** The part of an actor's name before the first `/`. */
export const familyOf = (actor: string): string => {
  const end = actor.indexOf("/")
  return end === -1 ? actor : actor.slice(0, end)
}

/** The state of each fold after all current runes of the log. */
export const replay = <const F extends { readonly [family: string]: Fold<unknown> }>(
  log: EventLog["Service"],
  folds: F,
  selection: Selection = {}
): Effect.Effect<{ readonly [K in keyof F]: F[K] extends Fold<infer S> ? S : never }, StorageError> =>
  Effect.suspend(() => {
    const table = new Map(Object.entries(folds))
    const states = new Map([...table].map(([family, { initial }]) => [family, initial]))
    return Stream.runForEachArray(log.read(selection), (runes) =>
      Effect.sync(() => {
        for (const rune of runes) {
          const family = familyOf(rune.actor)
          const fold = table.get(family)
          if (fold !== undefined) states.set(family, fold.apply(states.get(family), rune))
        }
      })
    ).pipe(Effect.map(() => Object.fromEntries(states) as never))
  })
