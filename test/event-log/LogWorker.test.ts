/** The log's thread, started before there is a store to open. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Stream } from "effect"
import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as DaemonLog from "../../src/app/DaemonLog.ts"
import { EventLog } from "../../src/event-log/EventLog.ts"
import { LogWorker } from "../../src/event-log/LogWorker.ts"
import { Redact } from "../../src/event-log/Redact.ts"
import { logThread } from "../../src/event-log/ThreadFile.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "agentd-thread-"))),
  (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
)

const stopped = (thread: LogWorker) => Effect.callback<void>((resume) => thread.stop(() => resume(Effect.void)))

const started = { stream: "$daemon", kind: "daemon.stopped", actor: "daemon", payload: { pid: 1 } }

/** Appends one rune, and answers how many there are. */
const written = (file: string, thread: LogWorker) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    yield* log.append([started])
    return Array.from(yield* Stream.runCollect(log.read({ after: 0 }))).length
  }).pipe(Effect.provide(DaemonLog.layer({ file, thread }).pipe(Layer.provide(Redact.layer))))

describe("a log's thread that was started early", () => {
  it.live("is the one that opens the store; the next opening has another", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "runes.db")
      const thread = new LogWorker(logThread())
      assert.isTrue(thread.isFree)
      assert.isFalse(existsSync(file))
      assert.strictEqual(yield* written(file, thread), 1)
      assert.isFalse(thread.isFree)
      yield* stopped(thread)
      assert.strictEqual(yield* written(file, thread), 2)
    }).pipe(Effect.scoped)
  )

  it.live("ends without a store where none is asked for, and has made no file", () =>
    Effect.gen(function* () {
      const at = yield* folder
      const thread = new LogWorker(logThread())
      yield* stopped(thread)
      assert.deepStrictEqual(readdirSync(at), [])
    }).pipe(Effect.scoped)
  )

  it.live("that broke before anybody listened fails the opening, in words", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "runes.db")
      const thread = new LogWorker(new URL("data:text/javascript,throw new Error('torn')"))
      yield* stopped(thread)
      const exit = yield* Effect.exit(written(file, thread))
      assert.isTrue(Exit.isFailure(exit))
      assert.match(JSON.stringify(exit), /The log's thread broke: Error: torn.*"reason":"defect"/)
    }).pipe(Effect.scoped)
  )

  it("keeps no process that has nothing else to do", () => {
    const module = (path: string) => JSON.stringify(new URL(path, import.meta.url).href)
    const program = `
      const { LogWorker } = await import(${module("../../src/event-log/LogWorker.ts")})
      const { logThread } = await import(${module("../../src/event-log/ThreadFile.ts")})
      new LogWorker(logThread())`
    const done = execFileSync(process.execPath, ["--input-type=module", "-e", program], { timeout: 20_000 })
    assert.strictEqual(String(done), "")
  })
})
