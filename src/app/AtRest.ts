/**
 * AtRest: gives back the memory that a start has used, once all agents have their lives: some full collections, after
 * which the heap is as small as what it holds, and the code that only a start needs is gone. What is needed again is
 * compiled again. While a run is at work its code stays: the run's end is answered by it.
 *
 * Guarantees: once in a daemon's life, after its start. A collection stops the daemon for some 50 ms, so none follows;
 * between two others have their turn. The thread of the log collects none of its own: V8's flags are those of all threads,
 * and a process in which one sets them while another is being collected was seen to die.
 */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Effect } from "effect"

/** After the start other work may still be under way. */
const SETTLES = "3 seconds"
const ROUNDS = 4
/** Code goes that has not run between so many collections; V8's own number is for collections that lie far apart. */
const [OLD, V8_OLD] = [2, 6]

const WHOLE = { type: "major", execution: "sync", flavor: "last-resort" } as const

type Collect = (how: typeof WHOLE) => void

/** `isBusy`: some run is at work. */
export const giveBack = Effect.fnUntraced(function* (isBusy: Effect.Effect<boolean>) {
  yield* Effect.sleep(SETTLES)
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc") as Collect
  if (yield* isBusy) return collect(WHOLE)
  setFlagsFromString(`--bytecode-old-age=${OLD}`)
  setFlagsFromString("--flush-baseline-code")
  for (let round = 0; round < ROUNDS; round++) {
    collect(WHOLE)
    yield* Effect.yieldNow
  }
  setFlagsFromString(`--bytecode-old-age=${V8_OLD}`)
  setFlagsFromString("--no-flush-baseline-code")
})
