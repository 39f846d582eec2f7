/** The example that `src/core/supervision/README.md` opens with. */
import { Deferred, Effect, Queue } from "effect"
import type { ChildSpec } from "../../../src/core/supervision/Child.ts"
import * as Supervisor from "../../../src/core/supervision/Supervisor.ts"

const program = Effect.gen(function* () {
  const jobs = yield* Queue.unbounded<number>()
  const counted = yield* Deferred.make<number>()

  // `start` acquires what the child needs, and answers the loop that is the child's life.
  const counter: ChildSpec = {
    id: "counter",
    start: Effect.gen(function* () {
      let sum = 0
      const count = Effect.gen(function* () {
        const job = yield* Queue.take(jobs)
        if (job < 0) return yield* Effect.die(new Error("a job that cannot be counted"))
        sum += job
        if (sum === 5) yield* Deferred.succeed(counted, sum)
      })
      return Effect.forever(count)
    })
  }

  // Stopped, and waited for, when the scope closes.
  const supervisor = yield* Supervisor.make({
    name: "example",
    intensity: 3,
    period: "10 seconds",
    children: [counter]
  })
  yield* Queue.offerAll(jobs, [1, -1, 2, 3])
  yield* Deferred.await(counted)
  return yield* supervisor.trace
})

export const steps = Effect.scoped(Effect.map(program, (trace) => trace.map(({ _tag }) => _tag)))
