import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { ReplayFilter, type Told } from "../../../src/runs/ReplayFilter.ts"

/** Few letters, so that answers begin alike. */
const Piece = Schema.Literals(["a", "b", "ab"])
const Answer = Schema.Array(Piece).check(Schema.isMaxLength(4))

/** The text that a person has read when only the last answer came to its end. */
const read = (answers: ReadonlyArray<ReadonlyArray<string>>) => {
  const retelling = new ReplayFilter()
  const told: Array<Told> = []
  for (const answer of answers) {
    retelling.again()
    for (const piece of answer) told.push(...retelling.take(piece))
  }
  told.push(...retelling.end())
  const over = told.findLastIndex(({ _tag }) => _tag === "StartsOver")
  const text = told.slice(over + 1).map((one) => (one._tag === "Text" ? one.text : ""))
  return { text: text.join(""), startsOver: told.filter(({ _tag }) => _tag === "StartsOver").length }
}

describe("ReplayFilter", () => {
  it.prop(
    "after the last note that it starts over, what was told is the answer that came to its end",
    { answers: Schema.Array(Answer).check(Schema.isMaxLength(4)), last: Answer },
    ({ answers, last }) => assert.strictEqual(read([...answers, last]).text, last.join(""))
  )

  it.prop(
    "an answer that goes on from where it broke off never starts over",
    { answer: Answer, n: Schema.Int },
    ({ answer, n }) => {
      const part = answer.slice(0, Math.abs(n) % (answer.length + 1))
      assert.deepStrictEqual(read([part, answer]), { text: answer.join(""), startsOver: 0 })
    }
  )

  it("one that differs, or is over sooner, does", () => {
    assert.strictEqual(read([["a"], ["b"]]).startsOver, 1)
    assert.strictEqual(read([["ab"], ["a"]]).startsOver, 1)
  })
})
