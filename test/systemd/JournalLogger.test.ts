/** JournalLogger: priorities where standard error is the journal's stream, and the usual log elsewhere. */
import { assert, describe, it } from "@effect/vitest"
import { Cause } from "effect"
import { spawnSync } from "node:child_process"
import { closeSync, fstatSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { text } from "../../src/systemd/JournalLogger.ts"

const MODULE = resolve(import.meta.dirname, "../../src/systemd/JournalLogger.ts")
const SCRIPT = `
import { Effect } from "effect"
import * as JournalLogger from ${JSON.stringify(MODULE)}
await Effect.runPromise(Effect.provide(
  Effect.andThen(Effect.logError("two\\nlines"), Effect.andThen(Effect.logWarning("a warning"), Effect.logInfo("news"))),
  JournalLogger.layer(process.env)
))`

/** Output of a process whose standard error is a file; `names`: whether JOURNAL_STREAM says so. */
const written = (names: boolean) => {
  const folder = mkdtempSync(join(tmpdir(), "agentd-journal-"))
  const descriptor = openSync(join(folder, "log"), "a")
  const { dev, ino } = fstatSync(descriptor)
  const { status, stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", SCRIPT], {
    cwd: resolve(import.meta.dirname, "../.."),
    env: { JOURNAL_STREAM: names ? `${dev}:${ino}` : `${dev}:${ino + 1}` },
    stdio: ["ignore", "pipe", descriptor],
    encoding: "utf8"
  })
  closeSync(descriptor)
  const error = readFileSync(join(folder, "log"), "utf8")
  rmSync(folder, { recursive: true })
  assert.strictEqual(status, 0, error)
  return { stdout, error }
}

describe("the daemon's log", () => {
  it("has each line's priority in the journal", () => {
    assert.strictEqual(written(true).error, "<3>two\n<3>lines\n<4>a warning\n<6>news\n")
  })

  it("is the usual one where standard error is another stream", () => {
    const { error, stdout } = written(false)
    assert.notInclude(error + stdout, "<3>")
    assert.include(error + stdout, "a warning")
  })

  it("has the cause of a failure, and what is no text", () => {
    assert.match(
      text("Error", ["it failed", { code: 7 }], Cause.fail(new Error("why"))),
      /^<3>it failed \{"code":7\} .*why/
    )
    assert.strictEqual(text("Info", "news", Cause.empty), "<6>news")
  })
})
