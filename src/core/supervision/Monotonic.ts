/**
 * Monotonic: time for waits and limits that a change of the wall clock neither shortens nor
 * lengthens. Its zero point has no meaning: compare two values, and store none.
 */
import { Clock, Effect } from "effect"

/** Monotonic time, in ms. */
export const now: Effect.Effect<number> = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos / 1_000_000n))
