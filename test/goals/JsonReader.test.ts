import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"
import { atOnce } from "../../src/domain/InTurns.ts"
import * as JsonReader from "../../src/goals/JsonReader.ts"

const MOST = { entries: 1_000, bytes: 100_000 }
const readAll = (text: string | Uint8Array, most = MOST): unknown =>
  atOnce(JsonReader.read(typeof text === "string" ? Buffer.from(text) : text, most))

/** The outcome of a reading: the value, or that there is none. */
const outcome = (read: () => unknown): unknown => {
  try {
    return { value: read() }
  } catch {
    return "refused"
  }
}

const TOKENS = [
  "{",
  "}",
  "[",
  "]",
  ",",
  ":",
  '"',
  "\\",
  " ",
  "\n",
  "1",
  "-",
  "true",
  "null",
  '"a"',
  '"é\\n"',
  "\u0001",
  "\uFEFF"
]

const numbers = Arbitrary.array(Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))), {
  maxLength: 60
})

const LEAVES = [null, true, 0, -1.5e9, "", "plain", 'quote"d\\', "é\u2028😀\n", [], {}]

/** A value that the numbers tell of. */
const valueOf = (picks: ReadonlyArray<number>): unknown => {
  const left = [...picks]
  const next = (depth: number): unknown => {
    const pick = left.pop() ?? 0
    if (depth > 4 || pick < 128) return LEAVES[pick % LEAVES.length]
    const entries = Array.from({ length: pick % 4 }, () => next(depth + 1))
    return pick % 8 < 4 ? entries : Object.fromEntries(entries.map((value, at) => [`${LEAVES[at + 4]}${at}`, value]))
  }
  return [next(0), next(0), next(0)]
}

describe("JsonReader", () => {
  it.effect.prop("reads every value as JSON.parse does, whatever white space is between", [numbers], ([picks]) =>
    Effect.sync(() => {
      const value = valueOf(picks)
      for (const space of [undefined, 1, "\r\n\t "]) {
        for (const text of [JSON.stringify(value, undefined, space), JSON.stringify({ value }, undefined, space)]) {
          assert.deepStrictEqual(readAll(text), JSON.parse(text))
        }
      }
    })
  )

  it.effect.prop("takes and refuses what JSON.parse takes and refuses", [numbers], ([picks]) =>
    Effect.sync(() => {
      // among three small lists, so that a good part of them is JSON
      const tokens = picks.slice(0, 12).map((pick) => TOKENS[pick % TOKENS.length]!)
      const values = tokens.filter((token) => /^[\w"-]/u.test(token)).join(",")
      for (const text of [tokens.join(""), `[${tokens.join("")}]`, `{"a":${tokens.join("")}}`, `[${values}]`]) {
        assert.deepStrictEqual(
          outcome(() => readAll(text)),
          // the mark at the beginning is the reader's own affair
          outcome(() => JSON.parse(text.replace(/^\uFEFF/u, "")) as unknown),
          JSON.stringify(text)
        )
      }
    })
  )

  it("the awkward ones: twice the same key, a key that objects have, nothing, and what ends too soon", () => {
    for (const text of [
      '{"a":1,"b":2,"a":3}',
      '{"__proto__":{"x":1},"constructor":[]}',
      '[[["deep"]],{"a":{"b":[1,{"c":2}]}}]',
      '{"a\\u0022}":"\\\\"}',
      "",
      " ",
      "{",
      "[",
      '["',
      '{"a"',
      '{"a":',
      "[1,",
      "[1,]",
      '{"a":1,}',
      '{"a":1 "b":2}',
      "[1 2]",
      "[]]",
      '{"a":tru}',
      "{1:2}",
      "01",
      "-0",
      '["\\"]'
    ]) {
      assert.deepStrictEqual(
        outcome(() => readAll(text)),
        outcome(() => JSON.parse(text) as unknown),
        text
      )
    }
  })

  it("says where it ends, and of what is too long or too much makes nothing", () => {
    const refusal = (text: string | Uint8Array, most = MOST): string => {
      try {
        readAll(text, most)
        return "taken"
      } catch (error) {
        assert.instanceOf(error, JsonReader.NotRead)
        return error.message
      }
    }
    assert.strictEqual(refusal('{"tasks":[1 2]}'), "unexpected '2' at position 12")
    assert.match(refusal('{"tasks":[{"id":tru}]}'), /^Unexpected token .*, in what begins at position 10$/su)
    assert.strictEqual(refusal('{"tasks":['), "unexpected end of JSON input")
    assert.strictEqual(refusal(Buffer.from([0x22, 0xff, 0x22])), JsonReader.NOT_UTF8)
    const few = { entries: 3, bytes: 10 }
    assert.strictEqual(refusal("[1,2,3,4]", few), "a list of more than 3 entries")
    for (const long of [`["${"x".repeat(11)}"]`, `[[[${"1,".repeat(9)}1]]]`, `[${"1".repeat(11)},2]`]) {
      assert.match(refusal(long, few), /is longer than 10 bytes$/u, long)
    }
    assert.strictEqual(refusal(`[${" ".repeat(11)}]`, few), "nothing but white space from position 1 on")
    assert.strictEqual(refusal("[1,2,3]", few), "taken")
  })

  it("no step is longer than an entry", () => {
    const entry = { id: "a", title: "x".repeat(500) }
    const steps = JsonReader.read(
      Buffer.from(JSON.stringify({ tasks: Array.from({ length: 100 }, () => entry) })),
      MOST
    )
    let count = 0
    while (steps.next().done !== true) count++
    assert.isAtLeast(count, 100)
  })
})
