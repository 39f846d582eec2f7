/**
 * AtRest: gives back the memory that a start has used (HeapRest), once all agents have their lives. While a run is at
 * work its code stays: the run's end is answered by it.
 *
 * Guarantees: once in a daemon's life, after its start. A collection stops the daemon for some 50 ms, so none follows;
 * between two others have their turn.
 */
import { Effect } from "effect"
import { collector, ROUNDS } from "../event-log/HeapRest.ts"

/** After the start other work may still be under way. */
const SETTLES = "3 seconds"

/** `isBusy`: some run is at work. */
export const giveBack = Effect.fnUntraced(function* (isBusy: Effect.Effect<boolean>) {
  yield* Effect.sleep(SETTLES)
  const collect = collector()
  if (collect === undefined) return
  const rounds = (yield* isBusy) ? 1 : ROUNDS
  for (let round = 0; round < rounds; round++) {
    collect()
    yield* Effect.yieldNow
  }
})
