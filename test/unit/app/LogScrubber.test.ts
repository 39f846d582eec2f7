/** The whole log is checked from time to time: when, what is told of it, and what makes it void. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agents } from "../../../src/projects/service/Agents.ts"
import { newsOf } from "../../../src/alerts/AlertPolicy.ts"
import * as DaemonLog from "../../../src/app/DaemonLog.ts"
import * as LogScrubber from "../../../src/app/LogScrubber.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import * as Repair from "../../../src/core/event-log/Repair.ts"
import { force, note, storeFile, withInlineLog, withLog } from "../../world/event-log/Disk.ts"

const WEEK = Duration.days(7)

const filled = Effect.gen(function* () {
  const file = yield* storeFile
  yield* withInlineLog({ file }, (log) => log.append(Array.from({ length: 50 }, (_, n) => note("shop", n))))
  return file
})

const damage = (file: string) => force(file, `UPDATE runes SET payload = '{"event":{}}' WHERE event_id = 7`)

const told = (log: EventLog["Service"]) =>
  Effect.map(
    Stream.runCollect(log.read({ stream: "daemon", kinds: ["log.verified", "invariant.violated"] })),
    (runes) => Array.from(runes)
  )

describe("the whole log is checked from time to time", () => {
  it.effect("all is well: a rune says so, nobody is mailed, and a start knows of it", () =>
    Effect.gen(function* () {
      const file = yield* filled
      const { checked, runes } = yield* withInlineLog({ file }, (log) =>
        Effect.gen(function* () {
          assert.isNull(yield* log.checked)
          const checked = yield* log.scrub
          return { checked, runes: yield* told(log) }
        })
      )
      assert.deepInclude(checked, { runes: 50, problems: 0, first: null })
      assert.deepStrictEqual(
        runes.map(({ kind }) => kind),
        ["log.verified"]
      )
      assert.deepStrictEqual(yield* withInlineLog({ file }, (log) => log.checked), checked)
    })
  )

  it.effect(
    "what a disk has changed is an alert, until a person's check finds all well or a repair has mended it",
    () =>
      Effect.gen(function* () {
        const file = yield* filled
        damage(file)
        const runes = yield* withInlineLog({ file }, (log) =>
          Effect.gen(function* () {
            const { first, problems } = yield* log.scrub
            assert.strictEqual(problems, 1)
            assert.strictEqual(first, "rune 7 of shop: its payload is not the one that was appended")
            return yield* told(log)
          })
        )
        const alert = newsOf(
          runes.find(
            ({ kind, payload }) =>
              kind === "invariant.violated" && String(payload["message"]).startsWith("The log was read")
          )!
        )?.mail
        assert.include(alert?.reason, "rune 7 of shop: its payload is not the one that was appended")
        yield* withInlineLog({ file }, (log) =>
          Effect.gen(function* () {
            assert.strictEqual((yield* log.checked)?.problems, 1, "a start does not forget it")
            yield* log.verify
            assert.strictEqual((yield* log.checked)?.problems, 1)
          })
        )
        yield* Repair.run({ file, rules: DaemonLog.rules, onLost: () => {} }, 0)
        yield* withInlineLog({ file }, (log) =>
          Effect.gen(function* () {
            assert.isNull(yield* log.checked)
            yield* log.verify
            assert.strictEqual((yield* log.checked)?.problems, 0)
          })
        )
      })
  )

  it.live("the log's own thread is not asked: the check has one, and rests between its batches", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          for (let n = 0; n < 3; n++) yield* log.append(Array.from({ length: 900 }, (_, n) => note("shop", n)))
          assert.deepInclude(yield* log.scrub, { runes: 2_700, problems: 0 })
        })
      )
    })
  )

  it.effect("is due so long after the last one, or after the log's first rune; never with 0", () =>
    Effect.gen(function* () {
      const file = yield* filled
      yield* TestClock.setTime(Duration.toMillis(Duration.days(6)))
      yield* withInlineLog({ file }, (log) =>
        Effect.gen(function* () {
          const checks = Effect.map(told(log), (runes) => runes.length)
          yield* Effect.forkChild(LogScrubber.run(WEEK))
          yield* Effect.forkChild(LogScrubber.run(Duration.zero))
          yield* TestClock.adjust("23 hours")
          assert.strictEqual(yield* checks, 0)
          yield* TestClock.adjust("2 hours")
          assert.strictEqual(yield* checks, 1)
          yield* TestClock.adjust("6 days")
          assert.strictEqual(yield* checks, 1)
          yield* TestClock.adjust("25 hours")
          assert.strictEqual(yield* checks, 2)
        }).pipe(
          Effect.scoped,
          Effect.provideService(EventLog, log),
          Effect.provide(Layer.succeed(Agents, { recovered: Effect.void } as never))
        )
      )
    })
  )
})
