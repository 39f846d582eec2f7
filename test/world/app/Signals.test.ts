/** Signals: every signal that a program may get, sent to a real daemon and its keeper: what becomes of it, and that it is said. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readdirSync, readFileSync, readlinkSync } from "node:fs"
import { constants } from "node:os"
import { join } from "node:path"
import { DEEDS } from "../../../src/app/Signals.ts"
import * as Stage from "../../support/Stage.ts"

/** Tables of the kernel: sockets that listen, by inode. */
const listening = (pid: number): ReadonlyArray<string> => {
  const tables = ["tcp", "tcp6"].map((name) => readFileSync(`/proc/${pid}/net/${name}`, "utf8"))
  const inodes = new Set(
    tables.flatMap((table) =>
      table
        .split("\n")
        .map((line) => line.trim().split(/\s+/))
        .flatMap((fields) => (fields[3] === "0A" ? [`socket:[${fields[9]}]`] : []))
    )
  )
  return readdirSync(`/proc/${pid}/fd`).flatMap((name) => {
    try {
      const target = readlinkSync(`/proc/${pid}/fd/${name}`)
      return inodes.has(target) ? [target] : []
    } catch {
      return []
    }
  })
}

const names = Object.keys(DEEDS) as ReadonlyArray<keyof typeof DEEDS>

/** Not caught, or not to be: the others are all in the table. */
const ELSE = [
  "ABRT",
  "BUS",
  "CHLD",
  "CONT",
  "FPE",
  "ILL",
  "IOT",
  "KILL",
  "POLL",
  "SEGV",
  "STOP",
  "TRAP",
  "TSTP",
  "TTIN",
  "TTOU"
]

it("every signal of the system has a deed, and a line in the document", () => {
  const left = Object.keys(constants.signals).filter((name) => !(name in DEEDS))
  assert.deepStrictEqual(
    left.toSorted(),
    ELSE.map((name) => `SIG${name}`)
  )
  const text = readFileSync(join(import.meta.dirname, "../../../docs/troubleshooting.md"), "utf8")
  for (const name of names) assert.include(text, name)
})

describe.skipIf(process.platform !== "linux")("signals", () => {
  it.live("those that end nothing are noted, and open no port", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.keeping
      const { box } = stage
      stage.home({ agents: {} })
      yield* stage.up
      yield* box.until(
        "the keeper is there",
        Effect.sync(() => stage.keepers.length),
        (count) => count === 1
      )
      const [daemon, keeper] = [box.daemon!.pid!, stage.keepers[0]!]
      const before = [listening(daemon), listening(keeper)]
      const harmless = names.filter((name) => DEEDS[name] === "nothing" || DEEDS[name] === "hangup")
      for (const name of harmless) {
        process.kill(daemon, name)
        process.kill(keeper, name)
        if (!/WINCH|URG|PIPE/.test(name))
          yield* box.until(
            `${name} is noted`,
            Effect.sync(() => box.output),
            (text) => text.includes(`${name}: ignored`)
          )
      }
      assert.strictEqual((yield* box.cli("ps")).code, 0)
      assert.isNull(box.daemon!.exitCode)
      assert.deepStrictEqual(stage.keepers, [keeper])
      assert.deepStrictEqual([listening(daemon), listening(keeper)], before)
      assert.notInclude(box.output, "Debugger")
      const [one = ""] = readdirSync(join(box.state, "keeper"))
      const log = readFileSync(join(box.state, "keeper", one, "log"), "utf8")
      assert.include(log, "SIGUSR2: nothing is done")
      assert.notInclude(log, "Debugger")
      process.kill(keeper, "SIGQUIT")
      yield* box.until(
        "the keeper says why it ends",
        Effect.sync(() => readFileSync(join(box.state, "keeper", one, "log"), "utf8")),
        (text) => text.includes("SIGQUIT: all programs are ended")
      )
    }).pipe(Effect.scoped)
  )

  it.live("those that end the daemon do so in order, and its log says which it was", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const { box } = stage
      stage.home({ agents: {} })
      for (const name of names.filter((one) => DEEDS[one] === "end")) {
        yield* stage.up
        const { daemon } = box
        daemon!.kill(name)
        yield* box.gone
        assert.deepStrictEqual([daemon!.exitCode, daemon!.signalCode], [0, null], name)
        assert.include(box.output, `${name}: the daemon is shutting down`)
      }
    }).pipe(Effect.scoped)
  )
})
