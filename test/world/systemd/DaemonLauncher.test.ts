/** Launch without systemd: a process of its own session that outlives whoever started it. */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { afterEach, beforeEach, describe } from "vitest"
import { detach, launch } from "../../../src/systemd/DaemonLauncher.ts"
import { PATIENCE } from "../../support/Patience.ts"

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "agentd-launch-"))
})
afterEach(() => rmSync(folder, { recursive: true }))

const options = (script: string) => ({
  unit: "agentd-test",
  command: ["/bin/sh", "-c", script],
  cwd: folder,
  env: { GREETING: "hello" },
  log: join(folder, "state", "daemon.log")
})

/** Looks again and again, until the test is out of patience. */
const until = (condition: () => boolean) =>
  Effect.sync(condition).pipe(
    Effect.repeat({ until: (met) => met, schedule: Schedule.spaced("20 millis") }),
    Effect.timeout(PATIENCE)
  )

describe("detach", () => {
  it.live("runs the command in its folder, with its environment alone, its output in the log", () =>
    Effect.gen(function* () {
      const { log } = options("")
      yield* detach(options('echo "$GREETING $HOME from $(pwd)"; echo bad >&2'))
      yield* until(() => existsSync(log) && readFileSync(log, "utf8").includes("bad"))
      assert.strictEqual(readFileSync(log, "utf8"), `hello  from ${folder}\nbad\n`)
      assert.strictEqual(statSync(log).mode & 0o777, 0o600)
    })
  )

  it.live("the process leads a session of its own, and is there after the effect's scope closed", () =>
    Effect.gen(function* () {
      const how = yield* Effect.scoped(detach(options("exec sleep 1000")))
      assert.strictEqual(how._tag, "Detached")
      const pid = how._tag === "Detached" ? how.pid : 0
      yield* Effect.addFinalizer(() => Effect.sync(() => process.kill(pid, "SIGKILL")))
      process.kill(pid, 0)
      // Throws when no process group has this id: a child that is no leader has its parent's.
      process.kill(-pid, 0)
    }).pipe(Effect.scoped)
  )

  it.live("a program that is not there is a typed error with a remedy", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(detach({ ...options(""), command: [join(folder, "nothing")] }))
      assert.include(error.message, "ENOENT")
      assert.include(error.remedy, "agentd up")
    })
  )

  it.live("a log that cannot be written is a typed error with a remedy", () =>
    Effect.gen(function* () {
      writeFileSync(join(folder, "state"), "a file where the folder should be")
      const error = yield* Effect.flip(detach(options("true")))
      assert.include(error.remedy, "can be written")
    })
  )

  it.live("a long log makes room for a new one at the next start", () =>
    Effect.gen(function* () {
      const { log } = options("")
      yield* detach(options("echo first"))
      yield* until(() => existsSync(log) && readFileSync(log, "utf8") === "first\n")
      writeFileSync(log, "x".repeat(8 * 1024 * 1024 + 1))
      yield* detach(options("echo second"))
      yield* until(() => readFileSync(log, "utf8") === "second\n")
      assert.isAbove(statSync(`${log}.1`).size, 8 * 1024 * 1024)
    })
  )
})

describe("launch", () => {
  it.live("detaches where the environment names no runtime folder, systemd or not", () =>
    Effect.gen(function* () {
      const how = yield* launch(options("true"))
      assert.strictEqual(how._tag, "Detached")
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
