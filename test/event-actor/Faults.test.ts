/** Faults: each planted fault still has its place, and under `LONG=1` is seen by some test. */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { faults } from "./Faults.ts"

const root = join(import.meta.dirname, "../..")

it("each fault can be planted, in one place", () => {
  for (const { file, from, what } of faults) {
    const source = readFileSync(join(root, "src/event-actor", file), "utf8")
    assert.strictEqual(source.split(from).length, 2, `${what}: ${file} has the place once`)
  }
})

describe.runIf(process.env["LONG"] === "1")("planted, it is seen", () => {
  for (const [index, { what }] of faults.entries()) {
    it(what, { timeout: 300_000 }, () => {
      const vitest = join(root, "node_modules/vitest/vitest.mjs")
      const env = { ...process.env, PLANT: String(index), SEEDS: "300" }
      const { status } = spawnSync(
        process.execPath,
        [vitest, "run", "--config", "test/event-actor/planted.config.ts"],
        { cwd: root, env, timeout: 240_000 }
      )
      assert.notStrictEqual(status, 0, "all tests pass with it")
    })
  }
})
