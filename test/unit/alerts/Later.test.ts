/** A notice that a person puts off is told again in a quarter of an hour, over a restart too, unless somebody has answered. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import {
  answered,
  append,
  asked,
  config,
  died,
  living,
  passing,
  type Played,
  played,
  withLog
} from "../../world/alerts/PlayedChannels.ts"

const titles = ({ told }: Played) => told.map(({ title }) => title)

describe("a message that is put off", () => {
  it.effect("comes again in a quarter of an hour, under an id of its own; and again, if it is put off again", () =>
    Effect.gen(function* () {
      const play = played("desk")
      yield* living(play, config(["desk"], { digestWindow: "1 second" }))
      yield* append(died("one"))
      yield* passing("10 seconds")
      play.putOff(play.told[0]!)
      yield* passing("14 minutes", "10 seconds")
      assert.lengthOf(play.told, 1)
      yield* passing("2 minutes", "10 seconds")
      play.putOff(play.told[1]!)
      yield* passing("16 minutes", "10 seconds")
      yield* passing("1 hour", "1 minute")
      assert.deepStrictEqual(titles(play), Array(3).fill("demo/one stopped permanently"))
      assert.strictEqual(new Set(play.told.map(({ id }) => id)).size, 3)
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("comes over a restart, once", () =>
    Effect.gen(function* () {
      const play = played("desk")
      const notify = config(["desk"], { digestWindow: "1 second" })
      const first = yield* living(play, notify)
      yield* append(died("one"))
      yield* passing("10 seconds")
      play.putOff(play.told[0]!)
      yield* passing("1 minute", "10 seconds")
      yield* Fiber.interrupt(first)
      yield* living(play, notify)
      yield* passing("1 hour", "30 seconds")
      assert.lengthOf(play.told, 2)
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("of several notices comes as these, and takes nothing along", () =>
    Effect.gen(function* () {
      const play = played("desk")
      yield* living(play, config(["desk"], { digestWindow: "1 second" }))
      yield* append(died("one"), died("two"))
      yield* passing("10 seconds")
      play.putOff(play.told[0]!)
      yield* passing("1 minute", "10 seconds")
      yield* append(died("three"))
      yield* passing("20 minutes", "10 seconds")
      assert.deepStrictEqual(
        play.told.map(({ notices }) => notices.map(({ title }) => title.slice(5, 10).trim())),
        [["one s", "two s"], ["three"], ["one s", "two s"]]
      )
    }).pipe(Effect.scoped, withLog)
  )

  for (const when of ["before", "after"] as const)
    it.effect(`comes no more where somebody has answered ${when} it was put off`, () =>
      Effect.gen(function* () {
        const play = played("desk")
        yield* living(play, config(["desk"]))
        yield* append(asked("one"))
        yield* passing("10 seconds")
        if (when === "after") play.putOff(play.told[0]!)
        yield* passing("10 seconds")
        yield* append(answered("one"))
        yield* passing("10 seconds")
        if (when === "before") play.putOff(play.told[0]!)
        yield* passing("1 hour", "30 seconds")
        assert.lengthOf(play.told, 1)
      }).pipe(Effect.scoped, withLog)
    )

  it.effect("is not told on by the next channel before it was told again", () =>
    Effect.gen(function* () {
      const play = played("desk", "phone")
      const escalate = { after: "20 minutes", to: ["phone"] }
      yield* living(play, config(["desk", "phone"], { tell: { others: ["desk"] }, escalate }))
      yield* append(asked("one"))
      yield* passing("10 minutes", "10 seconds")
      play.putOff(play.told[0]!)
      yield* passing("30 minutes", "10 seconds")
      assert.deepStrictEqual(
        play.told.map(({ by }) => by),
        ["desk", "desk"]
      )
      yield* passing("20 minutes", "10 seconds")
      assert.deepStrictEqual(
        play.told.map(({ by }) => by),
        ["desk", "desk", "phone"]
      )
    }).pipe(Effect.scoped, withLog)
  )

  it.effect("waits while quiet hours last", () =>
    Effect.gen(function* () {
      const play = played("desk")
      const quietHours = { from: "00:10", to: "07:00", timeZone: "UTC" }
      yield* living(play, config(["desk"], { digestWindow: "1 second", quietHours }))
      yield* append(died("one"))
      yield* passing("10 seconds")
      play.putOff(play.told[0]!)
      yield* passing("6 hours", "5 minutes")
      assert.lengthOf(play.told, 1)
      yield* passing("70 minutes", "1 minute")
      assert.lengthOf(play.told, 2)
    }).pipe(Effect.scoped, withLog)
  )
})
