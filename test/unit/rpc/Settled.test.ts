/** Lists of a daemon that has just started: they wait for the log, and a list that is not complete says so. */
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { settled, whole } from "../../../src/api/rpc/Procedure.ts"
import * as Waiting from "../../../src/cli/daemon/Waiting.ts"
import * as Board from "../../../src/cli/sessions/Board.ts"

const daemon = Effect.gen(function* () {
  const read = yield* Deferred.make<void>()
  const agents = { recovered: Deferred.await(read), ready: Deferred.isDone(read) }
  return { agents, read: Deferred.succeed(read, undefined) }
})

it.effect("a list is read when the log has been read", () =>
  Effect.gen(function* () {
    const { agents, read } = yield* daemon
    const known: Array<string> = []
    const list = yield* Effect.forkChild(
      whole(
        { agents },
        Effect.sync(() => ({ rows: [...known] }))
      )
    )
    yield* TestClock.adjust("1 seconds")
    known.push("builder")
    yield* read
    assert.deepStrictEqual(yield* Fiber.join(list), { rows: ["builder"] })
  })
)

it.effect("a long log is not waited for, and the list says that it is not complete", () =>
  Effect.gen(function* () {
    const { agents } = yield* daemon
    const list = yield* Effect.forkChild(whole({ agents }, Effect.succeed({ rows: [], more: 0 })))
    const plain = yield* Effect.forkChild(settled({ agents }))
    yield* TestClock.adjust("5 seconds")
    yield* Fiber.join(plain)
    const reply = yield* Fiber.join(list)
    assert.deepStrictEqual(reply, { rows: [], more: 0, reading: true })
    const says = ["The daemon is still reading its log, so this list is not complete."]
    assert.deepStrictEqual(Waiting.render(reply, 0, false), says)
    assert.deepStrictEqual(Waiting.render(Waiting.asking(reply), 0, false), says)
    assert.deepStrictEqual(
      Board.render({ rows: [], reading: true }, 0, { columns: null, colour: false, now: 0 } as never),
      says
    )
    assert.deepStrictEqual(Waiting.render({ rows: [], more: 0 }, 0, false), ["Nothing waits for you."])
  })
)
