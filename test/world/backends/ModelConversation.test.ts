/** A conversation with a model stays one that APIs take, and holds what was answered, whatever the model and its tools said. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Clock, Deferred, Duration, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as path from "node:path"
import * as HeadTail from "../../../src/runs/HeadTail.ts"
import * as Stand from "./ModelStand.ts"

const { call, done, only, tool, whole } = Stand

const HALF = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/

describe.each(Stand.dialects)("%s", (dialect) => {
  layer(Stand.layer, { excludeTestServices: true })((it) => {
    it.effect.each([
      ["nothing", {}],
      ["a thought alone", { thought: "hm" }],
      ["blanks", { text: [" \n"] }]
    ] as const)(
      "an input that was answered with %s is still there in the next run, and no more than that",
      ([, reply]) =>
        Effect.gen(function* () {
          const sessions = path.join(yield* Stand.folder, "sessions")
          const { asked, url } = yield* Stand.provider(dialect, [reply, { text: ["Ok."] }])
          const first = yield* whole(dialect, url, { sessions })
          assert.strictEqual(only(first, "TurnCompleted")[0]?.output.trim(), "")
          const resume = { sessionId: "run-1", fork: false }
          yield* whole(dialect, url, { sessions, spec: { runId: "run-2", turnId: "turn-2", prompt: "more", resume } })
          const told = Stand.heard(asked[1]!)
          assert.strictEqual(told[0], "user: do it")
          assert.include(told[1], "nothing")
          assert.deepStrictEqual(told.slice(2), ["user: more"])
        })
    )

    it.effect("a tool's name that no API takes back is another one in the conversation", () =>
      Effect.gen(function* () {
        const names = ["functions.look", "", "look at it", "x".repeat(100), "echo"]
        const calls = names.map((name, at) => call(`c${at}`, name))
        const { asked, url } = yield* Stand.provider(dialect, [{ calls }])
        const echo = tool("echo", () => Effect.succeed(done("echoed")))
        const all = yield* whole(dialect, url, { tools: [echo] })
        assert.deepStrictEqual(
          only(all, "ToolResult").map(({ status }) => status),
          ["error", "error", "error", "error", "success"]
        )
        const told = Stand.heard(asked[1]!).flatMap((line) => /^call \S+: (.*) \{\}$/.exec(line)?.[1] ?? [])
        assert.strictEqual(told.length, 5)
        for (const name of told) assert.match(name, /^[a-zA-Z0-9_-]{1,64}$/)
        assert.strictEqual(told[4], "echo")
      })
    )

    it.effect("half a character goes to no API", () =>
      Effect.gen(function* () {
        const half = { id: "a", name: "echo", arguments: "😀".repeat(1_500) + "x".repeat(7) }
        const odd = { id: "b", name: "echo", arguments: `x${half.arguments}` }
        const { asked, url } = yield* Stand.provider(dialect, [{ calls: [half, odd] }, { calls: [call("c", "cut")] }])
        const cut = tool("cut", () => Effect.succeed(done("😀".slice(0, 1))))
        yield* whole(dialect, url, { tools: [cut] })
        for (const one of asked) assert.notMatch(JSON.stringify(one.body), /\\ud[89a-f]/)
        assert.strictEqual(asked.length, 3)
      })
    )
  })
})

/** The test's clock, whose wall clock goes back an hour whenever anybody looks at it; `waiting` is told each wait that begins. */
const goingBack = (clock: Clock.Clock, waiting: (millis: number, open: () => number) => void): Clock.Clock => {
  let [looks, open] = [0, 0]
  const wall = () => clock.currentTimeMillisUnsafe() - 3_600_000 * ++looks
  const nanos = () => BigInt(wall()) * 1_000_000n
  return {
    ...clock,
    currentTimeMillisUnsafe: wall,
    currentTimeMillis: Effect.sync(wall),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    sleep: (duration) =>
      Effect.acquireUseRelease(
        Effect.sync(() => {
          open += 1
          waiting(Duration.toMillis(duration), () => open)
        }),
        () => clock.sleep(duration),
        () => Effect.sync(() => void (open -= 1))
      )
  }
}

layer(Stand.layer)((it) => {
  it.effect("an answer that is silent is given up in its time, though the wall clock goes back all the while", () =>
    Effect.gen(function* () {
      const { url } = yield* Stand.provider("anthropic", [{ text: ["Well"], hang: true }])
      const [heard, waits] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const tooLong = yield* Deferred.make<never, string>()
      let open = () => 0
      // once its text is heard, what is waited for is the piece that never comes
      const look = () => {
        if (Deferred.isDoneUnsafe(heard) && open() > 0) Deferred.doneUnsafe(waits, Effect.void)
      }
      const clock = goingBack(yield* Clock.Clock, (millis, all) => {
        if (millis > 1_000) Deferred.doneUnsafe(tooLong, Effect.fail(`it waits ${millis} ms`))
        open = all
        look()
      })
      const hears: Stand.React = ({ _tag }) =>
        _tag === "Delta" ? Effect.andThen(Deferred.succeed(heard, undefined), Effect.sync(look)) : Effect.void
      const config = { silence: "1 second", retries: 0 }
      const run = Stand.whole("anthropic", url, { config }, hears)
      const fiber = yield* Effect.forkChild(Effect.provideService(run, Clock.Clock, clock))
      yield* Effect.raceFirst(Deferred.await(waits), Deferred.await(tooLong))
      yield* TestClock.adjust("1 second")
      const all = yield* Effect.raceFirst(Fiber.join(fiber), Deferred.await(tooLong))
      assert.strictEqual(only(all, "TurnError")[0]?.errorType, "silence")
    })
  )
})

layer(Stand.layer, { excludeTestServices: true })((it) => {
  it.effect("what an answer cost that is to be asked on is told, and once", () =>
    Effect.gen(function* () {
      const pause = { text: ["Well …"], stop: "pause" } as const
      const { url } = yield* Stand.provider("anthropic", [pause, pause, { text: ["Done."] }])
      const all = yield* whole("anthropic", url)
      const usage = {
        _tag: "Usage",
        inputTokens: 10,
        outputTokens: 5,
        model: "m",
        usd: undefined,
        context: { used: 10 }
      }
      assert.deepStrictEqual(only(all, "Usage"), [usage, usage, usage] as never)
      assert.strictEqual(only(all, "TurnCompleted")[0]?.output, "Done.")
    })
  )
})

it("the beginning and the end of a text are cut between characters", () => {
  const text = "😀".repeat(100)
  for (const head of [10, 11]) for (const tail of [10, 11]) assert.notMatch(HeadTail.of(text, head, tail), HALF)
  const pieces = HeadTail.make(5, 5)
  for (const unit of text.split("")) pieces.push(unit)
  assert.notMatch(pieces.text(), HALF)
})
