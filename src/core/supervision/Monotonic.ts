/**
 * Monotonic: time that only passes, for waits and limits: whoever sets the wall clock neither shortens nor lengthens
 * them. Its beginning means nothing: two of them are compared, and none is kept.
 */
import { Clock, Effect } from "effect"

/** ms */
export const now: Effect.Effect<number> = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos / 1_000_000n))
