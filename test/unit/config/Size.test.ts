/** Sizes as people write them. */
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { Size } from "../../../src/config/Size.ts"

const decode = (input: unknown) =>
  Result.match(Schema.decodeUnknownResult(Size)(input), {
    onSuccess: (size) => size,
    onFailure: (error) => error.message
  })

describe("Size", () => {
  for (const [text, size] of [
    ["4 GB", 4e9],
    ["512MB", 512e6],
    ["1.5 GiB", 1_610_612_736],
    [" 2  tb ", 2e12],
    ["1000 kB", 1e6],
    [5_000_000, 5e6]
  ] as const) {
    it(`${JSON.stringify(text)} is ${size} bytes`, () => assert.strictEqual(decode(text), size))
  }

  for (const [text, why] of [
    ["", /must be a size such as "4 GB"/],
    ["4", /must be a size/],
    ["-4 GB", /must be a size/],
    ["4 constructor", /must be a size/],
    ["1e3 MB", /must be a size/],
    ["10 kB", /at least 1 MB/],
    [0, /at least 1 MB/],
    [-1, /at least 1 MB/],
    ["2000 TB", /at most 1000 TB/]
  ] as const) {
    it(`${JSON.stringify(text)} is refused`, () => assert.match(String(decode(text)), why))
  }
})
