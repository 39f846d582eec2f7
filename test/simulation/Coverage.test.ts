/**
 * The worlds come to what there is: at least 95 of 100 of the legal cells of each machine's
 * table, in a recorded list of seeds; of refusals, ways to end, and faults while commands are
 * open in the long run. A cell that no daemon comes to is named with its reason in Unreached.
 */
import { assert, describe, it } from "@effect/vitest"
import { cellsOf } from "../support/Cells.ts"
import { unreached } from "../support/Unreached.ts"
import { noCells } from "./checks/Tables.ts"
import * as Coverage from "./Coverage.ts"
import { simulate } from "./Simulation.ts"

const MINUTES = 60_000
const SHARE = 0.95
/** Of the worlds of what is rare, those that together come to the most. */
const SEEDS: ReadonlyArray<number> = []
const LONG = process.env["LONG"] === "1" ? 160 : 0
/** ms: this is work and no waiting, and ends by itself. */
const limit = { timeout: 3_600_000 }

/** Plays them; whatever they break is a broken promise here, too. */
const played = (seeds: ReadonlyArray<number>, minutes: number) => {
  const cells = noCells()
  const reached = new Map<string, number>()
  for (const seed of seeds) {
    const result = simulate({ seed, stormy: minutes * MINUTES })
    const again = `npm run simulate -- --seed ${seed} --minutes ${minutes}`
    assert.deepStrictEqual(
      result.violations.map(({ detail, promise }) => `${again}: ${promise}: ${detail}`),
      []
    )
    Coverage.add(cells, result.cells)
    for (const [what, times] of result.reached) reached.set(what, (reached.get(what) ?? 0) + times)
  }
  return { cells, reached }
}

const areReached = (covered: ReadonlyArray<Coverage.Covered>): void => {
  for (const { all, missing, name, reached } of covered)
    assert.isAtLeast(reached / all, SHARE, `${name}: ${reached} of ${all}; never: ${missing.join(", ")}`)
}

describe("what the worlds come to", () => {
  it(
    "a recorded list of seeds reaches 95 of 100 legal cells of each table, and none that is named as unreached",
    limit,
    () => {
      const { cells } = played(SEEDS, 2)
      areReached(Coverage.coverage(cells))
      for (const [name, reached] of Object.entries(cells))
        for (const cell of Object.keys(unreached[name as keyof typeof cells]))
          assert.isFalse(reached.has(cell), `${name}: ${cell} is reached`)
    }
  )

  it("names no cell as unreached that is not in the table", () => {
    for (const [name, machine] of Object.entries(Coverage.tables))
      assert.includeMembers([...cellsOf(machine)], Object.keys(unreached[name as keyof typeof Coverage.tables]))
  })

  it.runIf(LONG > 0)("in the long run refusals and ways to end are reached as well", limit, () => {
    const { cells, reached } = played(
      Array.from({ length: LONG }, (_, n) => 60_001 + n),
      3
    )
    areReached(Coverage.coverage(cells))
    areReached(Coverage.sometimes(reached).filter(({ name }) => name === "ways to end"))
  })
})
