import { Arbitrary, Schema } from "effect"
import { assert, describe, expect, it } from "@effect/vitest"
import { lookalikes, read, visible } from "../../../src/domain/VisibleText.ts"

const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u

describe("visible", () => {
  it("shows every character of Unicode as itself or as a mark that can be read back", () => {
    for (let code = 0; code < 0x110000; code++) {
      const character = String.fromCodePoint(code)
      const shown = visible(`a${character}b`)
      if (read(shown) !== `a${character}b`) assert.fail(`${code.toString(16)} cannot be read back`)
      if (shown === `a${character}b` && code !== 10 && HIDDEN.test(character))
        assert.fail(`${code.toString(16)} is hidden`)
    }
  })

  it.each([
    0x1b, 0x9b, 0x7, 0x8, 0x7f, 0x85, 0xa0, 0xad, 0x34f, 0x61c, 0x115f, 0x1160, 0x17b4, 0x180e, 0x2000, 0x200b, 0x200d,
    0x200e, 0x2028, 0x202e, 0x2060, 0x2066, 0x2800, 0x3000, 0x3164, 0xfe0f, 0xfeff, 0xffa0, 0xfff9, 0xe0041, 0xe0100,
    0xf0000, 0x1d159
  ])("marks %i", (code) => expect(visible(String.fromCodePoint(code))).toBe(`\\u{${code.toString(16)}}`))

  const bits = [
    ..."\\\\\\u{}20 at",
    " ".repeat(9),
    "\t",
    "\r",
    "\n",
    "\u0301",
    "\u202e",
    "\\u{202e}",
    "\u{1f468}\u200d",
    "\ud800",
    "é"
  ]
  it.prop(
    "can be read back, whatever the text",
    [
      Arbitrary.array(
        Arbitrary.map(Arbitrary.schema(Schema.Int), (at) => bits[Math.abs(at) % bits.length]!),
        { maxLength: 14 }
      )
    ],
    ([parts]) => {
      const text = parts.join("")
      assert.strictEqual(read(visible(text)), text)
    },
    { arbitrary: { runs: 5_000, seed: 7 } }
  )

  it.each([
    "git status --short",
    `printf "%s\\n" "$x" | sed -e 's/\\./-/g'`,
    "echo Grüße, 你好, привет, שלום 👍",
    "a\nb"
  ])("leaves %j as it is", (text) => expect(visible(text)).toBe(text))

  it("keeps stacked accents on their line, and rows of spaces from pushing", () => {
    expect(visible(`a${"\u0301".repeat(50)}`).match(/\\u\{301\}/g)?.length).toBe(48)
    expect(visible(`a${" ".repeat(5000)}b`)).toBe(`a${" ".repeat(8)}\\u{20}{4992}b`)
  })
})

it("words that may be read as others are named", () => {
  expect(lookalikes("curl https://раypal.com ｒｍ 𝐫𝐦 привет Ελλάδα naïve")).toEqual(["раypal", "ｒｍ", "𝐫𝐦"])
})
