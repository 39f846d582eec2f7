import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import * as DeadLetters from "../../../src/core/event-actor/DeadLetters.ts"
import { DAEMON_STREAM } from "../../../src/core/event-log/Rune.ts"
import { layerMemory as logMemory } from "../../../src/app/DaemonLog.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"

describe("DeadLetters", () => {
  it.effect("keeps the newest, oldest first, and counts all by reason", () =>
    Effect.gen(function* () {
      const letters = yield* DeadLetters.DeadLetters
      for (let n = 1; n <= 5; n++) letters.post({ address: "p/a", reason: "full", message: n })
      yield* TestClock.adjust(7)
      letters.post({ address: "p/a", reason: "poison", message: 6 })
      const recent = yield* letters.recent
      assert.deepStrictEqual(
        recent.map((letter) => [letter.message, letter.at]),
        [
          [4, 0],
          [5, 0],
          [6, 7]
        ]
      )
      assert.deepStrictEqual(yield* letters.counts, { full: 5, poison: 1 })
    }).pipe(Effect.provide(DeadLetters.layerMemory(3)))
  )

  it.effect("each is a rune in the daemon's stream, with the reason and what broke it", () =>
    Effect.gen(function* () {
      const letters = yield* DeadLetters.DeadLetters
      const log = yield* EventLog
      letters.post({
        address: "p/worker/a",
        reason: "poison",
        message: { _tag: "Bang", id: 1 },
        why: Cause.die(new Error("boom")),
        cause: { stream: "p", seq: 4 }
      })
      const runes = yield* log.subscribe({ stream: DAEMON_STREAM }).pipe(Stream.take(1), Stream.runCollect)
      const rune = Array.from(runes)[0]!
      assert.strictEqual(rune.kind, "actor.dead_letter")
      assert.strictEqual(rune.actor, "p/worker/a")
      assert.strictEqual(rune.trigger, "Bang")
      assert.deepStrictEqual(rune.cause, { stream: "p", seq: 4 })
      assert.strictEqual(rune.payload["reason"], "poison")
      assert.strictEqual(rune.payload["message"], `{"_tag":"Bang","id":1}`)
      assert.include(rune.payload["why"] as string, "boom")
    }).pipe(Effect.provide(Layer.provideMerge(DeadLetters.layer(), logMemory)))
  )

  it.effect("a message that is no JSON does not break it", () =>
    Effect.gen(function* () {
      const letters = yield* DeadLetters.DeadLetters
      const log = yield* EventLog
      const loop: { self?: unknown } = {}
      loop.self = loop
      letters.post({ address: "p/a", reason: "illegal", message: loop })
      letters.post({ address: "p/a", reason: "illegal", message: "x".repeat(10_000) })
      const runes = yield* log.subscribe({ stream: DAEMON_STREAM }).pipe(Stream.take(2), Stream.runCollect)
      const [first, second] = Array.from(runes)
      assert.strictEqual(first!.payload["message"], "[object: not JSON]")
      assert.lengthOf(second!.payload["message"] as string, 2_000)
    }).pipe(Effect.provide(Layer.provideMerge(DeadLetters.layer(), logMemory)))
  )

  it.effect("200,000 at once cost no fiber each: one append of the first of them, all are counted", () =>
    Effect.gen(function* () {
      const appends: Array<number> = []
      const log = EventLog.of({
        ...(yield* EventLog),
        appendLazy: (drafts) => Effect.sync(() => void appends.push(drafts.length))
      })
      const letters = yield* Effect.provide(
        DeadLetters.DeadLetters,
        DeadLetters.layer(256).pipe(Layer.provide(Layer.succeed(EventLog, log))),
        { local: true }
      )
      for (let n = 0; n < 200_000; n++) letters.post({ address: "p/a", reason: "full", message: n })
      assert.isEmpty(appends, "nothing runs on the sender's stack")
      yield* Effect.yieldNow
      yield* Effect.yieldNow
      assert.deepStrictEqual(appends, [256])
      assert.deepStrictEqual(yield* letters.counts, { full: 200_000 })
    }).pipe(Effect.provide(logMemory))
  )
})
