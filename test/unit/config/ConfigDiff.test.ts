/** The text diff of a changed config: where a change begins, and that no changed line is left out. */
import { assert, describe, it } from "@effect/vitest"
import { diffOf } from "../../../src/config/ConfigChange.ts"

const lines = (count: number, ...changed: ReadonlyArray<number>) =>
  Array.from(
    { length: count },
    (_, index) => `line ${index + 1}${changed.includes(index + 1) ? " changed" : ""}\n`
  ).join("")
const NO_END = "\\ No newline at end of file"
const heads = (diff: ReadonlyArray<string>) => diff.filter((line) => line.startsWith("@"))

describe("the diff of a config", () => {
  for (const line of [1, 2, 3, 4, 5, 9])
    it(`names the first line that it shows: a change in line ${line}`, () => {
      assert.deepStrictEqual(heads(diffOf(lines(20), lines(20, line))), [`@ ${Math.max(1, line - 3)}`])
    })

  it("shows three lines around a change, and each change apart from the others with its own line", () => {
    const first = ["@ 1", " line 1", "-line 2", "+line 2 changed", " line 3", " line 4", " line 5"]
    const before = ["@ 17", " line 17", " line 18", " line 19"]
    const after = ["-line 20", "+line 20 changed", " line 21", " line 22", " line 23"]
    assert.deepStrictEqual(diffOf(lines(30), lines(30, 2, 20)), [...first, ...before, ...after])
  })

  it("shows every changed line, also one that looks like a mark of a diff, an empty one and a blank one", () => {
    const expected = ["@ 1", " a", "--- x", "+++ y", "+@@ -1 +1 @@", "+ ", " "]
    assert.deepStrictEqual(diffOf("a\n-- x\n\n", "a\n++ y\n@@ -1 +1 @@\n \n\n"), expected)
  })

  it("shows a new file as a whole, and the last line if only its end is new", () => {
    assert.deepStrictEqual(diffOf("", "{\n}"), ["@ 1", "+{", "+}", NO_END])
    assert.deepStrictEqual(diffOf("{\n}", "{\n}\n"), ["@ 1", " {", "-}", NO_END, "+}"])
    assert.deepStrictEqual(diffOf("{\n}\n", "{\n}\n"), [])
  })
})
