/** Plants: each planted bug has its place in the source; under `ALL=1` a seeded world finds each of them. */
import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { plants } from "./Plants.ts"
import { all } from "../support/Long.ts"

const root = join(import.meta.dirname, "../..")

it("each bug can be planted, in one place", () => {
  for (const [name, { file, from }] of Object.entries(plants)) {
    const source = readFileSync(join(root, file), "utf8")
    assert.strictEqual(source.split(from).length, 2, `${name}: ${file} has the place once`)
  }
})

all.describe("planted, it is found", () => {
  for (const [name, { seed }] of Object.entries(plants)) {
    it(name, { timeout: 3_600_000 }, () => {
      const { status, stdout } = spawnSync(
        process.execPath,
        ["--import", "./test/simulation/plant.ts", "test/simulation/simulate.ts", "--seed", String(seed), "--stop"],
        { cwd: root, env: { ...process.env, PLANT: name }, encoding: "utf8" }
      )
      assert.strictEqual(status, 1, stdout)
      assert.include(stdout, "FAILED")
    })
  }
})
