/** Schedules over a clock that is set: each time runs at most once, and none is lost but as catchUp says. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { DAY } from "../support/SteppedClock.ts"
import { run } from "./World.ts"

const HOUR = 3_600_000
const send = { agent: "bob", text: "good night" }
const nightly = (more: object = {}) => ({ nightly: { cron: "30 2 * * *", timeZone: "Europe/Berlin", send, ...more } })

describe("schedules", () => {
  it.effect("a message is sent at its time, each day, and not before", () =>
    run("2026-06-01T00:00Z", (world) =>
      Effect.gen(function* () {
        yield* world.configure(nightly())
        yield* world.pass(29 * 60_000)
        assert.deepStrictEqual(yield* world.runs, [])
        yield* world.pass(60_000)
        assert.deepStrictEqual(yield* world.runs, ["nightly@2026-06-01T00:30"])
        yield* world.pass(DAY)
        assert.deepStrictEqual(yield* world.runs, ["nightly@2026-06-01T00:30", "nightly@2026-06-02T00:30"])
      })
    )
  )

  it.effect("a machine that slept over three nights sends the last one, and says which it did not", () =>
    run("2026-06-01T12:00Z", (world) =>
      Effect.gen(function* () {
        yield* world.configure(nightly())
        yield* world.sleep(3 * DAY)
        assert.deepStrictEqual(yield* world.runs, ["nightly@2026-06-04T00:30"])
        assert.deepStrictEqual(yield* world.skips, ["nightly@2026-06-03T00:30 2 nobody could act at that time"])
        yield* world.sleep(HOUR)
        assert.strictEqual((yield* world.runs).length, 1)
      })
    )
  )
})
