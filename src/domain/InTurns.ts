/**
 * InTurns: a long computation on the daemon's one thread, a little at a time.
 *
 * Guarantees: a computation says what each of its steps costs; once they have cost a turn, all others that want
 * to run do so before it goes on; its answer is the one that it has where it is run at once. Interrupted, it
 * ends at the next turn.
 */
import { Effect } from "effect"

/** Yields the cost of each step, in what a small step costs (some 10 µs). */
export type Steps<A> = Generator<number, A>

/** The cost of a turn: about 1 ms, since a call of somebody else waits for several. */
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

/** The answer, without a turn for anybody else. */
export const atOnce = <A>(steps: Steps<A>): A => {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}
