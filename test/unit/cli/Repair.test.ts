/** The sentences of a repair about its losses. */
import { assert, describe, it } from "@effect/vitest"
import { rules } from "../../../src/app/DaemonLog.ts"
import { linesOf, Losses } from "../../../src/cli/daemon/Repair.ts"
import type { Cut } from "../../../src/core/event-log/Cuts.ts"

const linesFor = (cut: Cut): ReadonlyArray<string> =>
  linesOf({ cuts: new Map([[cut.stream, cut]]), behind: undefined, blanked: [], unknown: 0 }, new Losses())

describe("what a repair says", () => {
  it("a conversation goes on from its last good rune", () => {
    assert.deepStrictEqual(linesFor({ stream: "shop-1", eventId: 9, seq: 4, lost: 1, reason: "rune 10: torn" }), [
      "shop-1: rune 10: torn. It continues after its rune 4 (rune 9 of the log); 1 rune of this stream is lost: 0 messages, 0 turns."
    ])
    assert.deepStrictEqual(linesFor({ stream: "shop-1", eventId: 0, seq: 0, lost: 3, reason: "rune 1: torn" }), [
      "shop-1: rune 1: torn. No rune of it is left; 3 runes of this stream are lost: 0 messages, 0 turns."
    ])
  })

  it("of the daemon's own stream only the damaged runes are lost", () => {
    assert.deepStrictEqual(linesFor({ stream: rules.home, eventId: 9, seq: 4, lost: 1, reason: "rune 10: torn" }), [
      `${rules.home}: rune 10: torn. 1 rune of this stream is lost; all others are kept.`
    ])
  })
})
