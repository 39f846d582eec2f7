import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { atOnce, inTurns, type Steps, TURN } from "../../../src/domain/TimeSlices.ts"

/** Counts its own turns for as long as it lives. */
const bystander = Effect.gen(function* () {
  let turns = 0
  const others = Effect.gen(function* () {
    for (;;) {
      yield* Effect.yieldNow
      turns++
    }
  })
  yield* Effect.forkChild(others)
  return () => turns
})

describe("TimeSlices", () => {
  it.effect("another one has its turn before steps of more than a turn have been made", () =>
    Effect.gen(function* () {
      const turns = yield* bystander
      const costs: Array<number> = []
      const steps = function* (): Steps<string> {
        for (let step = 0; step < 1_000; step++) {
          const turn = turns()
          costs[turn] = (costs[turn] ?? 0) + 7
          yield 7
        }
        return "done"
      }
      assert.strictEqual(yield* inTurns(steps()), "done")
      // a yield may take two rounds of the loop
      assert.isAtMost(Math.max(...costs.filter((cost) => cost > 0)), 2 * (TURN + 7))
    })
  )

  it.effect("a step of many turns is one; the answer is the one of all at once; interrupted it ends", () =>
    Effect.gen(function* () {
      let made = 0
      const steps = function* (most: number): Steps<number> {
        for (; made < most; made++) yield TURN * 3
        return made
      }
      assert.strictEqual(yield* inTurns(steps(5)), 5)
      made = 0
      assert.strictEqual(atOnce(steps(5)), 5)
      made = 0
      const fiber = yield* Effect.forkChild(inTurns(steps(1_000_000)))
      yield* Effect.yieldNow
      yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
      assert.isBelow(made, 10)
    })
  )
})
