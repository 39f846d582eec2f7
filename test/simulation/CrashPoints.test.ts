/** CrashPoints: the daemon is killed at boundaries of a busy minute; `LONG=1` takes every boundary of eight minutes. */
import { assert, describe, it } from "@effect/vitest"
import type { Boundary } from "./Boundaries.ts"
import * as CrashPoints from "./CrashPoints.ts"

const LONG = process.env["LONG"] === "1"
const SEED = 3

/** The first and the middle one of each kind. */
const sampleOf = (passed: ReadonlyArray<Boundary>): ReadonlyArray<number> =>
  [...new Set(passed)].flatMap((kind) => {
    const numbers = passed.flatMap((boundary, index) => (boundary === kind ? [index + 1] : []))
    return [...new Set([numbers[0]!, numbers[numbers.length >> 1]!])]
  })

describe("crash points", () => {
  it("no promise is broken by a kill -9 at any kind of boundary", { timeout: 3_600_000 }, () => {
    const { passed, result } = CrashPoints.record(SEED)
    assert.deepStrictEqual(result.violations, [])
    const tally = new CrashPoints.Tally()
    for (const number of sampleOf(passed)) tally.add(SEED, number, passed[number - 1]!, CrashPoints.cut(SEED, number))
    assert.deepStrictEqual(tally.failures, [])
    assert.isAbove(tally.points, 45)
  })

  it.skipIf(!LONG)("nor at any boundary", { timeout: 7_200_000 }, () => {
    const { failures, kills } = CrashPoints.cutAll({ seed: 1, seeds: 8, every: 1 }, () => {})
    assert.deepStrictEqual(failures, [])
    assert.isAbove(kills, 10_000)
  })
})
