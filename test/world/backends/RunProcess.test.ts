import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import * as RunProcess from "../../../src/runs/process/RunProcess.ts"
import * as Support from "../../support/backend-run.ts"

const start = Effect.fnUntraced(function* (...argv: readonly [string, ...ReadonlyArray<string>]) {
  const { folder, store } = yield* Support.world
  const env = { PATH: process.env["PATH"] }
  const grace = Duration.seconds(5)
  return yield* RunProcess.make({ store, runId: "run-1", argv, cwd: folder, env, keepInput: true, grace })
})

/** Past what a pipe holds. */
const LONG = `${"x".repeat(4 * 1024 * 1024)}\n`

const all = Effect.fnUntraced(function* (program: RunProcess.RunProcess) {
  let text = ""
  yield* RunProcess.drain(program.stdout, program.ended, (chunk) =>
    Effect.sync(() => (text += Buffer.from(chunk).toString()))
  )
  return text
})

layer(Support.layer, { excludeTestServices: true })("RunProcess, its input kept open", (it) => {
  it.effect("what is written arrives in order, and closing it is its end", () =>
    Effect.gen(function* () {
      const program = yield* start("cat")
      const read = yield* Effect.forkScoped(all(program))
      yield* program.write("one\n")
      yield* program.write(LONG)
      yield* program.write("two\n")
      yield* program.closeInput
      assert.strictEqual(yield* Fiber.join(read), `one\n${LONG}two\n`)
      assert.deepStrictEqual(yield* program.exited, { code: 0, signal: null })
    })
  )

  it.effect("a process that reads nothing holds the writer up until it is gone, and no longer", () =>
    Effect.gen(function* () {
      const program = yield* start("sleep", "300")
      const writing = yield* Effect.forkScoped(program.write(LONG), { startImmediately: true })
      yield* Effect.sleep("50 millis")
      assert.isUndefined(writing.pollUnsafe())
      yield* program.kill
      yield* Fiber.join(writing)
    })
  )

  it.effect("writing to a process that is dead, or after the close, fails nothing and waits for nothing", () =>
    Effect.gen(function* () {
      const program = yield* start("true")
      yield* program.exited
      yield* program.write(LONG)
      yield* program.closeInput
      yield* program.write("late\n")
      yield* program.ended
    })
  )
})
