/**
 * The daemon dies at every rune: right after it is durable, before anybody has heard
 * of it, or once they have. What the next daemon makes of the log is what was asked,
 * done once.
 */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { AgentWorld, STREAM } from "./AgentWorld.ts"
import { drive, holds, obedient, type Outside, settings } from "./Obedient.ts"
import { memoryLog, mortal, type TestLog } from "./TestLog.ts"

const fresh = Effect.gen(function* () {
  const log = yield* memoryLog
  const payload = { config: "/shop/agentd.jsonc", name: "shop" }
  yield* log.append([{ stream: STREAM, kind: "project.registered", actor: "project", payload }])
  return log
})
const life = Effect.fnUntraced(function* (log: TestLog, outside: Outside) {
  const world = new AgentWorld(log, [], settings)
  world.puppet = obedient(outside)
  yield* world.open
  return world
})

/** A death, and the life after it; false when the daemon lived through it all. */
const die = Effect.fnUntraced(function* (n: number, heard: boolean) {
  const log = yield* fresh
  const outside: Outside = { paid: 0, approvals: 0 }
  const death = yield* mortal(log, n, heard)
  const first = yield* life(death.log, outside)
  const driving = yield* Effect.forkScoped(drive(first, outside))
  const survived = yield* Deferred.make<boolean>()
  yield* Effect.forkScoped(
    Effect.flatMap(Effect.exit(Fiber.join(driving)), ({ _tag }) => Deferred.succeed(survived, _tag === "Success"))
  )
  // what it had begun by then may go on a little
  yield* Effect.forkScoped(
    Effect.andThen(
      Effect.andThen(death.dead, Effect.sleep(heard ? 3 : 0)),
      Effect.suspend(() => Deferred.succeed(survived, false))
    )
  )
  const done = yield* Deferred.await(survived)
  yield* death.bury
  yield* first.lose
  const second = yield* life(log, outside)
  yield* Effect.catchCause(Effect.andThen(drive(second, outside), holds(second, log, outside)), (cause) =>
    Effect.flatMap(log.tail({ stream: STREAM }, 200), (runes) => {
      const told = runes.map(({ actor, eventId, kind, trigger }) => `${eventId} ${kind} ${actor} ${trigger}`)
      return Effect.andThen(
        Effect.logError(`after append ${n}, ${heard ? "heard" : "unheard"}:\n${told.join("\n")}`),
        Effect.failCause(cause)
      )
    })
  ).pipe(Effect.ensuring(second.lose))
  return !done
})

describe("kill -9 at every rune", () => {
  for (const heard of [false, true]) {
    it.live(`${heard ? "once it has been heard of" : "before anybody hears of it"}: done once, nothing lost`, () =>
      Effect.gen(function* () {
        let n = 1
        while (yield* Effect.scoped(die(n, heard))) n += 1
        assert.isAbove(n, 15)
      })
    )
  }
})
