/** Tests of `agentd conformance`: a backend of 37 lines in another language keeps the contract; a broken one is told why not. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { folder } from "../rpc/World.ts"
import { agentd } from "./Child.ts"
import { long } from "../../support/Long.ts"

const fixture = (name: string) => join(import.meta.dirname, "../../fixtures/exec", name)
const lacks = spawnSync("python3", ["--version"]).status !== 0
if (lacks) console.warn("SKIPPED: agentd conformance (no python3 on this machine)")

interface Told {
  readonly passed: boolean
  readonly checks: ReadonlyArray<{ readonly check: string; readonly result: string; readonly why: string }>
}

const tried = Effect.fnUntraced(function* (...command: ReadonlyArray<string>) {
  const { code, out } = yield* agentd(["--json", "conformance", "--", ...command], { cwd: yield* folder })
  return { code, told: JSON.parse(out) as Told }
})

describe.skipIf(lacks)("agentd conformance", () => {
  it.live("a backend of at most 40 lines passes all of it", () =>
    Effect.gen(function* () {
      assert.isAtMost(readFileSync(fixture("echo.py"), "utf8").trim().split("\n").length, 40)
      const { code, told } = yield* tried("python3", fixture("echo.py"))
      assert.deepStrictEqual(
        told.checks.filter(({ result }) => result !== "ok"),
        []
      )
      assert.isAbove(told.checks.length, 8)
      assert.isTrue(told.passed)
      assert.strictEqual(code, 0)
    })
  )

  long.live("a broken one fails, and is told why in words; nothing of it is left", () =>
    Effect.gen(function* () {
      const { code, told } = yield* tried("python3", fixture("broken.py"))
      assert.strictEqual(code, 1)
      assert.isFalse(told.passed)
      const why = Object.fromEntries(told.checks.map((one) => [one.check, one.why]))
      const all = {
        "runs a turn, from began to done": /"usage" does not fit: .*input/,
        "waits before a call that needs approval, and executes it when allowed":
          /did not wait for the answer before the call "c"/,
        "ends a turn that is interrupted, and takes the next one": /not a record: it is not JSON: "working …"/,
        "ends by itself when it is told to": /still running 3 s/,
        "ignores records that it does not know": /ended \(exit code 1: KeyError: 'of a later version'\)/,
        "begins a new session if the requested one does not exist, and reports its name": /a session that never existed/
      }
      for (const [check, words] of Object.entries(all)) assert.match(why[check] ?? "", words, check)
      assert.strictEqual(why["is ready, and reports the contract's version"], "")
    })
  )

  it.live("a program that is not there, and one that says nothing, fail in words", () =>
    Effect.gen(function* () {
      const { code, err, out } = yield* agentd(["conformance", "--", "no-such-program"], { cwd: yield* folder })
      assert.strictEqual(code, 1)
      assert.match(out, /FAILED {3}is ready[^]*no-such-program/)
      assert.match(err, /10 of 10 checks failed/)
      const silent = yield* tried("sh", "-c", "echo no licence >&2; exit 7")
      assert.include(silent.told.checks[0]?.why, 'it ended (exit code 7: no licence) before it sent "ready"')
    })
  )

  it("the contract's page is there", () => {
    assert.isTrue(existsSync(join(import.meta.dirname, "../../../docs/exec-backend.md")))
  })
})
