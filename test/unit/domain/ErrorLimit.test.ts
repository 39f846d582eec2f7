/** Counts in sentences: one is one. */
import { assert, describe, it } from "@effect/vitest"
import { causeFirst, counted, putRight } from "../../../src/domain/ErrorLimit.ts"

describe("a count", () => {
  it("of one has no plural, and neither have the words that a log of before holds", () => {
    assert.deepStrictEqual(
      [0, 1, 2].map((n) => counted(n, "error")),
      ["0 errors", "1 error", "2 errors"]
    )
    assert.strictEqual(putRight("1 errors in a row; the last: 1 errors"), "1 error in a row; the last: 1 errors")
    for (const other of ["11 errors in a row", "1 error in all", "a: 1 errors", ""])
      assert.strictEqual(putRight(other), other)
  })
})

it("the reason of a permanent stop begins with its cause", () => {
  assert.strictEqual(
    causeFirst("5 errors in a row; the last: exit code 7: no space"),
    "exit code 7: no space · stopped permanently after 5 errors in a row"
  )
  assert.strictEqual(causeFirst("1 errors in a row; the last: x"), "x · stopped permanently after 1 error in a row")
  assert.strictEqual(causeFirst("exit code 3"), "exit code 3 · stopped permanently")
})
