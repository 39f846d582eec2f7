/** When a person is told that the disk is about to be full. */
import { assert, describe, it } from "@effect/vitest"
import { isShort, lasts } from "../../../src/board/DiskRoom.ts"

const GB = 1_000_000_000

describe("the log's disk", () => {
  it("is short with room for less than a week, and with hardly any", () => {
    assert.isTrue(isShort({ free: 6 * GB, perDay: GB }))
    assert.isFalse(isShort({ free: 8 * GB, perDay: GB }))
    assert.isTrue(isShort({ free: 0.9 * GB, perDay: null }))
    assert.isTrue(isShort({ free: 0 }))
    assert.isFalse(isShort({ free: 2 * GB, perDay: 0 }))
  })

  it("nothing is said of what is not known: an older daemon, a disk that does not tell", () => {
    assert.isFalse(isShort({}))
    assert.isFalse(isShort({ free: null, perDay: GB }))
    assert.isUndefined(lasts({ free: GB }))
  })

  it("how long it lasts, in days, at the end in hours", () => {
    assert.strictEqual(lasts({ free: 10 * GB, perDay: GB }), "for 10 days")
    assert.strictEqual(lasts({ free: GB, perDay: GB }), "for 24 hours")
    assert.isUndefined(lasts({ free: 100 * GB, perDay: 1_000 }))
  })
})
