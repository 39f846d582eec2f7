/** CrashPoints: the daemon is killed at boundaries of a busy minute; `ALL=1` takes every boundary of eight minutes. */
import { assert, describe, it } from "@effect/vitest"
import type { Boundary } from "./Boundaries.ts"
import * as CrashPoints from "./CrashPoints.ts"
import { all, long } from "../support/Long.ts"

const SEED = 1
const OF_TEAM = 102

/** The first of each kind, and one in the midst of those that are many. */
const sampleOf = (passed: ReadonlyArray<Boundary>): ReadonlyArray<number> =>
  [...new Set(passed)].flatMap((kind) => {
    const numbers = passed.flatMap((boundary, index) => (boundary === kind ? [index + 1] : []))
    return numbers.length < 50 ? [numbers[0]!] : [numbers[0]!, numbers[numbers.length >> 1]!]
  })

describe("crash points", () => {
  it("no promise is broken by a kill -9 at any kind of boundary", { timeout: 3_600_000 }, () => {
    const { passed, result } = CrashPoints.record(SEED)
    assert.deepStrictEqual(result.violations, [])
    const tally = new CrashPoints.Tally()
    for (const number of sampleOf(passed)) tally.add(SEED, number, passed[number - 1]!, CrashPoints.cut(SEED, number))
    assert.deepStrictEqual(tally.failures, [])
    assert.isAbove(tally.points, 30)
  })

  long.it("nor where goals are worked off and a channel is spoken in", { timeout: 3_600_000 }, () => {
    const { passed, result } = CrashPoints.record(OF_TEAM)
    assert.deepStrictEqual(result.violations, [])
    assert.isTrue(["goal merge: merged", "an agent's answer"].every((name) => result.reached.has(name)))
    const tally = new CrashPoints.Tally()
    for (const kind of new Set(passed)) {
      const number = passed.indexOf(kind, passed.length >> 1) + 1
      if (number > 0) tally.add(OF_TEAM, number, kind, CrashPoints.cut(OF_TEAM, number))
    }
    assert.deepStrictEqual(tally.failures, [])
    assert.isAbove(tally.points, 10)
  })

  all.it("nor at any boundary", { timeout: 7_200_000 }, () => {
    for (const seed of [SEED, OF_TEAM]) {
      const { failures, kills } = CrashPoints.cutAll({ seed, seeds: 4, every: 1 }, () => {})
      assert.deepStrictEqual(failures, [])
      assert.isAbove(kills, 4_000)
    }
  })
})
