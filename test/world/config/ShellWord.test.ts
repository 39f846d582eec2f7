/** A quoted text is one word with these very characters, by a real shell. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { quoted, shellWord } from "../../../src/config/ShellWord.ts"

const TEXTS = [
  "plain",
  "a b",
  "it's",
  "'",
  "''",
  "$HOME `id` $(id)",
  "\\",
  "\\'",
  '"',
  "line\nline",
  "*",
  "~",
  "é ü",
  "-n"
]
const words = (line: string) => execFileSync("sh", ["-c", `printf '%s\\0' ${line}`], { encoding: "utf8" }).split("\0")

describe("a word of a shell", () => {
  for (const [name, write] of [
    ["quoted", quoted],
    ["in quotes if it needs them", shellWord]
  ] as const)
    it(`${name}: a shell reads the text that was written`, () => {
      assert.deepStrictEqual(words(["", ...TEXTS].map(write).join(" ")).slice(0, -1), ["", ...TEXTS])
    })

  it("stands without quotes where a person would write none", () => {
    for (const text of ["shop/builder", "--state", "/var/lib/agentd", "a@b", "50%", "x=1", "a:b,c"])
      assert.strictEqual(shellWord(text), text)
  })
})
