/** How long `start` waits for a daemon that does not answer yet. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as StartupWait from "../../../src/cli/parse/StartupWait.ts"

const waiting = (ticks: () => number | undefined) => Effect.forkChild(StartupWait.untilIdle("/nowhere", true, ticks))

const isOver = (fiber: Fiber.Fiber<void>) => fiber.pollUnsafe() !== undefined

describe("start's patience", () => {
  it.effect("a daemon that reads a log for ten minutes is not given up; one that stops working is, after a while", () =>
    Effect.gen(function* () {
      let ticks = 0
      let works = true
      const fiber = yield* waiting(() => (works ? (ticks += 90) : ticks))
      yield* TestClock.adjust("10 minutes")
      assert.isFalse(isOver(fiber))
      works = false
      yield* TestClock.adjust("29 seconds")
      assert.isFalse(isOver(fiber))
      yield* TestClock.adjust("2 seconds")
      assert.isTrue(isOver(fiber))
    })
  )

  it.effect("where no daemon holds the folder, the while is all", () =>
    Effect.gen(function* () {
      const fiber = yield* waiting(() => undefined)
      yield* TestClock.adjust("30 seconds")
      assert.isTrue(isOver(fiber))
    })
  )

  it.effect("one that works for ever is given up after half an hour; one that only waits does not work", () =>
    Effect.gen(function* () {
      let ticks = 0
      const busy = yield* waiting(() => (ticks += 100))
      let few = 0
      const idle = yield* waiting(() => (few += 1))
      yield* TestClock.adjust("31 minutes")
      assert.isTrue(isOver(busy))
      assert.isTrue(isOver(idle))
    })
  )
})
