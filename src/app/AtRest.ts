/**
 * AtRest: gives back the memory that a start has used (HeapRest), once all agents have their lives. While a run is at
 * work its code stays: the run's end is answered by it.
 *
 * Guarantees: so many collections in a daemon's life, after its start. Each stops the daemon, for 30 ms, or for 150 with
 * 1,000 agents: so there are seconds between two, and each comes once the daemon has had next to nothing to do for one;
 * of a daemon that never rests the first comes all the same, and no other.
 */
import { Effect } from "effect"
import { performance } from "node:perf_hooks"
import { collector, ROUNDS } from "../event-log/HeapRest.ts"

/** After the start other work may still be under way, and after a collection what waited for it. */
const SETTLES = "3 seconds"
const LOOK = "1 second"
/** After so many looks the first waits no longer for rest. */
const PATIENCE = 60
/** Share of a time in which the daemon was at work: at most so much is rest. */
const REST = 0.05

export interface Heap {
  /** Undefined where a program may not. */
  readonly collect: (() => void) | undefined
  /** Share of the time since it was asked last in which this thread was at work. */
  readonly load: () => number
}

const own = (): Heap => {
  let seen = performance.eventLoopUtilization()
  const load = (): number => {
    const before = seen
    seen = performance.eventLoopUtilization()
    return performance.eventLoopUtilization(seen, before).utilization
  }
  return { collect: collector(), load }
}

/** Waits until next to nothing is done; false: so many looks found none of it. */
const rest = Effect.fnUntraced(function* ({ load }: Heap, looks: number) {
  load()
  for (let look = 0; look < looks; look++) {
    yield* Effect.sleep(LOOK)
    if (load() <= REST) return true
  }
  return false
})

/** `isBusy`: some run is at work. */
export const giveBack = Effect.fnUntraced(function* (isBusy: Effect.Effect<boolean>, heap: Heap = own()) {
  const { collect } = heap
  if (collect === undefined) return
  for (let round = 0; round < ROUNDS; round++) {
    yield* Effect.sleep(SETTLES)
    const isFirst = round === 0
    const rests = yield* rest(heap, isFirst ? PATIENCE : Infinity)
    if (!isFirst && (yield* isBusy)) return
    collect()
    if (!rests) return
  }
})
