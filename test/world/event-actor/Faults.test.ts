/** Faults: each planted fault still has its place, and under `ALL=1` is seen by some test. */
import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { faults } from "./Faults.ts"
import { all } from "../../support/Long.ts"

const root = join(import.meta.dirname, "../../..")

it("each fault can be planted, in one place", () => {
  for (const { file, from, what } of faults) {
    const source = readFileSync(join(root, "src/core/event-actor", file), "utf8")
    assert.strictEqual(source.split(from).length, 2, `${what}: ${file} has the place once`)
  }
})

const run = (plant: string) => {
  const vitest = join(root, "node_modules/vitest/vitest.mjs")
  const env = { ...process.env, PLANT: plant, SEEDS: "300", NO_COLOR: "1" }
  const args = [vitest, "run", "--config", "test/world/event-actor/planted.config.ts"]
  // a fault may make a test run for ever
  return spawnSync(process.execPath, args, {
    cwd: root,
    env,
    encoding: "utf8",
    timeout: 240_000,
    killSignal: "SIGKILL"
  })
}

all.describe("planted, it is seen", () => {
  it("nothing is seen where nothing is planted", () => {
    const { status, stdout } = run("none")
    assert.strictEqual(status, 0, stdout)
  })
  for (const [index, { what }] of faults.entries()) {
    it(what, () => {
      const { signal, status, stdout } = run(String(index))
      // some of them end the whole worker
      assert.isTrue(signal !== null || (status !== 0 && stdout.includes("Test Files ")), stdout)
    })
  }
})
