import { assert, describe, it } from "@effect/vitest"
import { RunOutput } from "../../../src/agents/run/RunOutput.ts"

const line = (text: string, stream: "stdout" | "stderr" = "stdout") => ({ _tag: "Delta", stream, text }) as const
const output = (maxBytesPerRun: number, tailLines = 2) =>
  new RunOutput("p-1", "worker/builder", "r1", { maxBytesPerRun, tailLines })
const texts = (runes: ReadonlyArray<{ readonly payload: { readonly [key: string]: unknown } }>) =>
  runes.map((rune) => rune.payload["text"])

describe("Output", () => {
  it("joins the lines of a chunk into one rune per source, in order", () => {
    const runes = output(1024).take([line("a"), line("b"), line("oops", "stderr"), line("c")])
    assert.deepStrictEqual(texts(runes), ["a\nb", "oops", "c"])
  })

  it("splits a long chunk into bounded runes and loses nothing", () => {
    const runes = output(1024 * 1024).take(Array.from({ length: 10 }, (_, i) => line(String(i).repeat(3000))))
    assert.isAbove(runes.length, 3)
    assert.strictEqual(texts(runes).join("\n").length, 10 * 3000 + 9)
  })

  it("keeps the beginning and the last lines of a flood, and says how much is missing", () => {
    const kept = output(10)
    const first = kept.take([line("12345"), line("67890"), line("x1"), line("x2"), line("x3")])
    assert.deepStrictEqual(texts(first), ["12345\n67890"])
    const [note, tail] = texts(kept.end())
    assert.match(String(note), /6 bytes of output above the limit of 10/)
    assert.strictEqual(tail, "x2\nx3")
  })

  it("has nothing to add when all was kept", () => {
    const kept = output(10)
    kept.take([line("123")])
    assert.deepStrictEqual(kept.end(), [])
  })
})
