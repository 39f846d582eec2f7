/** Lengths of time as people write them. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Result, Schema } from "effect"
import { Span } from "../../../src/config/Span.ts"

const decode = (input: unknown) =>
  Result.match(Schema.decodeUnknownResult(Span)(input), {
    onSuccess: (span) => Duration.toMillis(span),
    onFailure: (error) => error.message
  })

describe("Span", () => {
  for (const [text, millis] of [
    ["30 seconds", 30_000],
    ["1 second", 1000],
    ["2s", 2000],
    ["1.5 minutes", 90_000],
    ["500ms", 500],
    [" 2  H ", 7_200_000],
    ["1 day", 86_400_000],
    ["0s", 0],
    [250, 250],
    [0, 0]
  ] as const) {
    it(`${JSON.stringify(text)} is ${millis} ms`, () => assert.strictEqual(decode(text), millis))
  }

  for (const [text, why] of [
    ["", /must be a length of time/],
    ["30", /must be a length of time/],
    ["3 fortnights", /must be a length of time/],
    ["1 constructor", /must be a length of time/],
    ["1e3 ms", /must be a length of time/],
    ["-1 second", /must not be negative/],
    [-1, /must not be negative/],
    ["366 days", /at most 365 days/],
    ["Infinity", /must be a length of time/]
  ] as const) {
    it(`${JSON.stringify(text)} is refused`, () => assert.match(String(decode(text)), why))
  }
})
