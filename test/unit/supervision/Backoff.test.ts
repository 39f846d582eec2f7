import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber, Pull, Schedule } from "effect"
import { TestClock } from "effect/testing"
import * as Backoff from "../../../src/core/supervision/Backoff.ts"

const never: Backoff.Limits = { maxConsecutiveErrors: Infinity, maxTotalErrors: Infinity }
const counters = (n: number): Backoff.Counters => ({ consecutiveErrors: n, totalErrors: n })
const delayOf = (n: number, limits = never, policy = Backoff.defaultPolicy) =>
  Backoff.delay(policy, limits, counters(n), "agent")

describe("Backoff", () => {
  it("waits 2, 4, 8, 16, 32, 60, 60 seconds", () =>
    assert.deepStrictEqual(
      [1, 2, 3, 4, 5, 6, 7].map((n) => delayOf(n)),
      [2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]
    ))

  it("stays at its cap however often it is asked", () => assert.strictEqual(delayOf(5_000), 60_000))

  it("gives up at five in a row, and at twenty in all", () => {
    const at = (consecutiveErrors: number, totalErrors: number) =>
      Backoff.delay(Backoff.defaultPolicy, Backoff.defaultLimits, { consecutiveErrors, totalErrors })
    assert.strictEqual(at(4, 4), 16_000)
    assert.isUndefined(at(5, 5))
    assert.strictEqual(at(1, 19), 2_000)
    assert.isUndefined(at(1, 20))
  })

  it("without a wait waits never, and gives up all the same", () => {
    const policy = { ...Backoff.defaultPolicy, base: 0, cap: 0 }
    const at = (n: number, cap: number) => Backoff.delay({ ...policy, cap }, Backoff.defaultLimits, counters(n))
    for (const n of [1, 4, 5, 20]) assert.strictEqual(at(n, 0), at(n, 10))
    assert.deepStrictEqual([at(4, 0), at(5, 0)], [0, undefined])
  })

  it("takes its base, factor and cap from the policy", () =>
    assert.deepStrictEqual(
      [1, 2, 3].map((n) => delayOf(n, never, { base: 10, factor: 3, cap: 50, jitter: 0 })),
      [10, 30, 50]
    ))

  it("takes off no more than its jitter, the same for the same key", () => {
    const policy = { ...Backoff.defaultPolicy, jitter: 0.5 }
    const delays = Array.from({ length: 200 }, (_, key) => Backoff.delay(policy, never, counters(3), String(key))!)
    assert.isTrue(delays.every((delay) => delay > 4_000 && delay <= 8_000))
    assert.isAbove(new Set(delays).size, 150)
    assert.isBelow(Math.min(...delays), 4_400)
    assert.isAbove(Math.max(...delays), 7_600)
    assert.strictEqual(Backoff.delay(policy, never, counters(3), "7"), delays[7])
  })

  it.effect("is what Effect's own exponential schedule, capped, waits on a clock", () =>
    Effect.gen(function* () {
      const capped = Schedule.min([Schedule.exponential("2 seconds"), Schedule.spaced("60 seconds")])
      const waited: Array<number> = []
      const step = yield* Schedule.toStepWithSleep(capped)
      const fiber = yield* Effect.forkChild(
        Effect.gen(function* () {
          for (let n = 1; n <= 30; n++) {
            const before = yield* Clock.currentTimeMillis
            yield* Pull.catchDone(step(undefined), () => Effect.die("the schedule ended"))
            waited.push((yield* Clock.currentTimeMillis) - before)
          }
        })
      )
      yield* TestClock.adjust("1 hour")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(
        waited,
        Array.from({ length: 30 }, (_, index) => delayOf(index + 1)!)
      )
    })
  )

  it.effect("drives a retry: the counters that it is fed end it at the threshold", () =>
    Effect.gen(function* () {
      const starts: Array<number> = []
      let errors = 0
      const run = Effect.gen(function* () {
        starts.push(yield* Clock.currentTimeMillis)
        return yield* Effect.fail(counters(++errors))
      })
      const schedule = Backoff.schedule(Backoff.defaultPolicy, Backoff.defaultLimits)
      const fiber = yield* Effect.forkChild(Effect.exit(Effect.retry(run, schedule)))
      yield* TestClock.adjust(Duration.minutes(5))
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(starts, [0, 2_000, 6_000, 14_000, 30_000])
    })
  )

  it.effect("resumed at step n it stands where a schedule stands that has made n steps", () =>
    Effect.gen(function* () {
      for (const jitter of [0, 0.5]) {
        const waits = Backoff.waits({ ...Backoff.defaultPolicy, jitter }, "agent")
        const running = yield* Schedule.toStep(waits)
        for (let n = 0; n < 8; n++) {
          const resumed = yield* Schedule.toStep(Backoff.resumed(waits, n))
          const twice = [yield* resumed(0, undefined), yield* resumed(0, undefined)].map(([, wait]) => wait)
          const [, next] = yield* running(0, undefined)
          assert.deepStrictEqual(twice[0], next)
          const [, after] = yield* Effect.flatMap(Schedule.toStep(Backoff.resumed(waits, n + 1)), (step) =>
            step(0, undefined)
          )
          assert.deepStrictEqual(twice[1], after)
        }
      }
    })
  )

  it("resumed behind its end it has ended", () => {
    const ended = Backoff.resumed(Schedule.upTo(Backoff.waits(Backoff.defaultPolicy), { times: 3 }), 4)
    const next = Schedule.toStep(ended).pipe(
      Effect.flatMap((step) => step(0, undefined)),
      Effect.as("a wait"),
      Pull.catchDone(() => Effect.succeed("ended"))
    )
    assert.strictEqual(Effect.runSync(next), "ended")
  })

  it("waits before its n-th repetition what the n-th step says", () => {
    const policy = { base: 20, factor: 2, cap: 2_000, jitter: 0 }
    assert.deepStrictEqual(
      [1, 2, 3, 7, 8, 100].map((n) => Backoff.wait(policy, n)),
      [20, 40, 80, 1_280, 2_000, 2_000]
    )
    assert.deepStrictEqual(
      [1, 2, 3].map((n) => Backoff.wait(Backoff.constant("50 millis"), n)),
      [50, 50, 50]
    )
  })
})
