/**
 * Monotonic: time for delays and timeouts that changes of the wall clock do not affect. The values have no fixed zero
 * point, so only compare them with each other, and never store them.
 */
import { Clock, Effect } from "effect"

/** Current monotonic time in ms. */
export const now: Effect.Effect<number> = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos / 1_000_000n))
