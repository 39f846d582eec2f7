import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, type Scope } from "effect"
import type { ChildSpec } from "../../../src/core/supervision/Child.ts"
import * as DynamicSupervisor from "../../../src/core/supervision/DynamicSupervisor.ts"
import * as Supervisor from "../../../src/core/supervision/Supervisor.ts"

const settle = Effect.repeat(Effect.yieldNow, { times: 100 })

const setUp = Effect.gen(function* () {
  const alive: Array<string> = []
  const child = (id: string, name = id): ChildSpec => ({
    id,
    start: Effect.as(
      Effect.acquireRelease(
        Effect.sync(() => void alive.push(name)),
        () => Effect.sync(() => void alive.splice(alive.indexOf(name), 1))
      ) as Effect.Effect<void, never, Scope.Scope>,
      Effect.never
    )
  })
  const supervisor = DynamicSupervisor.make({ name: "supervisor", intensity: 0 })
  /** A child whose crash is more than the supervisor bears, so that its parent starts it anew. */
  const crash = yield* Deferred.make<void>()
  let exploded = false
  const explode = Effect.suspend(() => (exploded ? Effect.never : ((exploded = true), Effect.die("bang"))))
  const bomb: ChildSpec = { id: "bomb", start: Effect.succeed(Effect.andThen(Deferred.await(crash), explode)) }
  const parent = yield* Supervisor.make({ name: "parent", intensity: 5, children: [supervisor.child] })
  return { alive, bomb, child, crash: Deferred.succeed(crash, undefined), supervisor, parent }
})

describe("Nest", () => {
  it.effect("restarted by its parent it comes back with what was added since, without what was removed", () =>
    Effect.gen(function* () {
      const { alive, bomb, child, crash, supervisor } = yield* setUp
      yield* supervisor.add(child("a"))
      yield* supervisor.add(child("b"))
      yield* supervisor.add(child("a", "a again"))
      yield* supervisor.remove("b")
      assert.deepStrictEqual(alive, ["a again"])
      yield* supervisor.add(bomb)
      yield* supervisor.add(child("c"))
      yield* crash
      yield* supervisor.remove("bomb")
      yield* settle
      assert.deepStrictEqual(alive, ["a again", "c"])
    })
  )

  it.effect("what is added and removed at any point of its restart is there, or is not, in the end", () =>
    Effect.gen(function* () {
      for (let turns = 0; turns < 60; turns++) {
        const { alive, bomb, child, crash, supervisor, parent } = yield* setUp
        yield* supervisor.add(child("old"))
        yield* supervisor.add(child("same"))
        yield* supervisor.add(bomb)
        yield* crash
        for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow
        yield* Effect.all(
          [
            supervisor.remove("bomb"),
            supervisor.remove("old"),
            supervisor.add(child("new")),
            supervisor.add(child("same", "newer"))
          ],
          {
            concurrency: "unbounded"
          }
        )
        yield* settle
        assert.deepStrictEqual(alive.toSorted(), ["new", "newer"], `after ${turns} turns`)
        parent.stop("shutdown")
        yield* parent.ended
        assert.deepStrictEqual(alive, [])
      }
    })
  )
})
