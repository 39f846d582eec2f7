/** Edits of JSON with comments: what is not edited stays as it is, for any text, and the value is the one that was meant. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as Jsonc from "../../../src/config/Jsonc.ts"
import { append, remove } from "../../../src/config/JsoncEdit.ts"

const RULES = ["agents", "a", "approvals", "rules"]
const WRITTEN = `{
  // the project
  "agents": {
    "a": {
      "approvals": {
        "rules": [
          // tests
          { "allow": "npm test **" }, // by Ann
          /* no */ { "deny": "git push" },
          { "ask": "make x" } // by Bob
          // more to come
        ]
      }
    }
  }
}
`

/** A value as people write it: each entry on its line, with comments everywhere, with or without trailing commas. */
const laidOut = (value: unknown, { newline, trailing }: { newline: string; trailing: boolean }, depth = 0): string => {
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  const isList = Array.isArray(value)
  const entries = Object.entries(value)
  if (entries.length % 3 === 2) return JSON.stringify(value)
  const margin = newline + "\t".repeat(depth + 1)
  const lines = entries.map(([key, one], index) => {
    const comma = trailing || index < entries.length - 1 ? "," : ""
    const name = isList ? "" : `${JSON.stringify(key)}: /* k */`
    return `${margin}// before ${index}${margin}${name}${laidOut(one, { newline, trailing }, depth + 1)}${index % 2 === 0 ? `${comma} // behind ${index}` : ` /* behind ${index} */ ${comma}`}`
  })
  return `${isList ? "[" : "{"}${lines.join("")}${newline}${"\t".repeat(depth)}${isList ? "]" : "}"}`
}

const valueOf = (text: string | undefined): unknown => {
  const { problems, root } = Jsonc.read(text ?? "")
  assert.deepStrictEqual(problems, [], text)
  return root!.value
}

const commentsOf = (text: string): ReadonlyArray<string> => text.match(/\/\/ \w+ \d+|\/\* .*? \*\//g) ?? []

const styles = [
  { newline: "\n", trailing: true },
  { newline: "\n", trailing: false },
  { newline: "\r\n", trailing: true },
  { newline: "\r\n", trailing: false }
]

const Documents = Schema.Record(Schema.String, Schema.Union([Schema.Array(Schema.Json), Schema.Json]))

describe("JsoncEdit", () => {
  it("a new entry follows the last one, in its style, and the comments stay where they are", () => {
    assert.strictEqual(
      append(WRITTEN, RULES, { allow: { write: "build/**" } }),
      WRITTEN.replace(
        '{ "ask": "make x" } // by Bob\n',
        '{ "ask": "make x" }, // by Bob\n          { "allow": { "write": "build/**" } }\n'
      )
    )
    const trailing = WRITTEN.replace('{ "ask": "make x" } //', '{ "ask": "make x" }, //')
    assert.strictEqual(
      append(trailing, RULES, { allow: "x" }),
      trailing.replace("// by Bob\n", '// by Bob\n          { "allow": "x" },\n')
    )
  })

  for (const [text, expected] of [
    ["{}", '{\n  "approvals": {\n    "rules": [\n      { "allow": "x" }\n    ]\n  }\n}'],
    [
      '{\n\t"agents": {} // none\n}\n',
      '{\n\t"agents": {}, // none\n\t"approvals": {\n\t\t"rules": [\n\t\t\t{ "allow": "x" }\n\t\t]\n\t}\n}\n'
    ],
    [
      '{\n  "approvals": {\n    // to come\n  },\n}\n',
      '{\n  "approvals": {\n    // to come\n    "rules": [\n      { "allow": "x" }\n    ]\n  },\n}\n'
    ],
    [
      '{ "approvals": { "rules": [{ "ask": "y" }] } }',
      '{ "approvals": { "rules": [{ "ask": "y" }, { "allow": "x" }] } }'
    ],
    ['\uFEFF{ "approvals": { "rules": [] } }', '\uFEFF{ "approvals": { "rules": [\n  { "allow": "x" }\n] } }']
  ] as const) {
    it(`adds what is missing: ${JSON.stringify(text)}`, () =>
      assert.strictEqual(append(text, ["approvals", "rules"], { allow: "x" }), expected))
  }

  for (const [index, from, to] of [
    [0, '          { "allow": "npm test **" }, // by Ann\n', ""],
    [1, '/* no */ { "deny": "git push" },\n', "/* no */ \n"],
    [2, '{ "deny": "git push" },\n          { "ask": "make x" } // by Bob\n', '{ "deny": "git push" }\n']
  ] as const) {
    it(`removes entry ${index} with the comment behind it, and no other comment`, () => {
      assert.strictEqual(remove(WRITTEN, [...RULES, index]), WRITTEN.replace(from, to))
    })
  }

  it("a list that gets empty is written without a gap; one with a comment keeps it", () => {
    assert.strictEqual(remove('{\n  "a": [\n    1,\n  ],\n}', ["a", 0]), '{\n  "a": [],\n}')
    assert.strictEqual(remove('{\n  "a": [\n    // one\n    1\n  ]\n}', ["a", 0]), '{\n  "a": [\n    // one\n  ]\n}')
    assert.strictEqual(remove('{ "a": [1, 2], "b": 3 }', ["a", 1]), '{ "a": [1], "b": 3 }')
    assert.strictEqual(remove('{ "a": [1, 2], "b": 3 }', ["b"]), '{ "a": [1, 2] }')
    assert.strictEqual(remove('{ "a": [ // one\n 1 ] }', ["a", 0]), '{ "a": [ // one\n ] }')
  })

  it("says when it cannot edit: a broken text, a value of another kind on the way, nothing at the path", () => {
    for (const text of ["", "{", '{ "a": 1 "b": 2 }', '{ "a": 1 }', '{ "a": { "b": {} } }', "[]"])
      assert.isUndefined(append(text, ["a", "b"], 1), text)
    for (const path of [[], ["b"], ["a", 1], ["a", "x"], ["a", 0, "x"]])
      assert.isUndefined(remove('{ "a": [0] }', path))
  })

  it.prop("an added entry is the only difference, whatever the text", [Documents, Schema.Json], ([document, value]) => {
    for (const style of styles) {
      const text = laidOut(document, style)
      for (const [key, list] of Object.entries(document).filter(([, one]) => Array.isArray(one))) {
        const next = append(text, [key], value)
        assert.deepStrictEqual(
          valueOf(next),
          JSON.parse(JSON.stringify({ ...document, [key]: [...(list as []), value] }))
        )
        assert.deepStrictEqual(commentsOf(next!), commentsOf(text))
        if (text.includes("\r\n")) assert.notMatch(next!, /[^\r]\n/)
      }
    }
  })

  it.prop("a removed entry is the only difference, whatever the text", [Documents], ([document]) => {
    for (const style of styles) {
      const text = laidOut(document, style)
      for (const [key, list] of Object.entries(document)) {
        const { [key]: _, ...rest } = document
        assert.deepStrictEqual(valueOf(remove(text, [key])), JSON.parse(JSON.stringify(rest)))
        for (const index of Array.isArray(list) ? list.keys() : []) {
          const next = remove(text, [key, index])
          assert.deepStrictEqual(
            valueOf(next),
            JSON.parse(JSON.stringify({ ...document, [key]: (list as []).toSpliced(index, 1) }))
          )
          if (text.includes("\r\n")) assert.notMatch(next!, /[^\r]\n/)
        }
      }
    }
  })
})
