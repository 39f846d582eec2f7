/** Tests of `agentd conformance`: an agent with one fault fails exactly the check of that fault; docs list every check. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { NAMES } from "../../../src/runs/acp/Conformance.ts"
import { folder } from "../rpc/World.ts"
import { agentd } from "./Child.ts"

const FAULTY = join(import.meta.dirname, "../../fixtures/acp/faulty.mjs")

interface Told {
  readonly passed: boolean
  readonly checks: ReadonlyArray<{ readonly check: string; readonly result: string; readonly why: string }>
}

const tried = Effect.fnUntraced(function* (...command: ReadonlyArray<string>) {
  const { code, out } = yield* agentd(["--json", "conformance", "--", ...command], { cwd: yield* folder })
  return { code, told: JSON.parse(out) as Told }
})
const failedIn = ({ checks }: Told) => checks.flatMap(({ check, result }) => (result === "failed" ? [check] : []))

describe("agentd conformance", () => {
  it.live("an agent without a fault passes every check", () =>
    Effect.gen(function* () {
      const { code, told } = yield* tried(process.execPath, FAULTY)
      assert.deepStrictEqual(
        told.checks.filter(({ result }) => result !== "ok"),
        []
      )
      assert.deepStrictEqual(
        told.checks.map(({ check }) => check),
        NAMES
      )
      assert.isTrue(told.passed)
      assert.strictEqual(code, 0)
    })
  )

  it.live(
    "an agent with one fault fails exactly the check of that fault",
    () =>
      Effect.forEach(
        NAMES,
        Effect.fnUntraced(function* (name) {
          const { code, told } = yield* tried(process.execPath, FAULTY, name)
          assert.deepStrictEqual(failedIn(told), [name], JSON.stringify(told.checks.filter(({ why }) => why !== "")))
          assert.strictEqual(code, 1)
        }),
        { concurrency: 4, discard: true }
      ),
    600_000
  )

  it.live("a program that is not there, and one that ends at once, fail in words", () =>
    Effect.gen(function* () {
      const { code, err, out } = yield* agentd(["conformance", "--", "no-such-program"], { cwd: yield* folder })
      assert.strictEqual(code, 1)
      assert.match(out, /FAILED {3}answers initialize[^]*no-such-program/)
      assert.match(err, /1 of \d+ checks failed/)
      const silent = yield* tried("sh", "-c", "echo no licence >&2; exit 7")
      assert.include(silent.told.checks[0]?.why, "it ended (exit code 7: no licence)")
    })
  )

  it("docs/own-agent.md lists every check by its name", () => {
    const page = readFileSync(join(import.meta.dirname, "../../../docs/own-agent.md"), "utf8")
    for (const name of NAMES) assert.include(page, `| ${name} |`)
  })
})
