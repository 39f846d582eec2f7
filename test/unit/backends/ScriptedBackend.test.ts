import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { RunEvent, RunSpec } from "../../../src/runs/Backend.ts"
import * as ScriptedBackend from "../../../src/runs/ScriptedBackend.ts"

const spec = (runId: string): RunSpec => ({
  runId,
  agent: "builder",
  prompt: "go",
  cwd: "/",
  env: {},
  turnId: "turn-1",
  resume: undefined,
  mcp: {}
})
const started: ScriptedBackend.Step = { _tag: "Started" }
const line = (text: string): RunEvent & ScriptedBackend.Step => ({ _tag: "Delta", stream: "stdout", text })

/** Starts a run and collects its events as they come. */
const watch = Effect.fnUntraced(function* (backend: ScriptedBackend.ScriptedBackend, runId: string) {
  const run = yield* backend.start(spec(runId))
  const seen: Array<RunEvent> = []
  const fiber = yield* Effect.forkChild(Stream.runForEach(run.events, (event) => Effect.sync(() => seen.push(event))))
  yield* TestClock.adjust(0)
  return { run, seen, fiber }
})

describe("ScriptedBackend", () => {
  it.effect("plays its steps by the clock, then exits", () =>
    Effect.gen(function* () {
      const backend = ScriptedBackend.make([
        {
          steps: [
            { ...started, after: "1 second" },
            { ...line("a"), after: "2 seconds" }
          ],
          exitAfter: "1 second"
        }
      ])
      const { seen, fiber } = yield* watch(backend, "run-1")
      assert.deepStrictEqual(seen, [])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(seen, [{ _tag: "Started" }])
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(backend.alive(), 1)
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(seen, [{ _tag: "Started" }, line("a"), { _tag: "Exited", outcome: { _tag: "Success" } }])
      assert.strictEqual(backend.alive(), 0)
    })
  )

  it.effect("the n-th start plays the n-th script, later ones the last", () =>
    Effect.gen(function* () {
      const backend = ScriptedBackend.make([
        { failStart: { message: "no such program", remedy: "install it", fatal: true } },
        { outcome: { _tag: "Error", detail: "exit code 1" } }
      ])
      const error = yield* Effect.flip(backend.start(spec("run-1")))
      assert.include(error, { message: "no such program", remedy: "install it", fatal: true })
      for (const runId of ["run-2", "run-3"]) {
        const { seen, fiber } = yield* watch(backend, runId)
        yield* Fiber.join(fiber)
        assert.deepStrictEqual(seen, [{ _tag: "Exited", outcome: { _tag: "Error", detail: "exit code 1" } }])
      }
      assert.deepStrictEqual(
        backend.played().map(({ spec, outcome }) => [spec.runId, outcome?._tag]),
        [
          ["run-1", "Fatal"],
          ["run-2", "Error"],
          ["run-3", "Error"]
        ]
      )
    })
  )

  it.effect("an interrupt ends it; one that ignores interrupts ends by kill", () =>
    Effect.gen(function* () {
      const backend = ScriptedBackend.make([
        { steps: [started], hang: true },
        { steps: [started], hang: true, ignoreInterrupt: true }
      ])
      const polite = yield* watch(backend, "run-1")
      yield* polite.run.end
      yield* Fiber.join(polite.fiber)
      assert.deepStrictEqual(polite.seen.at(-1), {
        _tag: "Exited",
        outcome: { _tag: "Error", detail: "killed by SIGTERM" }
      })
      const stubborn = yield* watch(backend, "run-2")
      yield* stubborn.run.end
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(backend.alive(), 1)
      yield* stubborn.run.kill
      yield* Fiber.join(stubborn.fiber)
      assert.deepStrictEqual(stubborn.seen.at(-1), {
        _tag: "Exited",
        outcome: { _tag: "Error", detail: "killed by SIGKILL" }
      })
      assert.strictEqual(backend.played()[1]?.interrupts, 1)
    })
  )

  it.effect("closing its scope ends it", () =>
    Effect.gen(function* () {
      const backend = ScriptedBackend.make([{ hang: true, ignoreInterrupt: true }])
      const scope = yield* Scope.make()
      yield* backend.start(spec("run-1")).pipe(Scope.provide(scope))
      assert.strictEqual(backend.alive(), 1)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(backend.alive(), 0)
    })
  )

  it.effect("input is recorded where the script takes it, else refused", () =>
    Effect.gen(function* () {
      const backend = ScriptedBackend.make([{ hang: true, takesInput: true }, { hang: true }])
      const first = yield* backend.start(spec("run-1"))
      yield* first.send({ turnId: "turn-2", text: "hello" })
      assert.deepStrictEqual(backend.played()[0]?.inputs, ["hello"])
      const second = yield* backend.start(spec("run-2"))
      assert.strictEqual((yield* Effect.flip(second.send({ turnId: "turn-2", text: "hello" }))).fatal, false)
    })
  )
})
