/** Admission: calls under way are bounded; one that was begun is carried out, whoever waits for it. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import * as Admission from "../../../src/api/rpc/Admission.ts"
import { Limits } from "../../../src/board/Limits.ts"

describe("a call", () => {
  it.effect("is carried out though its asker goes away, and holds its place until then", () =>
    Effect.gen(function* () {
      const admit = yield* Admission.make
      const [begun, door, done] = [
        yield* Deferred.make<void>(),
        yield* Deferred.make<void>(),
        yield* Deferred.make<string>()
      ]
      const work = Effect.gen(function* () {
        yield* Deferred.succeed(begun, undefined)
        yield* Deferred.await(door)
        yield* Deferred.succeed(done, "carried out")
      })
      const asker = yield* Effect.forkChild(admit.call(work))
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(asker)
      const others = yield* Effect.forEach(Array.from({ length: Limits.calls - 1 }), () =>
        Effect.forkChild(admit.call(Effect.never))
      )
      yield* Effect.yieldNow
      const refused = yield* Effect.flip(admit.call(Effect.void))
      assert.strictEqual(refused._tag, "CommandRefused")
      yield* Deferred.succeed(door, undefined)
      assert.strictEqual(yield* Deferred.await(done), "carried out")
      yield* Effect.yieldNow
      yield* admit.call(Effect.void)
      yield* Fiber.interruptAll(others)
    })
  )

  it.effect("answers, fails and dies as what it carries out does", () =>
    Effect.gen(function* () {
      const admit = yield* Admission.make
      assert.strictEqual(yield* admit.call(Effect.succeed(7)), 7)
      assert.strictEqual(yield* Effect.flip(admit.call(Effect.fail("no"))), "no")
      const died = yield* Effect.exit(admit.call(Effect.die("a bug")))
      assert.isTrue(Exit.isFailure(died) && died.cause.reasons[0]?._tag === "Die")
    })
  )

  it.effect("ends with the daemon", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const admit = yield* Scope.provide(Admission.make, scope)
      const asker = yield* Effect.forkChild(admit.call(Effect.never))
      yield* Effect.yieldNow
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(Exit.isFailure(yield* Fiber.await(asker)))
    })
  )
})

describe("a call of a run", () => {
  it.effect("is refused where its run has too many, and let in where others have", () =>
    Effect.gen(function* () {
      const { all, each } = Limits.runs.calls
      let run = ""
      const admit = yield* Admission.ofRuns(Effect.sync(() => run))
      const hold = Effect.fnUntraced(function* (name: string, count: number) {
        run = name
        const calls = yield* Effect.forEach(Array.from({ length: count }), () =>
          Effect.forkChild(Effect.result(admit.call(Effect.never)), { startImmediately: true })
        )
        return calls.filter((fiber) => fiber.pollUnsafe() === undefined)
      })
      const first = yield* hold("first", 2 * each)
      assert.lengthOf(first, each)
      for (let n = 1; n < all / each; n++) assert.lengthOf(yield* hold(`run ${n}`, each), each)
      assert.lengthOf(yield* hold("last", 3), 1, "all is full: one that has none under way is let in once")
      run = "another"
      yield* admit.call(Effect.void)
      yield* admit.call(Effect.void)
    })
  )
})
