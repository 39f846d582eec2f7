import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema } from "effect"
import { spawn } from "node:child_process"
import * as ProcessTable from "../../../src/runs/process/ProcessTable.ts"

const rest = (state: string, threads: number, start: number) =>
  `${state} 7 42 43 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 ${threads} 0 ${start} 1000 200`

describe("ProcessTable", () => {
  it.effect.prop("whatever a command calls itself, its stat line is read rightly", [Schema.String], ([name]) => {
    assert.deepStrictEqual(ProcessTable.parseStat(`42 (${name}) ${rest("S", 1, 981)}`), {
      pid: 42,
      start: 981,
      parent: 7,
      group: 42,
      session: 43,
      terminal: 0,
      ended: false,
      kernel: false
    })
    return Effect.void
  })

  it.each([") S 1 1 1 (", "a)\n2 (b", "x) Z 1 1"])("the command %j takes nobody in", (name) => {
    assert.include(ProcessTable.parseStat(`42 (${name}) ${rest("R", 1, 5)}`), { pid: 42, start: 5, ended: false })
  })

  it("a zombie has ended; one whose other threads live on has not", () => {
    assert.isTrue(ProcessTable.parseStat(`42 (x) ${rest("Z", 1, 5)}`)?.ended)
    assert.isFalse(ProcessTable.parseStat(`42 (x) ${rest("Z", 3, 5)}`)?.ended)
  })

  it.live("the kernel's own threads are in no snapshot", () =>
    Effect.map(ProcessTable.snapshot, (table) => assert.isUndefined(table.find(({ parent }) => parent === 2)))
  )

  it.each(["", "42", "42 (x", "42 (x) S 1 2", "(x) S"])("%j is no stat line", (text) => {
    assert.isUndefined(ProcessTable.parseStat(text))
  })

  it.live("tells a command's words, what it has used, and whether it is stopped; of one that is gone nothing", () =>
    Effect.gen(function* () {
      const child = spawn("sleep", ["987"])
      yield* Effect.addFinalizer(() => Effect.sync(() => child.kill("SIGKILL")))
      const pid = child.pid!
      const until = (holds: () => boolean): Effect.Effect<void> =>
        Effect.suspend(() => (holds() ? Effect.void : Effect.andThen(Effect.sleep("10 millis"), until(holds))))
      yield* until(() => ProcessTable.commandLine(pid) === "sleep\u0000987\u0000")
      assert.isFalse(ProcessTable.isStopped(pid))
      child.kill("SIGSTOP")
      yield* until(() => ProcessTable.isStopped(pid))
      assert.isAbove(ProcessTable.ticks(process.pid)!, 0)
      const gone = 0x7fffffff
      assert.deepStrictEqual(
        [ProcessTable.commandLine(gone), ProcessTable.ticks(gone), ProcessTable.isStopped(gone)],
        ["", undefined, false]
      )
    }).pipe(Effect.scoped)
  )

  it("a pid with another start time is not alive", () => {
    const self = ProcessTable.identify(process.pid)
    assert.isTrue(ProcessTable.isAlive(self))
    assert.isFalse(ProcessTable.isAlive({ pid: self.pid, start: self.start + 1 }))
  })

  it.live("the snapshot holds this process with its parent", () =>
    Effect.gen(function* () {
      const table = yield* ProcessTable.snapshot
      assert.include(
        table.find(({ pid }) => pid === process.pid),
        { parent: process.ppid }
      )
    })
  )

  it.live("a child's environment is read; one that has gone has none", () =>
    Effect.gen(function* () {
      const child = spawn("sleep", ["300"], { env: { PATH: process.env["PATH"], MARK: "a b=c" } })
      yield* Effect.promise(() => new Promise((resolve) => child.once("spawn", resolve)))
      assert.include(yield* ProcessTable.environment(child.pid!), "MARK=a b=c")
      const gone = new Promise((resolve) => child.once("exit", resolve))
      child.kill("SIGKILL")
      yield* Effect.promise(() => gone)
      assert.deepStrictEqual(yield* ProcessTable.environment(child.pid!), [])
    })
  )

  it.live("one whose environment is empty for a moment, as within exec, is looked at again", () =>
    Effect.gen(function* () {
      // a machine that is busy may take longer to go on with the shell than it is looked at
      for (let tries = 0; tries < 20; tries++) {
        const child = spawn("/bin/sh", ["-c", "read go; export MARK=x; exec sleep 300"], { env: {} })
        yield* Effect.promise(() => new Promise((resolve) => child.once("spawn", resolve)))
        const found = yield* Effect.forkChild(ProcessTable.environment(child.pid!), { startImmediately: true })
        child.stdin.write("\n")
        const entries = yield* Fiber.join(found)
        child.kill("SIGKILL")
        if (entries.length === 0) continue
        return assert.include(entries, "MARK=x")
      }
      assert.fail("it was never looked at again")
    })
  )
})
