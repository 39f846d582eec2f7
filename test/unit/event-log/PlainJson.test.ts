/** PlainJson: says yes exactly to what its JSON reads back as. */
import { assert, it } from "@effect/vitest"
import { isPlainJson } from "../../../src/core/event-log/PlainJson.ts"

const yes: ReadonlyArray<unknown> = [null, true, 0, 1.5, "", "\uD800", [], [1, [null]], {}, { a: { b: ["c"] } }]
const hole = [1, 2, 3]
delete hole[1]
const no: ReadonlyArray<unknown> = [
  undefined,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  -0,
  1n,
  Symbol.iterator,
  () => 1,
  new Date(0),
  new Map(),
  hole,
  [undefined],
  { a: undefined },
  { a: [Number.NaN] },
  { toJSON: () => 1 },
  Object.create(null),
  new (class Point {
    readonly x = 1
  })()
]

it("what is plain reads back as it is", () => {
  for (const value of yes) {
    assert.isTrue(isPlainJson(value))
    assert.deepStrictEqual(JSON.parse(JSON.stringify(value)), value)
  }
})

it("what JSON changes, drops or refuses is not plain", () => {
  for (const value of no) assert.isFalse(isPlainJson(value), typeof value)
})
