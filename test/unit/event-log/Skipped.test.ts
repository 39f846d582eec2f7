/** A subscriber and a rune that it cannot take: the rune is passed over and told of, and no other is. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { EventLog } from "../../../src/core/event-log/EventLog.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { force, note, storeFile, withInlineLog } from "../../world/event-log/Disk.ts"

const numbered = (count: number) => Array.from({ length: count }, (_, index) => note("a", index + 1))

/** The runes that a subscriber takes which crashes on some of them, and what the log says of that. */
const taken = (log: EventLog["Service"], crashes: (rune: Rune) => boolean) =>
  Effect.gen(function* () {
    const heard: Array<number> = []
    const following = yield* Effect.forkChild(
      log.follow("teller", { kinds: ["inbox.received"] }, (runes) =>
        Effect.sync(() => {
          if (runes.some(crashes)) throw new Error("it cannot be")
          heard.push(...runes.map(({ eventId }) => eventId))
        })
      )
    )
    yield* TestClock.adjust("1 second")
    yield* Fiber.interrupt(following)
    const told = yield* log.tail({ kinds: ["invariant.violated"] }, 9)
    return { heard, told: told.map(({ payload }) => payload["message"]) }
  })

describe("a rune that a subscriber cannot take", () => {
  it.effect("since it crashes on it: the others are handed over, and the log says which it was", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withInlineLog({ file }, (log) =>
        Effect.gen(function* () {
          yield* log.append(numbered(9))
          const { heard, told } = yield* taken(log, ({ eventId }) => eventId === 4)
          assert.deepStrictEqual(heard, [1, 2, 3, 5, 6, 7, 8, 9])
          assert.strictEqual(told.length, 1)
          assert.match(String(told[0]), /teller goes on without rune 4: .*it cannot be/)
        })
      )
      yield* withInlineLog({ file }, (log) =>
        Effect.gen(function* () {
          yield* log.append([note("a", 11)])
          const { heard, told } = yield* taken(log, ({ eventId }) => eventId === 4)
          assert.deepStrictEqual([heard, told.length], [[11], 1])
        })
      )
    })
  )

  it.effect("one that crashes on every rune crashes", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withInlineLog({ file }, (log) =>
        Effect.gen(function* () {
          yield* log.append(numbered(60))
          const following = yield* Effect.forkChild(
            log.follow("teller", { kinds: ["inbox.received"] }, () => Effect.die("it cannot be"))
          )
          yield* TestClock.adjust("1 second")
          assert.isTrue(Exit.hasDies(yield* Fiber.await(following)))
        })
      )
    })
  )

  it.effect("since its payload is damaged: likewise", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withInlineLog({ file }, (log) => log.append(numbered(600)))
      force(file, "UPDATE runes SET payload = '{' WHERE event_id IN (4, 500)")
      yield* withInlineLog({ file }, (log) =>
        Effect.gen(function* () {
          const { heard, told } = yield* taken(log, () => false)
          assert.deepStrictEqual(
            heard,
            numbered(600).flatMap((_, index) => (index === 3 || index === 499 ? [] : [index + 1]))
          )
          assert.strictEqual(told.filter((text) => /teller goes on without rune (4|500):/.test(String(text))).length, 2)
        })
      )
    })
  )
})
