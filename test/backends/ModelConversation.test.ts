/** A conversation with a model stays one that APIs take, and holds what was answered, whatever the model and its tools said. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as path from "node:path"
import * as HeadTail from "../../src/backends/HeadTail.ts"
import * as Stand from "./ModelStand.ts"

const { call, done, only, tool, whole } = Stand

const HALF = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/

describe.each(Stand.dialects)("%s", (dialect) => {
  layer(Stand.layer, { excludeTestServices: true })((it) => {
    it.effect("an input that was answered with nothing is still there in the next run", () =>
      Effect.gen(function* () {
        const sessions = path.join(yield* Stand.folder, "sessions")
        const { asked, url } = yield* Stand.provider(dialect, [{}, { text: ["Ok."] }])
        const first = yield* whole(dialect, url, { sessions })
        assert.strictEqual(only(first, "TurnCompleted")[0]?.output, "")
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

layer(Stand.layer, { excludeTestServices: true })((it) => {
  it.effect("what an answer cost that is to be asked on is told, and once", () =>
    Effect.gen(function* () {
      const pause = { text: ["Well …"], stop: "pause" } as const
      const { url } = yield* Stand.provider("anthropic", [pause, pause, { text: ["Done."] }])
      const all = yield* whole("anthropic", url)
      const usage = { _tag: "Usage", inputTokens: 10, outputTokens: 5, usd: undefined }
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
