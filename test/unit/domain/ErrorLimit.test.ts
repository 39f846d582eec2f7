/** Counts in sentences: one is one. */
import { assert, describe, it } from "@effect/vitest"
import { counted, putRight } from "../../../src/domain/ErrorLimit.ts"

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
