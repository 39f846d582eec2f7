/** The chains of older runes, which are checked behind the start. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import * as DaemonLog from "../../../src/app/DaemonLog.ts"
import { force, note, storeFile, withInlineLog } from "./Disk.ts"

/** More than a start looks at. */
const RUNES = 5_400

/** Odd ids in `a`, even ones in `b`; the newest are looked at by the next start. */
const old = Effect.gen(function* () {
  const file = yield* storeFile
  yield* withInlineLog({ file }, (log) =>
    Effect.forEach(Array.from({ length: RUNES / 200 }), (_, piece) =>
      log.append(Array.from({ length: 200 }, (_, index) => note(index % 2 === 0 ? "a" : "b", piece * 200 + index)))
    )
  )
  return file
})

const opened = (file: string) =>
  Effect.map(Layer.build(Layer.fresh(DaemonLog.layerInline({ file }).pipe(Layer.provide(Redact.layer)))), (context) =>
    Context.get(context, EventLog)
  )

describe("chains behind the start", () => {
  for (const [what, sql] of [
    ["a payload", `UPDATE runes SET payload = replace(payload, 'ada', 'eve') WHERE event_id = 5`],
    ["a header", "UPDATE runes SET at = at + 1 WHERE event_id = 5"]
  ] as const) {
    it.effect(
      `${what} of an old rune: the start does not see it, the check behind it halts that stream and tells`,
      () =>
        Effect.gen(function* () {
          const file = yield* old
          force(file, sql)
          const log = yield* opened(file)
          yield* log.append([note("a", 1), note("b", 1)])
          yield* TestClock.adjust("1 second")
          const told = yield* log
            .subscribe({ stream: "daemon", kinds: ["invariant.violated"] })
            .pipe(Stream.take(1), Stream.runCollect)
          assert.include(JSON.stringify(told[0]?.payload), "the chain of a is broken at rune 5")
          const refused = yield* Effect.flip(log.append([note("a", 2)]))
          assert.include(refused.message, "broken at rune 5")
          yield* log.append([note("b", 2)])
        })
    )
  }

  it.effect("what was erased is as it should be", () =>
    Effect.gen(function* () {
      const file = yield* old
      yield* withInlineLog({ file }, (log) =>
        Effect.andThen(
          log.append([note("a", 1, "a secret")]),
          Effect.flatMap(log.head, (id) => log.erase(id, "ada"))
        )
      )
      const log = yield* opened(file)
      yield* log.append([note("a", 1)])
      yield* TestClock.adjust("1 second")
      yield* log.append([note("a", 2)])
      assert.deepStrictEqual((yield* log.verify).problems, [])
      assert.strictEqual((yield* log.tail({ kinds: ["invariant.violated"] }, 1)).length, 0)
    })
  )
})
