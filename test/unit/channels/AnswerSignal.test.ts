import { assert, describe, it } from "@effect/vitest"
import { read } from "../../../src/channels/AnswerSignal.ts"

const now = Date.parse("2026-11-20T09:00:00Z")
const wait = (reason: string, until: "message" | "person" | number) => ({ _tag: "Wait", reason, until })

describe("Signal", () => {
  it("TURN_COMPLETE on a last line of its own ends the turn, and is no part of the text", () => {
    assert.deepStrictEqual(read("Done.\n\nTURN_COMPLETE\n", now), { signal: { _tag: "TurnComplete" }, text: "Done." })
    assert.deepStrictEqual(read("TURN_COMPLETE", now), { signal: { _tag: "TurnComplete" }, text: "" })
    assert.deepStrictEqual(read("I will say TURN_COMPLETE", now), { signal: null, text: "I will say TURN_COMPLETE" })
  })

  it.each([
    ["WAIT: for the build, until 120s", wait("the build", 120)],
    ["WAIT: for the build until 120 seconds", wait("the build", 120)],
    ["WAIT: for the build until in 5s", wait("the build", 5)],
    ["WAIT: for your decision, until person", wait("your decision", "person")],
    ["WAIT: for dev's answer until message.", wait("dev's answer", "message")],
    ["WAIT: for the release, until 2026-11-20T09:10:00Z", wait("the release", 600)],
    ["WAIT: for the release, until 2020-01-01T00:00:00Z", wait("the release", 1)],
    ["WAIT: for dev", wait("dev", "message")],
    ["WAIT: for the moon, until 999999s", wait("the moon", 86_400)],
    ["WAIT: until the cows come home", wait("until the cows come home", "message")],
    ["WAIT:", wait("news", "message")]
  ])("%s", (line, signal) => {
    assert.deepStrictEqual(read(`I have begun.\n${line}\n`, now), { signal, text: "I have begun." } as never)
  })

  it("a WAIT that is not the last line, or within one, is text", () => {
    for (const text of ["WAIT: for dev\nand more", "please WAIT: for dev"]) {
      assert.deepStrictEqual(read(text, now), { signal: null, text })
    }
  })

  it("takes time in proportion to a long answer", () => {
    const long = `${"WAIT: until ".repeat(50_000)}\n${" \n".repeat(50_000)}x`
    assert.strictEqual(read(long, now).signal, null)
  })
})
