/** Seeded worlds: the whole daemon, its people, its agents and its disk; the same seed tells the same story anywhere. */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { regressions } from "./Regressions.ts"
import { simulate } from "./Simulation.ts"
import { long, sample } from "../support/Long.ts"

const MINUTES = 60_000
/** Worlds of each swarm: `npm test` plays the first of them. */
const worlds = [
  { what: "in which all happens that people, agents and disks do", first: 201, count: sample(40, 2), minutes: 3 },
  { what: "in which people have sessions of their own, on the board", first: 10_037, count: sample(4, 1), minutes: 3 },
  { what: "in which the real backends read what programs write", first: 20_004, count: sample(10, 1), minutes: 3 },
  { what: "in which agents speak ACP, and bytes are no text", first: 22_001, count: sample(6, 1), minutes: 2 },
  {
    what: "in which a keeper holds programs while daemons come and go",
    first: 27_502,
    count: sample(4, 1),
    minutes: 2
  },
  { what: "in which agents are models behind an API", first: 30_001, count: sample(6, 1), minutes: 1 },
  { what: "in which accounts are away, and agents have others to ask", first: 38_001, count: sample(4, 1), minutes: 2 },
  { what: "of days, in which little happens at a time", first: 40_001, count: sample(2, 1), minutes: 24 * 60 },
  { what: "of days, in which messages are due at certain times", first: 50_003, count: sample(2, 1), minutes: 4 * 60 }
] as const
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
  for (const { count, first, minutes, what } of worlds) {
    it(`${count} worlds ${what} keep every promise`, limit, () => {
      for (let seed = first; seed < first + count; seed++) {
        const { violations } = simulate({ seed, stormy: minutes * MINUTES })
        assert.deepStrictEqual(told(seed, minutes, violations), [])
      }
    })
  }

  for (const { minutes, seed, was } of regressions) {
    long.it(`seed ${seed}: ${was}`, limit, () => {
      const { violations } = simulate({ seed, stormy: minutes * MINUTES })
      assert.deepStrictEqual(told(seed, minutes, violations), [])
    })
  }

  it("a seed tells the same story in another process, with other hashes and other chance", limit, () => {
    const seeds = sample([3, 7, 11], [3])
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
