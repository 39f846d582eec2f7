/** Where a notice goes, and when not: quiet hours in zones, over midnight and over changes of the clocks. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as Notice from "../../../src/alerts/Notice.ts"
import * as Route from "../../../src/alerts/Route.ts"
import { NotifyConfig } from "../../../src/config/NotifyConfig.ts"

const decode = Schema.decodeUnknownSync(NotifyConfig)
const at = (text: string): number => Date.parse(text)

const notice = (kind: Notice.Notice["kind"], urgency: Notice.Urgency = "soon") =>
  Notice.of({ kind, title: "t", body: "b", command: "agentd ps", urgency, about: "agent:shop/a", project: "shop" })

describe("quiet hours", () => {
  const night = { from: "22:00", to: "07:00", timeZone: "Europe/Berlin" }
  for (const [time, isQuiet] of [
    ["2026-01-15T20:59:59Z", false],
    ["2026-01-15T21:00:00Z", true],
    ["2026-01-16T05:59:59Z", true],
    ["2026-01-16T06:00:00Z", false],
    // summer: an hour earlier in UTC
    ["2026-07-15T19:59:59Z", false],
    ["2026-07-15T20:00:00Z", true],
    // the night in which the hour from 2 to 3 is not there, and the one in which it is there twice
    ["2026-03-29T04:59:59Z", true],
    ["2026-03-29T05:00:00Z", false],
    ["2026-10-25T05:59:59Z", true],
    ["2026-10-25T06:00:00Z", false]
  ] as const) {
    it(`${time} in Berlin: ${isQuiet ? "quiet" : "not"}`, () => {
      assert.strictEqual(Route.isQuiet(night, at(time)), isQuiet)
    })
  }

  for (const [time, over] of [
    ["2026-01-15T21:00:00Z", "2026-01-16T06:00:00Z"],
    ["2026-01-16T05:59:59Z", "2026-01-16T06:00:00Z"],
    ["2026-01-16T06:00:00Z", "2026-01-16T06:00:00Z"],
    ["2026-03-28T22:00:07Z", "2026-03-29T05:00:00Z"],
    ["2026-10-24T22:00:07Z", "2026-10-25T06:00:00Z"]
  ] as const) {
    it(`${time} in Berlin: quiet until ${over}`, () => {
      assert.strictEqual(Route.quietUntil(night, at(time)), at(over))
    })
  }

  it("within a day; from and to alike are none", () => {
    const noon = { from: "12:00", to: "13:00", timeZone: "UTC" }
    assert.isTrue(Route.isQuiet(noon, at("2026-01-15T12:30:00Z")))
    assert.isFalse(Route.isQuiet(noon, at("2026-01-15T13:00:00Z")))
    assert.isFalse(Route.isQuiet({ ...noon, to: "12:00" }, at("2026-01-15T12:00:00Z")))
  })

  it("what is excepted goes a way of its own, and takes nothing else along", () => {
    const channels = { desk: { type: "desktop" } }
    const notify = decode({ channels, quietHours: { ...night, except: ["needsYou"] } })
    const now = at("2026-01-15T23:00:00Z")
    const [held] = Route.ofNotice(notify, notice("failed"), now)
    const [excepted] = Route.ofNotice(notify, notice("needsYou", "now"), now)
    assert.isTrue(held!.isHeld)
    assert.isFalse(excepted!.isHeld)
    assert.notStrictEqual(held!.destination, excepted!.destination)
    assert.isTrue(Route.isHeld(notify, held!.destination, now))
    assert.isFalse(Route.isHeld(notify, excepted!.destination, now))
  })
})

describe("the channels of a kind", () => {
  const channels = { desk: { type: "desktop" }, phone: { type: "ntfy", url: "https://ntfy.sh/t" } }
  const names = (tell: object, kind: Notice.Notice["kind"]) =>
    Route.ofNotice(decode({ channels, tell }), notice(kind), 0).map(({ channel }) => channel)

  it("are all but for done; those that are named; else the others", () => {
    assert.deepStrictEqual(names({}, "failed"), ["desk", "phone"])
    assert.deepStrictEqual(names({}, "done"), [])
    assert.deepStrictEqual(names({ others: ["desk"] }, "done"), [])
    assert.deepStrictEqual(names({ others: ["desk"], failed: ["phone"] }, "failed"), ["phone"])
    assert.deepStrictEqual(names({ others: ["desk"], failed: [] }, "failed"), [])
    assert.deepStrictEqual(names({ others: ["desk"] }, "outage"), ["desk"])
  })
})

describe("a config", () => {
  const refused = (notify: object) => {
    try {
      decode(notify)
      return ""
    } catch (error) {
      return String(error)
    }
  }
  const ops = { type: "webhook", url: "https://example.org/" }
  for (const [what, notify, words] of [
    [
      "names a channel that is not there",
      { channels: { ops }, tell: { failed: ["opps"] } },
      /no channel "opps".*"ops"/
    ],
    ["escalates to one that is not there", { channels: { ops }, escalate: { to: ["x"] } }, /no channel "x"/],
    ["has a zone that is none", { quietHours: { from: "22:00", to: "07:00", timeZone: "Mars" } }, /time zone/],
    ["has a time that is none", { quietHours: { from: "24:00", to: "07:00" } }, /time of day/],
    ["has two places for a secret", { channels: { ops: { ...ops, secret: { env: "A", file: "b" } } } }, /exactly one/],
    ["writes a secret out", { channels: { chat: { type: "slack", url: "https://hooks.slack.com/x" } } }, /url/],
    ["has a password in its address", { channels: { ops: { ...ops, url: "https://a:b@c/" } } }, /password/]
  ] as const) {
    it(`that ${what} is refused`, () => assert.match(refused(notify), words))
  }
})
