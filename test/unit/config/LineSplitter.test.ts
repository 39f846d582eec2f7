import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { CONTINUED, type Line, LineSplitter, MessageLines } from "../../../src/config/LineSplitter.ts"

const bytes = (text: string) => new TextEncoder().encode(text)

const texts = (lines: ReadonlyArray<Line>) => lines.map(({ text }) => text)

/** All lines, with the text cut into chunks of so many bytes. */
const split = (input: Uint8Array, size: number, limit = 1000) => {
  const splitter = new LineSplitter(limit)
  const lines: Array<string> = []
  for (let at = 0; at < input.length; at += size) lines.push(...texts(splitter.push(input.subarray(at, at + size))))
  return [...lines, ...texts(splitter.end())]
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
    const splitter = new LineSplitter(100)
    assert.deepStrictEqual(texts(splitter.push(bytes("one\ntw"))), ["one"])
    assert.deepStrictEqual(texts(splitter.push(bytes("o\r\n"))), ["two"])
    assert.deepStrictEqual(texts(splitter.end()), [])
  })

  it("a character cut in two is put together again", () => {
    assert.deepStrictEqual(split(bytes("grün 🌲\n"), 1), ["grün 🌲"])
  })

  it("bytes that are no UTF-8 fail nothing", () => {
    assert.deepStrictEqual(split(Uint8Array.of(0x61, 0xff, 0x62, 0x0a, 0xe2, 0x82), 2), ["a\uFFFDb", "\uFFFD"])
  })

  it("a line beyond the limit comes in marked pieces, without waiting for its end", () => {
    const splitter = new LineSplitter(4)
    assert.deepStrictEqual(texts(splitter.push(bytes("abcdefghij"))), [`abcd${CONTINUED}`, `efgh${CONTINUED}`])
    assert.deepStrictEqual(texts(splitter.push(bytes("k\nok\n"))), ["ijk", "ok"])
  })

  it("a line of exactly the limit is whole", () => {
    assert.deepStrictEqual(split(bytes("abcd\nabcde\n"), 3, 4), ["abcd", `abcd${CONTINUED}`, "e"])
  })

  it("no piece cuts a surrogate pair", () => {
    assert.deepStrictEqual(split(bytes("abc🌲d\n"), 100, 4), [`abc${CONTINUED}`, "🌲d"])
  })

  it.effect.prop(
    "a line's place is where it ends, however the bytes are cut; pieces of a long one rise to it",
    [Schema.String, Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 7 }))],
    ([text, size]) => {
      const input = bytes(`${text.toWellFormed()}\nlong ${"grün".repeat(9)}\nlast`)
      const all = (size: number) => {
        const splitter = new LineSplitter(8)
        const lines: Array<Line> = []
        for (let at = 0; at < input.length; at += size) lines.push(...splitter.push(input.subarray(at, at + size)))
        return [...lines, ...splitter.end()]
      }
      const lines = all(size)
      assert.deepStrictEqual(lines, all(input.length))
      const whole = lines.filter(({ text }) => !text.endsWith(CONTINUED)).map(({ end }) => end)
      const ends = [...input.entries()].flatMap(([at, byte]) => (byte === 10 ? [at + 1] : []))
      assert.deepStrictEqual(whole, [...ends, input.length])
      for (const [at, { end }] of lines.entries()) assert.isAbove(end, lines[at - 1]?.end ?? -1)
      return Effect.void
    }
  )
})

describe("MessageLines", () => {
  const messages = (input: Uint8Array, size: number) => {
    const lines = new MessageLines(4)
    const found: Array<string | undefined> = []
    for (let at = 0; at < input.length; at += size) found.push(...lines.push(input.subarray(at, at + size)))
    return [...found, ...lines.end()]
  }

  for (const size of [1, 2, 3, 100]) {
    it(`a line that is too long is left out, once, in chunks of ${size}`, () => {
      const input = bytes("ok\nabcdefghijkl\n🌲🌲\n🌲🌲🌲\nabcd\r\nlast too long")
      assert.deepStrictEqual(messages(input, size), ["ok", undefined, "🌲🌲", undefined, "abcd", undefined])
    })
  }

  it("a line without an end is told as too long before it ends, and keeps nothing", () => {
    const lines = new MessageLines(4)
    assert.deepStrictEqual(lines.push(bytes("abcdef")), [undefined])
    for (let n = 0; n < 1000; n++) assert.deepStrictEqual(lines.push(bytes("abcdef")), [])
    assert.deepStrictEqual(lines.push(bytes("\nnext\n")), ["next"])
  })

  it("a line that ends like the mark of a piece is whole", () => {
    assert.deepStrictEqual(messages(bytes(`a${CONTINUED}\n`), 1), [`a${CONTINUED}`])
  })
})
