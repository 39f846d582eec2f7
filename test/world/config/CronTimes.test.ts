/** Cron's times over changes of the clock, in both hemispheres: and over a year. */
import { assert, describe, it } from "@effect/vitest"
import * as CronTimes from "../../../src/config/CronTimes.ts"

const MINUTE = 60_000
const DAY = 86_400_000

const timesOf = (cron: string, zone: string, from: string, count: number): ReadonlyArray<string> => {
  const { next } = CronTimes.of(cron, zone)
  const all: Array<string> = []
  for (let at = Date.parse(from); all.length < count;) {
    at = next(at)!
    all.push(new Date(at).toISOString().replace(":00.000Z", "Z"))
  }
  return all
}

describe("a daily time", () => {
  it.each([
    // Berlin goes from 2:00 to 3:00 on 29 March: there is no 2:30
    [
      "Europe/Berlin",
      "30 2 * * *",
      "2026-03-27T12:00Z",
      ["2026-03-28T01:30Z", "2026-03-29T01:30Z", "2026-03-30T00:30Z"]
    ],
    // and from 3:00 to 2:00 on 25 October: there are two
    [
      "Europe/Berlin",
      "30 2 * * *",
      "2026-10-23T12:00Z",
      ["2026-10-24T00:30Z", "2026-10-25T00:30Z", "2026-10-26T01:30Z"]
    ],
    // Sydney, ahead on 4 October, back on 5 April
    [
      "Australia/Sydney",
      "30 2 * * *",
      "2026-10-02T12:00Z",
      ["2026-10-02T16:30Z", "2026-10-03T16:30Z", "2026-10-04T15:30Z"]
    ],
    [
      "Australia/Sydney",
      "30 2 * * *",
      "2026-04-03T00:00Z",
      ["2026-04-03T15:30Z", "2026-04-04T15:30Z", "2026-04-05T16:30Z"]
    ],
    // Lord Howe goes by half an hour: 2:10 becomes 2:40
    ["Australia/Lord_Howe", "10 2 * * *", "2026-10-02T15:41Z", ["2026-10-03T15:40Z", "2026-10-04T15:10Z"]],
    // midnight itself was left out in São Paulo
    [
      "America/Sao_Paulo",
      "0 0 * * *",
      "2018-11-02T13:00Z",
      ["2018-11-03T03:00Z", "2018-11-04T03:00Z", "2018-11-05T02:00Z"]
    ],
    // a zone that changes nothing
    ["Asia/Kolkata", "30 2 * * *", "2026-03-28T00:00Z", ["2026-03-28T21:00Z", "2026-03-29T21:00Z"]]
  ] as const)("in %s, %s after %s", (zone, cron, from, all) => {
    assert.deepStrictEqual(timesOf(cron, zone, from, all.length), all)
  })
})

describe("an expression whose hours are *", () => {
  it.each([
    ["Europe/Berlin", "2026-03-28T22:00Z"],
    ["Europe/Berlin", "2026-10-24T22:00Z"],
    ["America/New_York", "2026-11-01T03:00Z"],
    ["Australia/Sydney", "2026-04-04T13:00Z"],
    ["Pacific/Auckland", "2026-09-26T12:00Z"]
  ] as const)("goes on evenly in %s after %s", (zone, from) => {
    const times = timesOf("*/15 * * * *", zone, from, 40).map((at) => Date.parse(at))
    assert.deepStrictEqual(
      times.map((at, index) => at - times[0]! - index * 15 * MINUTE),
      times.map(() => 0)
    )
  })
})

describe("an expression that names every hour otherwise", () => {
  const changes = ["2026-03-28T20:00Z", "2026-10-24T20:00Z"]
  const fields = ["0-23", "*/1", "0-23/1", "0-11,12-23", Array.from({ length: 24 }, (_, hour) => hour).join(",")]
  it.each(changes.flatMap((from) => fields.map((hours) => [hours, from] as const)))(
    "%s is * after %s",
    (hours, from) => {
      for (const minutes of ["0", "*/20", "30"])
        assert.deepStrictEqual(
          timesOf(`${minutes} ${hours} * * *`, "Europe/Berlin", from, 30),
          timesOf(`${minutes} * * * *`, "Europe/Berlin", from, 30)
        )
    }
  )
  it("one that leaves an hour out has the hour that comes twice once", () => {
    assert.strictEqual(timesOf("0 1-23 * * *", "Europe/Berlin", "2026-10-24T23:30Z", 2)[1], "2026-10-25T02:00Z")
  })
})

/** The wall clock of a zone, minute by minute. */
const wallOf = (zone: string) => {
  const format = new Intl.DateTimeFormat("en-GB", {
    timeZone: zone,
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23"
  })
  return (at: number): string => format.format(at)
}

describe("over a year", () => {
  const cases = ["Europe/Berlin", "Australia/Sydney", "America/New_York", "America/Santiago", "Africa/Cairo"].flatMap(
    (zone) => ["30 2 * * *", "0 0 * * *", "15 1,3 * * *", "59 23 * * *"].map((cron) => [zone, cron] as const)
  )
  it.each(cases)("in %s, %s: a year of times, each in order, each at its wall time but in a gap", (zone, cron) => {
    const { last, next } = CronTimes.of(cron, zone)
    const wall = wallOf(zone)
    const [minute = "", hours = ""] = cron.split(" ")
    const wanted = hours.split(",").map((hour) => `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`)
    const end = Date.UTC(2027, 0, 1)
    let gaps = 0
    let count = 0
    for (let at = Date.UTC(2026, 0, 1), before = 0; ; before = at) {
      at = next(at)!
      if (at >= end) break
      count += 1
      assert.isAbove(at, before)
      if (before > 0) assert.strictEqual(last(at), before, new Date(at).toISOString())
      if (!wanted.includes(wall(at))) gaps += 1
    }
    // a day has its times once each, whatever the clock does in it
    assert.isAtMost(Math.abs(count - 365 * wanted.length), 1)
    assert.isAtMost(gaps, 2)
  })
})

describe("an expression that is none", () => {
  it.each([
    ["", "must be five fields"],
    ["* * * *", "must be five fields"],
    ["0 * * * * *", "must be five fields"],
    ["@daily", "must be five fields"],
    ["61 * * * *", 'its minute "61" cannot be read'],
    ["0 24 * * *", 'its hour "24" cannot be read'],
    ["0 0 * * 9", 'its day of the week "9" cannot be read'],
    ["0 0 30 2 *", "names a day that never comes"]
  ] as const)("%s", (cron, says) => {
    assert.include(CronTimes.problemOf(cron), says)
  })

  it("29 February comes", () => {
    assert.isUndefined(CronTimes.problemOf("0 0 29 2 *"))
    assert.deepStrictEqual(timesOf("0 0 29 2 *", "UTC", "2026-01-01T00:00Z", 2), [
      "2028-02-29T00:00Z",
      "2032-02-29T00:00Z"
    ])
    assert.isBelow(Date.parse("2026-01-01T00:00Z") + DAY, CronTimes.of("0 0 29 2 *", "UTC").next(0)! + 60 * 366 * DAY)
  })
})
