/** JSON with comments: reads what JSON.parse reads, places every mistake, throws on nothing. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { type ParseError, parseTree } from "jsonc-parser"
import * as Jsonc from "../../../src/config/Jsonc.ts"

const problems = (text: string) =>
  Jsonc.read(text).problems.map(({ message, offset }) => {
    const { column, line } = Jsonc.position(text, offset)
    return `${line}:${column} ${message}`
  })

describe("Jsonc", () => {
  it.prop("reads any JSON as JSON.parse does", [Schema.Json], ([value]) => {
    for (const space of [0, 2]) {
      const text = JSON.stringify(value, null, space)
      const { problems, root } = Jsonc.read(text)
      assert.deepStrictEqual(problems, [])
      assert.deepStrictEqual(root?.value, JSON.parse(text))
    }
  })

  it.prop("throws on no text", [Schema.String, Schema.Json], ([noise, value]) => {
    const text = JSON.stringify(value)
    const middle = Math.floor(text.length / 2)
    for (const one of [noise, text.slice(0, middle), text.slice(0, middle) + noise + text.slice(middle)]) {
      const { problems, root } = Jsonc.read(one)
      assert.isTrue(root !== undefined || problems.length > 0)
    }
  })

  it("lets comments, trailing commas and a byte order mark pass", () => {
    const { problems, root } = Jsonc.read('\uFEFF// one\n{ /* two */ "a": [1, 2,], // three\n}\n')
    assert.deepStrictEqual([problems, root?.value], [[], { a: [1, 2] }])
  })

  it("keeps a key named __proto__ a key", () => {
    const { root } = Jsonc.read('{"__proto__": {"a": 1}}')
    assert.deepStrictEqual(Object.keys(root?.value as object), ["__proto__"])
  })

  for (const [text, expected] of [
    ["", "1:1 the file is empty"],
    ["  \n ", "1:1 the file is empty"],
    ['{"a": 1,\n "a": 2}', '2:2 "a" appears twice'],
    ['{"a": 1\n "b": 2}', "2:2 a comma is missing before the next text"],
    ['{"a" 1}', '1:6 a colon is missing after "a"'],
    ["{a: 1}", "1:2 the key a has no quotes"],
    ["{'a': 1}", `1:2 a key in double quotes is missing before "'"`],
    ['{"a": yes}', "1:7 yes is not a value"],
    ["{\"a\": 'b'}", "1:7 the text is in single quotes"],
    ['{"a": 01}', "1:7 is not a JSON number"],
    ['{"a": "b\n"}', "1:7 the text does not end on its line"],
    ['{"a": "b', "1:7 the text does not end"],
    ['{"a": "\\x"}', '1:7 "\\x" has an escape that JSON does not know'],
    ['{"a": "b\u0000"}', "1:9 text must not contain the character U+0000"],
    ["\u0000", "1:1 a value is missing before the character U+0000"],
    ['{"a": [1, 2}', '1:12 expected a comma or ], found "}"'],
    ['{"a": ', "1:7 a value is missing before the end of the file"],
    ['{"a": 1', "1:1 the object does not end"],
    ["{} {}", '1:4 "{" follows the end'],
    ["{} /* x", "1:4 the comment does not end"]
  ] as const) {
    it(`${JSON.stringify(text)}: ${expected}`, () => assert.deepStrictEqual(problems(text), [expected]))
  }

  it("goes on after a missing comma and a key that is there twice", () => {
    assert.strictEqual(problems('{"a": 1 "a": 2, "b": 3 "b": 4}').length, 4)
  })

  it("nesting without end is a problem, not a full stack", () => {
    assert.match(problems("[".repeat(1e6))[0]!, /nested deeper than 64/)
    assert.match(problems('{"a":'.repeat(1e6))[0]!, /nested deeper than 64/)
  })

  it("problems without end are cut", () => {
    assert.isBelow(Jsonc.read(`{${'"a": 1, '.repeat(10_000)}}`).problems.length, 60)
  })

  it("reads what jsonc-parser does not: where it did, that reader could take its place", () => {
    assert.throws(() => parseTree("[".repeat(1e6)), RangeError)
    const errors = (text: string) => {
      const found: Array<ParseError> = []
      parseTree(text, found, { allowTrailingComma: true })
      return found
    }
    assert.deepStrictEqual(errors('{"a": 1, "a": 2}'), [])
    assert.isAbove(errors("{a: 1}").length, 1)
    assert.isAbove(errors(`{${'"a": 1 '.repeat(10_000)}}`).length, 9_000)
  })
})
