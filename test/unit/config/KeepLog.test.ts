/** How much of the log is kept, as people write it. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Result, Schema } from "effect"
import { boundsOf, KeepLog } from "../../../src/config/KeepLog.ts"

const decode = (input: unknown) =>
  Result.match(Schema.decodeUnknownResult(KeepLog)(input), {
    onSuccess: (kept) => kept,
    onFailure: (error) => error.message
  })

describe("KeepLog", () => {
  it("a time, or a size; what was written is kept", () => {
    assert.deepStrictEqual(decode("90 days"), { text: "90 days", time: Duration.days(90), bytes: null })
    assert.deepStrictEqual(decode("20 GB"), { text: "20 GB", time: null, bytes: 20e9 })
    assert.deepStrictEqual(decode("1.5GiB"), { text: "1.5GiB", time: null, bytes: 1_610_612_736 })
    assert.deepStrictEqual(decode("2h"), { text: "2h", time: Duration.hours(2), bytes: null })
  })

  for (const text of ["", "90", "forever", "-1 days", "1 kB", "90 days 20 GB", 90, null]) {
    it(`refuses ${JSON.stringify(text)}`, () => assert.isString(decode(text)))
  }

  it("says the right form", () => {
    assert.match(decode("some") as string, /a length of time such as "90 days", or a size such as "20 GB"/)
  })

  it("bounds: what is older than the time; what is beyond the size, the store counted", () => {
    const kept = { text: "", time: null, bytes: null }
    assert.deepStrictEqual(boundsOf({ ...kept, time: Duration.seconds(5) }, 9_000, 1), {
      before: 4_000,
      keepBytes: Number.MAX_SAFE_INTEGER
    })
    assert.deepStrictEqual(boundsOf({ ...kept, bytes: 100 }, 9_000, 30), { before: 0, keepBytes: 70 })
    assert.deepStrictEqual(boundsOf({ ...kept, bytes: 100 }, 9_000, 130), { before: 0, keepBytes: 0 })
  })
})
