/**
 * The log's store over the real SQLite on a disk that tears and forgets. A seed that fails is
 * named: `SEED=7 npx vitest run test/simulation/storage` runs it alone, `ALL=1` many more.
 */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { PATIENCE } from "../../support/Patience.ts"
import { plants } from "./Plants.ts"
import { type Options, type Report, StorageStory } from "./StorageStory.ts"
import { WasmSqlite } from "./WasmSqlite.ts"
import { isAll, sample, long } from "../../support/Long.ts"

const only = process.env["SEED"]
const SEEDS = sample(4_000, 40)
const HOUR = 3_600_000

/** Where a mistake is looked for. */
const PLANTED = 120

let wasm: WasmSqlite
beforeAll(async () => {
  wasm = await WasmSqlite.load()
})

/** The first seed that sees it. */
const caught = async (of: Omit<Options, "seed">): Promise<{ readonly seed: number; readonly why: string }> => {
  for (let seed = 1; seed <= PLANTED; seed++) {
    try {
      await new StorageStory(wasm, { ...of, seed }).run()
    } catch (error) {
      return { seed, why: error instanceof Error ? error.message : String(error) }
    }
  }
  throw new Error(`none of ${PLANTED} seeds saw it`)
}

describe("a disk that tears and forgets", () => {
  long.it(
    "keeps what was acknowledged, in whole groups, and all that is made of it",
    async () => {
      const seeds = only === undefined ? Array.from({ length: SEEDS }, (_, index) => index + 1) : [Number(only)]
      const total = new Map<string, number>()
      for (const seed of seeds) {
        const report: Report = await new StorageStory(wasm, { seed }).run().catch((error: Error) => {
          throw new Error(`seed ${seed}: ${error.message}`, { cause: error })
        })
        for (const [what, count] of Object.entries(report)) total.set(what, (total.get(what) ?? 0) + count)
      }
      if (only !== undefined) return
      // what never came to pass was not tested
      for (const [what, count] of total) assert.isAbove(count, 0, what)
      assert.isAbove(total.get("cuts")!, seeds.length * 2)
      if (isAll) console.log(`${seeds.length} seeds: ${JSON.stringify(Object.fromEntries(total))}`)
    },
    sample(HOUR, 3 * PATIENCE)
  )

  it("tells the same story twice", async () => {
    const told = async () => (await new StorageStory(wasm, { seed: 11 }).run()).operations
    const first = await told()
    await new StorageStory(wasm, { seed: 12 }).run()
    assert.strictEqual(await told(), first)
  })
})

describe("mistakes are seen", () => {
  it("a disk whose syncs do nothing", async () => {
    const { why } = await caught({ lies: true })
    assert.match(why, /does not open|ends with/)
  })

  for (const [what, { plant, seenAs }] of Object.entries(plants)) {
    it(what, async () => {
      const { seed, why } = await caught({ plant })
      assert.match(why, seenAs)
      if (isAll) console.log(`${what}: seed ${seed}: ${why.split("\n")[0]}`)
    })
  }
})
