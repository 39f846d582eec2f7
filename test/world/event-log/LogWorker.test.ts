/** LogWorker: the log's thread before it has a store to open. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { LogWorker } from "../../../src/core/event-log/LogWorker.ts"
import { logThread } from "../../../src/core/event-log/ThreadFile.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "agentd-thread-"))),
  (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
)

const stopped = (thread: LogWorker) => Effect.callback<void>((resume) => thread.stop(() => resume(Effect.void)))

describe("a log's thread without a store", () => {
  it.live("ends without a store where none is asked for, and has made no file", () =>
    Effect.gen(function* () {
      const at = yield* folder
      const thread = new LogWorker(logThread())
      yield* stopped(thread)
      assert.deepStrictEqual(readdirSync(at), [])
    }).pipe(Effect.scoped)
  )

  it.live("that broke before anybody listened tells the first listener why", () =>
    Effect.gen(function* () {
      const thread = new LogWorker(new URL("data:text/javascript,throw new Error('torn')"))
      yield* stopped(thread)
      const heard: Array<unknown> = []
      thread.onMessage((message) => heard.push(message))
      assert.deepStrictEqual(heard, [{ _tag: "Broken", reason: "Error: torn" }])
    })
  )
})
