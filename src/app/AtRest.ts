/**
 * AtRest: gives back the memory that a start has used, once all agents have their lives: some full collections, after
 * which the heap is as small as what it holds, and the code that only a start needs is gone. What is needed again is
 * compiled again. While a run is at work its code stays: the run's end is answered by it.
 *
 * Guarantees: once in a daemon's life, after its start. A collection stops the daemon for some 50 ms, so none follows;
 * between two others have their turn. No flag is set that a collection reads: V8's flags are those of all threads, and
 * a process in which one was set while another thread's heap was collected was seen to die.
 */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Effect } from "effect"

/** After the start other work may still be under way. */
const SETTLES = "3 seconds"
const ROUNDS = 4

const WHOLE = { type: "major", execution: "sync", flavor: "last-resort" } as const

type Collect = (how: typeof WHOLE) => void

/** `isBusy`: some run is at work. */
export const giveBack = Effect.fnUntraced(function* (isBusy: Effect.Effect<boolean>) {
  yield* Effect.sleep(SETTLES)
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc") as Collect
  const rounds = (yield* isBusy) ? 1 : ROUNDS
  for (let round = 0; round < rounds; round++) {
    collect(WHOLE)
    yield* Effect.yieldNow
  }
})
