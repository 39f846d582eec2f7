/** A keeper of runs that cannot be had is said wherever a person looks, and does not keep the daemon from its end. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Sandbox from "../support/Sandbox.ts"

describe("a keeper that cannot be had", () => {
  it.live("is a row of ps, of waiting and of doctor until it can; a stop ends all the same", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make("shop", { keeps: true })
      box.configure({
        agents: { a: { mode: "loop", prompt: "go", backend: { type: "command", shell: "echo up; exec sleep 300" } } }
      })
      yield* box.up()
      yield* box.cli("start")
      yield* box.cli("wait", "a", "--state", "working")
      const home = join(box.state, "keeper", "1")
      const waiting = Effect.map(box.cli("waiting"), ({ stdout }) => stdout)
      assert.notInclude(yield* waiting, "keeper")
      const lose = () => {
        const pid = Number(readFileSync(join(home, "pid"), "utf8"))
        renameSync(home, `${home}.aside`)
        writeFileSync(home, "")
        process.kill(pid, "SIGKILL")
      }
      lose()
      const told = /keeper: cannot be reached, so that no run can start: EEXIST/
      assert.match(
        yield* box.until("a row says so", waiting, (text) => text !== "" && told.test(text)),
        /agentd .*restart/
      )
      const { stdout: ps } = yield* box.cli("ps")
      assert.match(ps, /Needs you 1\n◆ keeper /)
      assert.match((yield* box.cli("doctor")).stdout, /^fail +keeper +the keeper of runs cannot be reached/m)
      rmSync(home)
      renameSync(`${home}.aside`, home)
      yield* box.until("the row goes", waiting, (text) => !text.includes("keeper"))
      assert.notInclude((yield* box.cli("doctor")).stdout, "the keeper of runs cannot be reached")
      lose()
      yield* box.until("a row says so", waiting, (text) => told.test(text))
      const { code, stderr } = yield* box.cli("stop", "--daemon", "--yes")
      assert.strictEqual(code, 0, stderr)
      yield* box.gone
      assert.deepStrictEqual(yield* box.processes, [])
    })
  )
})
