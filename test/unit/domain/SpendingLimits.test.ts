/** The words of a limit: each amount in a unit in which it can be read. */
import { assert, it } from "@effect/vitest"
import { share } from "../../../src/domain/SpendingLimits.ts"

it.each([
  ["wall_time", 98, 100, "98 ms of 100 ms"],
  ["wall_time", 950, 2_000, "950 ms of 2 s"],
  ["wall_time", 90_000, 120_000, "90 s of 120 s"],
  ["usd", 0.0441, 5, "0.0441 of 5.00"],
  ["tokens", 120, 100, "120 of 100"]
] as const)("%s: %d of %d", (resource, spent, limit, words) => {
  assert.strictEqual(share({ limit, resource, spent } as Parameters<typeof share>[0]), words)
})
