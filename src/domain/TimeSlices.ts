/**
 * TimeSlices: splits a long computation into short slices, because the daemon has only one thread.
 *
 * Guarantees: the computation reports the cost of each step. When the costs of a slice reach `TURN`, all other fibers
 * that are ready run before the next slice. The result is the same as without slices. An interrupt takes effect at the
 * end of the current slice.
 */
import { Effect } from "effect"

/** A computation in steps. The generator yields the cost of each step; a small step of about 10 µs has the cost 1. */
export type Steps<A> = Generator<number, A>

/** Maximum cost of a slice, about 1 ms. Slices are short, because a client's request waits for several of them. */
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

/** Runs the whole computation without letting other fibers run in between. */
export const atOnce = <A>(steps: Steps<A>): A => {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}
