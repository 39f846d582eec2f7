/**
 * AtRest: gives back the memory that a start has used, once all agents have their lives: two full collections, after
 * which the heap is as small as what it holds.
 *
 * Guarantees: once in a daemon's life, after its start. A collection stops the daemon for some 50 ms, so none follows.
 */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Effect } from "effect"

/** After the start other work may still be under way. */
const SETTLES = "3 seconds"
const ROUNDS = 2

type Collect = (how: { readonly type: "major"; readonly execution: "sync"; readonly flavor: "last-resort" }) => void

export const giveBack: Effect.Effect<void> = Effect.gen(function* () {
  yield* Effect.sleep(SETTLES)
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc") as Collect
  for (let round = 0; round < ROUNDS; round++) {
    collect({ type: "major", execution: "sync", flavor: "last-resort" })
    yield* Effect.yieldNow
  }
})
