import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as LineSplitter from "../../src/backends/process/LineSplitter.ts"

const bytes = (text: string) => new TextEncoder().encode(text)

/** All lines, with the text cut into chunks of so many bytes. */
const split = (input: Uint8Array, size: number, limit = 1000) => {
  const splitter = LineSplitter.make(limit)
  const lines: Array<string> = []
  for (let at = 0; at < input.length; at += size) lines.push(...splitter.push(input.subarray(at, at + size)))
  return [...lines, ...splitter.end()]
}

describe("LineSplitter", () => {
  it.effect.prop(
    "however the bytes are cut, the lines are the same",
    [Schema.String, Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 7 }))],
    ([text, size]) => {
      const clean = text
        .replaceAll("\r", "")
        .replace(/^\uFEFF/, "")
        .toWellFormed()
      const expected = clean.split("\n")
      if (expected.at(-1) === "") expected.pop()
      assert.deepStrictEqual(split(bytes(clean), size), expected)
      return Effect.void
    }
  )

  it("a line comes as soon as it is whole, not later", () => {
    const splitter = LineSplitter.make(100)
    assert.deepStrictEqual(splitter.push(bytes("one\ntw")), ["one"])
    assert.deepStrictEqual(splitter.push(bytes("o\r\n")), ["two"])
    assert.deepStrictEqual(splitter.end(), [])
  })

  it("a character cut in two is put together again", () => {
    assert.deepStrictEqual(split(bytes("grün 🌲\n"), 1), ["grün 🌲"])
  })

  it("bytes that are no UTF-8 fail nothing", () => {
    assert.deepStrictEqual(split(Uint8Array.of(0x61, 0xff, 0x62, 0x0a, 0xe2, 0x82), 2), ["a\uFFFDb", "\uFFFD"])
  })

  it("a line beyond the limit comes in marked pieces, without waiting for its end", () => {
    const splitter = LineSplitter.make(4)
    assert.deepStrictEqual(splitter.push(bytes("abcdefghij")), [
      `abcd${LineSplitter.CONTINUED}`,
      `efgh${LineSplitter.CONTINUED}`
    ])
    assert.deepStrictEqual(splitter.push(bytes("k\nok\n")), ["ijk", "ok"])
  })

  it("a line of exactly the limit is whole", () => {
    assert.deepStrictEqual(split(bytes("abcd\nabcde\n"), 3, 4), ["abcd", `abcd${LineSplitter.CONTINUED}`, "e"])
  })

  it("no piece cuts a surrogate pair", () => {
    assert.deepStrictEqual(split(bytes("abc🌲d\n"), 100, 4), [`abc${LineSplitter.CONTINUED}`, "🌲d"])
  })
})
