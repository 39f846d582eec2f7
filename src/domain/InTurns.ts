/**
 * InTurns: runs a long computation on the daemon's only thread in small slices.
 *
 * Guarantees: a computation reports the cost of each step. When the costs add up to `TURN`, all other fibers that are
 * ready run before it continues. Its result is the same as without slices. If it is interrupted, it ends at the next
 * slice.
 */
import { Effect } from "effect"

/** Yields the cost of each step; 1 is the cost of a small step (some 10 µs). */
export type Steps<A> = Generator<number, A>

/** Cost of one slice: about 1 ms, because another caller's request waits for several slices. */
export const TURN = 100

export const inTurns = <A>(steps: Steps<A>): Effect.Effect<A> => {
  const turn: Effect.Effect<A> = Effect.suspend(() => {
    for (let cost = 0; cost < TURN;) {
      const step = steps.next()
      if (step.done === true) return Effect.succeed(step.value)
      cost += step.value
    }
    return Effect.flatMap(Effect.yieldNow, () => turn)
  })
  return turn
}

/** The result, without yielding to other fibers. */
export const atOnce = <A>(steps: Steps<A>): A => {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}
