/** A run that is counted at the gateway, and of which nothing passes it: said, once. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import type { Run, RunEvent } from "../../../src/runs/Backend.ts"
import * as GatewayMeter from "../../../src/runs/GatewayMeter.ts"

const runOf = (events: Run["events"]): Run => ({
  runId: "r",
  events,
  send: () => Effect.void,
  answer: () => Effect.void,
  cancelCall: () => Effect.void,
  interruptTurn: Effect.void,
  end: Effect.void,
  kill: Effect.void
})

/** `counts`: tokens that have passed by the end of each turn. */
const told = Effect.fnUntraced(function* (events: ReadonlyArray<RunEvent>, ...counts: ReadonlyArray<number>) {
  let at = -1
  const heard = Stream.fromIterable(events).pipe(
    Stream.rechunk(1),
    Stream.tap((event) => Effect.sync(() => void (at += event._tag === "TurnCompleted" ? 1 : 0)))
  )
  const passed = Effect.sync(() => {
    const input = counts[Math.min(at, counts.length - 1)] ?? 0
    const tokens = input === 0 ? [] : [{ model: "m", input, output: 1, cacheRead: 0, cacheWrite: 0 }]
    return { opened: "route", tokens }
  })
  const all = yield* Stream.runCollect(GatewayMeter.metered(runOf(heard), () => passed).events)
  return all.flatMap((event) => (event._tag === "Notice" ? [event.lasting?.isOver] : []))
})

const began: RunEvent = { _tag: "TurnStarted", turnId: "t" }
const completed: RunEvent = { _tag: "TurnCompleted", turnId: "t", output: "done" }
const failed: RunEvent = { _tag: "TurnError", turnId: "t", errorType: "x", message: "m", retry: false }
const ended: RunEvent = { _tag: "Exited", outcome: { _tag: "Success" } }

describe("requests of a run that fail at the gateway", () => {
  it.effect("are told as they come, with since when; an answer ends it", () =>
    Effect.gen(function* () {
      const failing = (times: number) => ({ failing: { since: 5_000, times, words: "answered 503" } })
      const counts = [failing(1), failing(1), failing(3), {}, failing(1)]
      const completed: RunEvent = { _tag: "TurnCompleted", turnId: "t", output: "done" }
      let at = -1
      const run = runOf(
        Stream.fromIterable(counts.map(() => completed)).pipe(
          Stream.rechunk(1),
          Stream.tap(() => Effect.sync(() => void at++))
        )
      )
      const passed = Effect.sync(() => ({ opened: "route", tokens: [], ...counts[Math.max(0, at)] }))
      const events = yield* Stream.runCollect(GatewayMeter.metered(run, () => passed).events)
      const told = events.flatMap((event) => (event._tag === "Notice" && event.retries !== undefined ? [event] : []))
      assert.deepStrictEqual(
        told.map(({ retries, text }) => [text, retries?.since]),
        [
          ["a request of its model failed: the last one answered 503", 5_000],
          ["3 requests in a row of its model failed: the last one answered 503", 5_000],
          ["a request of its model failed: the last one answered 503", 5_000]
        ]
      )
    })
  )
})

describe("a run whose requests bypass the gateway", () => {
  it.effect("says so with its first answer, and no more", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* told([began, completed, began, completed, ended], 0), [false])
    })
  )
  it.effect("says that it is over where something passes later", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* told([began, completed, began, completed], 0, 5), [false, true])
    })
  )
  it.effect("of a command is known by its end alone", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* told([ended], 0), [false])
      assert.deepStrictEqual(yield* told([{ _tag: "Exited", outcome: { _tag: "Timeout" } }], 0), [])
    })
  )
  it.effect("is none that was counted, or that has not answered", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* told([began, completed, ended], 5), [])
      assert.deepStrictEqual(yield* told([began, failed, ended], 0), [])
    })
  )
})
