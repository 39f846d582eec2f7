/** Seeded worlds: the whole daemon, its people, its agents and its disk; the same seed tells the same story anywhere. */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { regressions } from "./Regressions.ts"
import { simulate } from "./Simulation.ts"

const MINUTES = 60_000
const SEEDS = 40
/** Worlds in which all happens that people, agents and disks do. */
const FIRST = 201
/** Worlds in which people have sessions of their own, on the board. */
const BOARDS = [10_040, 10_257, 10_279]
const OF_BYTES = 20_004
/** The same with agents that speak ACP, and bytes that are worse still. */
const OF_WILD = 22_001
const OF_MODELS = 30_001
/** ms: this is work and no waiting, and ends by itself. */
const limit = { timeout: 3_600_000 }

const script = join(import.meta.dirname, "simulate.ts")

/** How somebody plays it again, and what is broken. */
const told = (seed: number, minutes: number, violations: ReturnType<typeof simulate>["violations"]) =>
  violations.map(
    ({ at, detail, promise }) =>
      `npm run simulate -- --seed ${seed} --minutes ${minutes}: ${(at / 1000).toFixed(3)} s: ${promise}: ${detail}`
  )

describe("seeded worlds", () => {
  it(`${SEEDS} seeds keep every promise`, limit, () => {
    for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
      const { violations } = simulate({ seed, stormy: 3 * MINUTES })
      assert.deepStrictEqual(told(seed, 3, violations), [])
    }
  })

  for (const seed of BOARDS) {
    it(`seed ${seed}, with a board, keeps every promise`, limit, () => {
      const { violations } = simulate({ seed, stormy: 3 * MINUTES })
      assert.deepStrictEqual(told(seed, 3, violations), [])
    })
  }

  it("as do those in which the real backends read what programs write", limit, () => {
    for (let seed = OF_BYTES; seed < OF_BYTES + 10; seed++) {
      const { violations } = simulate({ seed, stormy: 3 * MINUTES })
      assert.deepStrictEqual(told(seed, 3, violations), [])
    }
  })

  it("as do those in which agents speak ACP, and bytes are no text", limit, () => {
    for (let seed = OF_WILD; seed < OF_WILD + 6; seed++) {
      const { violations } = simulate({ seed, stormy: 2 * MINUTES })
      assert.deepStrictEqual(told(seed, 2, violations), [])
    }
  })

  it("as do those in which agents are models behind an API", limit, () => {
    for (let seed = OF_MODELS; seed < OF_MODELS + 6; seed++) {
      const { violations } = simulate({ seed, stormy: 2 * MINUTES })
      assert.deepStrictEqual(told(seed, 2, violations), [])
    }
  })

  for (const { minutes, seed, was } of regressions) {
    it(`seed ${seed}: ${was}`, limit, () => {
      const { violations } = simulate({ seed, stormy: minutes * MINUTES })
      assert.deepStrictEqual(told(seed, minutes, violations), [])
    })
  }

  it("a seed tells the same story in another process, with other hashes and other chance", limit, () => {
    const seeds = [3, 7, 11]
    const here = seeds.map((seed) => simulate({ seed, stormy: 2 * MINUTES }).hash)
    assert.strictEqual(new Set(here).size, seeds.length, "each seed has its own")
    const there = seeds.map((seed, index) => {
      const v8 = [`--hash-seed=${index + 5}`, `--random-seed=${index + 9}`]
      const args = [...v8, script, "--seed", String(seed), "--minutes", "2"]
      const { stdout } = spawnSync(process.execPath, args, { encoding: "utf8" })
      return /^seed \d+ (\w+)/.exec(stdout)?.[1]
    })
    assert.deepStrictEqual(there, here)
  })
})
