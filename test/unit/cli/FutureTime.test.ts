/** Times to come, as people type them. */
import { assert, describe, it } from "@effect/vitest"
import * as FutureTime from "../../../src/cli/parse/FutureTime.ts"

/** A Thursday, at noon of the machine's own time. */
const NOW = new Date(2026, 10, 26, 12, 0).getTime()
const local = (day: number, hour: number, minute = 0, second = 0) =>
  new Date(2026, 10, day, hour, minute, second).getTime()

const at = (text: string): number | undefined => {
  const coming = FutureTime.parse(text)
  return coming === undefined ? undefined : FutureTime.atOf(coming, NOW)
}

describe("a time to come", () => {
  it.each([
    ["13:00", local(26, 13)],
    ["9:00", local(27, 9)],
    ["12:00", local(27, 12)],
    ["9:00:30", local(27, 9, 0, 30)],
    ["today 17:30", local(26, 17, 30)],
    ["tomorrow 9:00", local(27, 9)],
    ["Fri 9:00", local(27, 9)],
    ["friday 9:00", local(27, 9)],
    ["thu 13:00", local(26, 13)],
    ["thu 9:00", new Date(2026, 11, 3, 9).getTime()],
    ["wed 9:00", new Date(2026, 11, 2, 9).getTime()],
    ["20m", NOW + 20 * 60_000],
    ["in 20 minutes", NOW + 20 * 60_000],
    ["+1h30m", NOW + 90 * 60_000],
    ["in 1.5 hours", NOW + 90 * 60_000],
    ["in 2 days", NOW + 2 * 86_400_000],
    ["in 1w", NOW + 7 * 86_400_000],
    ["90s", NOW + 90_000],
    ["2026-12-24T18:00", new Date(2026, 11, 24, 18).getTime()],
    ["2026-12-24 18:00", new Date(2026, 11, 24, 18).getTime()],
    ["2026-12-24T18:00Z", Date.UTC(2026, 11, 24, 18)],
    ["2026-12-24T18:00+01:00", Date.UTC(2026, 11, 24, 17)]
  ] as const)("%s", (text, expected) => {
    assert.strictEqual(at(text), expected)
  })

  it.each([
    "",
    "in",
    "noon",
    "25:00",
    "9:60",
    "9",
    "20",
    "20x",
    "20m 5",
    "in 20m ago",
    "someday 9:00",
    "tomorrow",
    "tomorrow 9:00 sharp",
    "2026-12-24",
    "2026-13-24T18:00",
    "-20m"
  ])("%s is none", (text) => {
    assert.isUndefined(at(text))
  })

  it("of today may be over, which the daemon says", () => {
    assert.isBelow(at("today 9:00")!, NOW)
  })

  it("a span is read in a time that grows with its length", () => {
    for (const text of ["1".repeat(10_000), "1m".repeat(10_000), " ".repeat(10_000), "1 ".repeat(10_000)])
      FutureTime.parse(text)
  })
})
