/** Times that are due: whatever the clock does, each time is settled once, in order, and none is left. */
import { assert, describe, it } from "@effect/vitest"
import * as CronTimes from "../../../src/config/CronTimes.ts"
import { CATCH_UPS } from "../../../src/config/ScheduleConfig.ts"
import { dueOf, GRACE, isFarAhead, MAX_MISSED, onceAt } from "../../../src/schedules/DueTimes.ts"
import { dice } from "../../support/Dice.ts"

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const hourly = CronTimes.of("0 * * * *", "UTC")
const at = (hour: number, minutes = 0) => Date.UTC(2026, 5, 1, hour, minutes)

describe("what is due", () => {
  it("nothing before its time", () => {
    assert.deepStrictEqual(dueOf(hourly, "once", { upTo: at(1), now: at(1, 59) }), { _tag: "Wait", until: at(2) })
  })

  it.each(CATCH_UPS)("its time, with %s, also a little later", (catchUp) => {
    for (const now of [at(2), at(2) + GRACE])
      assert.deepStrictEqual(dueOf(hourly, catchUp, { upTo: at(1), now }), { _tag: "Now", due: at(2) })
  })

  it("once: all but the last are passed over; all: each; none: those that are late", () => {
    const of = { upTo: at(1), now: at(6, 30) }
    assert.deepStrictEqual(dueOf(hourly, "once", of), { _tag: "Missed", due: at(5), count: 4 })
    assert.deepStrictEqual(dueOf(hourly, "once", { ...of, upTo: at(5) }), { _tag: "Now", due: at(6) })
    assert.deepStrictEqual(dueOf(hourly, "all", of), { _tag: "Now", due: at(2) })
    assert.deepStrictEqual(dueOf(hourly, "none", of), { _tag: "Missed", due: at(5), count: 4 })
    assert.deepStrictEqual(dueOf(hourly, "none", { ...of, upTo: at(5) }), { _tag: "Missed", due: at(6), count: 1 })
    assert.deepStrictEqual(dueOf(hourly, "none", { upTo: at(5), now: at(6, 1) }), { _tag: "Now", due: at(6) })
  })

  it("all: of very many the newest hundred", () => {
    const of = { upTo: at(0), now: at(0) + 1_000 * HOUR }
    const due = dueOf(hourly, "all", of)
    assert.deepStrictEqual(due, { _tag: "Missed", due: at(900), count: MAX_MISSED })
    let upTo = at(900)
    for (let count = 0; ; count++) {
      const next = dueOf(hourly, "all", { ...of, upTo })
      if (next._tag === "Wait") return assert.strictEqual(count, MAX_MISSED)
      assert.strictEqual(next._tag, "Now")
      upTo = next.due!
    }
  })

  it("one time is due once", () => {
    const times = onceAt(at(3))
    assert.deepStrictEqual(dueOf(times, "once", { upTo: at(1), now: at(2) }), { _tag: "Wait", until: at(3) })
    assert.deepStrictEqual(dueOf(times, "once", { upTo: at(1), now: at(30) }), { _tag: "Now", due: at(3) })
    assert.deepStrictEqual(dueOf(times, "none", { upTo: at(1), now: at(30) }), { _tag: "Missed", due: at(3), count: 1 })
    assert.deepStrictEqual(dueOf(times, "once", { upTo: at(3), now: at(30) }), { _tag: "Wait", until: undefined })
  })
})

describe("times that are settled ahead of now", () => {
  const DAY = 24 * HOUR
  it.each([
    ["* * * * *", 3 * MINUTE, false],
    ["* * * * *", DAY, false],
    ["* * * * *", DAY + 1, true],
    ["0 * * * *", DAY, false],
    ["0 * * * *", DAY + HOUR, true],
    ["0 9 * * *", 2 * DAY, false],
    ["0 9 * * *", 2 * DAY + 1, true],
    ["0 9 * * 1", 14 * DAY, false],
    ["0 9 * * 1", 15 * DAY, true],
    ["0 9 1 1 *", 30 * DAY, false],
    ["0 9 1 1 *", 800 * DAY, true]
  ] as const)("by %s: %d ms, settled by a wrong clock: %s", (cron, ahead, isWrong) => {
    assert.strictEqual(isFarAhead(CronTimes.of(cron, "UTC"), at(2) + ahead, at(2)), isWrong)
  })
})

describe("a clock that is set at will", () => {
  it.each(CATCH_UPS)("settles each time once, in order, with %s", (catchUp) => {
    const roll = dice(20_261_126)
    const times = CronTimes.of("*/20 * * * *", "Europe/Berlin")
    for (let life = 0; life < (catchUp === "all" ? 2 : 4); life++) {
      let now = Date.UTC(2026, 9, 24, 12)
      let upTo = now
      const ran: Array<number> = []
      let settled = 0
      for (let step = 0; step < 40; step++) {
        now += (roll(8) === 0 ? roll(48) - 24 : roll(3)) * HOUR + roll(60) * MINUTE
        for (;;) {
          const due = dueOf(times, catchUp, { upTo, now })
          if (due._tag === "Wait") break
          assert.isAbove(due.due, upTo)
          assert.isAtMost(due.due, now)
          settled += due._tag === "Missed" ? due.count : 1
          if (due._tag === "Now") ran.push(due.due)
          upTo = due.due
        }
      }
      assert.deepStrictEqual(
        [...new Set(ran)].toSorted((a, b) => a - b),
        ran
      )
      let all = 0
      for (let due = times.next(Date.UTC(2026, 9, 24, 12))!; due <= upTo; due = times.next(due)!) all += 1
      // counts end at a hundred
      if (settled !== all) assert.isAbove(all, MAX_MISSED)
      if (catchUp === "all" && all <= MAX_MISSED) assert.strictEqual(ran.length, all)
    }
  })
})
