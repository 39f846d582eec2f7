/** A conversation that has grown too long for its model is made shorter, and still knows what it was asked first. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import type { RunEvent } from "../../../src/runs/Backend.ts"
import * as ModelCompaction from "../../../src/model-agent/ModelCompaction.ts"
import { repair } from "../../../src/model-agent/ModelHistory.ts"
import { limitIn } from "../../../src/model-agent/ModelMemory.ts"
import type { Message } from "../../../src/model-agent/Provider.ts"
import * as Stand from "./ModelStand.ts"

const { call, done, only, tool } = Stand

const SUMMARY = "The folder holds 40 files; the third is odd."
const isSummary = (asked: Stand.Asked) => JSON.stringify(asked.body).includes("You keep the memory of an AI agent")
const sizeOf = (asked: Stand.Asked) => JSON.stringify(asked.body.messages).length

const TOO_LONG: { readonly [dialect in Stand.Dialect]: (size: number, most: number) => Stand.Reply } = {
  anthropic: (size, most) => ({
    status: 400,
    body: JSON.stringify({
      type: "error",
      error: { type: "invalid_request_error", message: `prompt is too long: ${size} tokens > ${most} maximum` }
    })
  }),
  openai: (size, most) => ({
    status: 400,
    body: JSON.stringify({
      error: {
        message: `This model's maximum context length is ${most} tokens. However, your messages resulted in ${size} tokens.`,
        type: "invalid_request_error",
        code: "context_length_exceeded"
      }
    })
  })
}

/** A model that takes `most` tokens of four characters, calls a tool that talks much `calls` times, then answers. */
const model = (dialect: Stand.Dialect, most: number, calls: number) => {
  let made = 0
  return (asked: Stand.Asked): Stand.Reply => {
    const size = Math.ceil(sizeOf(asked) / 4)
    if (size > most) return TOO_LONG[dialect](size, most)
    if (isSummary(asked)) return { text: [SUMMARY], tokens: size }
    made += 1
    return made <= calls ? { calls: [call(`c${made}`, "look")], tokens: size } : { text: ["Done."], tokens: size }
  }
}

const talks = (length: number) => tool("look", () => Effect.succeed(done("a line of the file\n".repeat(length / 19))))

const turns =
  (...texts: ReadonlyArray<string>): Stand.React =>
  (event, run) => {
    if (event._tag !== "TurnCompleted" && event._tag !== "TurnError") return Effect.void
    const next = Number(/\d+$/.exec(event.turnId)![0])
    const text = texts[next - 1]
    return text === undefined ? run.end : run.send({ turnId: `turn-${next + 1}`, text })
  }

const converse = (dialect: Stand.Dialect, url: string, setting: Stand.Setting, ...more: ReadonlyArray<string>) =>
  Effect.flatMap(Stand.start(dialect, url, setting), (run) => Stand.watch(run, Stand.allow, turns(...more)))

const outputs = (all: ReadonlyArray<RunEvent>) => only(all, "TurnCompleted").map(({ output }) => output)

describe.each(Stand.dialects)("%s", (dialect) => {
  layer(Stand.layer, { excludeTestServices: true })((it) => {
    it.effect("a conversation is compacted and still knows its first message", () =>
      Effect.gen(function* () {
        const sessions = path.join(yield* Stand.folder, "sessions")
        const first = "Remember the word MIMOSA, then look around."
        const { asked, url } = yield* Stand.provider(dialect, model(dialect, 20_000, 30))
        const config = { contextTokens: 20_000, maxOutputTokens: 1_000 }
        const setting = { sessions, config, tools: [talks(16_000)], spec: { prompt: first } }
        const all = yield* converse(dialect, url, setting, "Which word was it?")
        assert.deepStrictEqual(outputs(all), ["Done.", "Done."])
        const compacted = only(all, "Compacted")
        assert.isAtLeast(compacted.length, 1)
        for (const { from, to } of compacted) assert.isBelow(to, from)
        // counted before the call: no request was refused as too long
        assert.isTrue(asked.every((one) => sizeOf(one) / 4 <= 20_000))
        const told = Stand.heard(asked.at(-1)!)
        assert.isTrue(told.some((line) => line.includes("MIMOSA")))
        assert.strictEqual(told.at(-1), "user: Which word was it?")
        // and so after a restart
        const resume = { sessionId: "run-1", fork: false }
        yield* converse(dialect, url, { ...setting, spec: { runId: "run-2", prompt: "And now?", resume } })
        assert.isTrue(Stand.heard(asked.at(-1)!).some((line) => line.includes("MIMOSA")))
      })
    )

    it.effect("results of tools go first; a summary is asked for only where that is not enough", () =>
      Effect.gen(function* () {
        const { asked, url } = yield* Stand.provider(dialect, model(dialect, 20_000, 5))
        const config = { contextTokens: 20_000, maxOutputTokens: 1_000 }
        const all = yield* converse(dialect, url, { config, tools: [talks(16_000)] })
        assert.strictEqual(asked.filter(isSummary).length, 0)
        const [one] = only(all, "Compacted")
        assert.isAtLeast(one!.cutResults, 1)
        assert.strictEqual(one!.summarised, 0)
      })
    )

    it.effect("a prompt that the provider calls too long leads to one compaction, by the limit that it names", () =>
      Effect.gen(function* () {
        const { asked, url } = yield* Stand.provider(dialect, model(dialect, 20_000, 12))
        const all = yield* converse(dialect, url, { config: { maxOutputTokens: 1_000 }, tools: [talks(16_000)] })
        assert.deepStrictEqual(outputs(all), ["Done."])
        // once refused, its limit is known
        assert.strictEqual(asked.filter((one) => sizeOf(one) / 4 > 20_000).length, 1)
        assert.isAtLeast(only(all, "Compacted").length, 2)
      })
    )

    it.effect("what is still too long after its compaction is final: the turn fails, and nothing is asked again", () =>
      Effect.gen(function* () {
        let [calls, after] = [0, 0]
        const { asked, url } = yield* Stand.provider(dialect, (one) => {
          if (isSummary(one)) return { text: [SUMMARY] }
          calls += 1
          if (calls <= 3) return { calls: [call(`c${calls}`, "look")] }
          after += 1
          return TOO_LONG[dialect](200_251, 200_000)
        })
        const all = yield* converse(dialect, url, { tools: [talks(16_000)] })
        const [failed] = only(all, "TurnError")
        assert.deepStrictEqual([failed?.errorType, failed?.retry], ["overflow", false])
        assert.strictEqual(after, 2)
        assert.strictEqual(only(all, "Compacted").length, 1)
        assert.isAtMost(asked.length, 6)
      })
    )

    it.effect("a compaction that fails is an ordinary error, and the history is kept", () =>
      Effect.gen(function* () {
        const sessions = path.join(yield* Stand.folder, "sessions")
        const answers = model(dialect, 20_000, 30)
        let isDown = true
        const { asked, url } = yield* Stand.provider(dialect, (one) =>
          isDown && isSummary(one)
            ? { status: 529, body: JSON.stringify({ error: { message: "busy" } }) }
            : answers(one)
        )
        const config = { contextTokens: 20_000, maxOutputTokens: 1_000, retries: 0 }
        const setting = { sessions, config, tools: [talks(16_000)], spec: { prompt: "Say MIMOSA." } }
        const all = yield* converse(dialect, url, setting)
        const [failed] = only(all, "TurnError")
        assert.deepStrictEqual([failed?.errorType, failed?.retry], ["overloaded", true])
        const outcome = only(all, "Exited")[0]!.outcome
        assert.deepStrictEqual(outcome._tag === "Uncounted" ? outcome.reason : outcome._tag, "unavailable")
        isDown = false
        const resume = { sessionId: "run-1", fork: false }
        const next = yield* converse(dialect, url, { ...setting, spec: { runId: "run-2", prompt: "On.", resume } })
        assert.deepStrictEqual(outputs(next), ["Done."])
        assert.isTrue(Stand.heard(asked.at(-1)!).some((line) => line.includes("MIMOSA")))
      })
    )

    it.effect("a daemon that is killed in the midst of a compaction finds the whole conversation", () =>
      Effect.gen(function* () {
        const sessions = path.join(yield* Stand.folder, "sessions")
        const answers = model(dialect, 20_000, 30)
        const asks = yield* Deferred.make<void>()
        const { url } = yield* Stand.provider(dialect, (one) => {
          if (!isSummary(one)) return answers(one)
          Deferred.doneUnsafe(asks, Effect.void)
          return { hang: true }
        })
        const config = { contextTokens: 20_000, maxOutputTokens: 1_000 }
        const run = yield* Stand.start(dialect, url, { sessions, config, tools: [talks(16_000)] })
        const reader = yield* Effect.forkChild(Stand.watch(run, Stand.allow))
        yield* Deferred.await(asks)
        const file = path.join(sessions, "run-1.jsonl")
        const inTheMidst = fs.readFileSync(file, "utf8")
        assert.isTrue(inTheMidst.startsWith('{"message":{"role":"user","text":"do it"}}\n'))
        assert.isAbove(inTheMidst.split("\n").length, 5)
        yield* run.kill
        yield* Fiber.join(reader)
        assert.isTrue(fs.readFileSync(file, "utf8").startsWith(inTheMidst))
        // what a kill leaves half written beside it is nobody's
        fs.writeFileSync(`${file}.new`, '{"message":{"role"')
        const calm = yield* Stand.provider(dialect, [{ text: ["Well."] }])
        const resume = { sessionId: "run-1", fork: false }
        yield* converse(dialect, calm.url, { sessions, spec: { runId: "run-2", prompt: "On.", resume } })
        assert.strictEqual(Stand.heard(calm.asked[0]!)[0], "user: do it")
      })
    )
  })
})

describe("ModelCompaction", () => {
  const user = (text: string): Message => ({ role: "user", text })
  const said = (text: string): Message => ({ role: "assistant", parts: [{ type: "text", text }] })
  const calls = (id: string): Message => ({ role: "assistant", parts: [{ type: "call", id, name: "look", input: {} }] })
  const results = (callId: string, output: string): Message => ({
    role: "tool",
    results: [{ callId, output, error: false }]
  })
  const size = (message: Message) => JSON.stringify(message).length

  const long = "x".repeat(5_000)
  const histories: ReadonlyArray<readonly [string, ReadonlyArray<Message>]> = [
    ["words alone", [user("a"), said("b"), user("c")]],
    ["a long loop", [user("a"), ...[1, 2, 3, 4].flatMap((n) => [calls(`c${n}`), results(`c${n}`, long)])]],
    ["a loop, then an input", [user("a"), calls("c1"), results("c1", long), said("b"), user("c")]],
    ["one result that is all", [user("a"), calls("c1"), results("c1", "x".repeat(100_000))]]
  ]
  it.each(histories)("%s: what comes out is valid, and holds every input in its own words", (_, history) => {
    const parts = ModelCompaction.part(history, 8_000, size)
    assert.deepStrictEqual([...parts.older, ...parts.tail], history)
    assert.notStrictEqual(parts.tail[0]?.role, "tool")
    const { history: made } = ModelCompaction.bySummary(parts, "s", 8_000)
    const inputs = (all: ReadonlyArray<Message>) => all.filter((one) => one.role === "user" && one.note !== true)
    assert.deepStrictEqual(inputs(made), inputs(history))
    assert.deepStrictEqual(repair([...made, said("end")]), [...made, said("end")])
    assert.isBelow(
      made.reduce((sum, one) => sum + size(one), 0),
      8_000
    )
  })

  it("the question for a summary is bounded, whatever is to be summed up", () => {
    const older = Array.from({ length: 2_000 }, (_, n) => said(`${n} ${long}`))
    const request = ModelCompaction.question({ older, tail: [] }, 40_000, 1_000)
    assert.isBelow(JSON.stringify(request).length, 40_000)
  })

  it.each<readonly [string, number | undefined]>([
    ["prompt is too long: 208310 tokens > 200000 maximum", 200_000],
    ["This model's maximum context length is 128,000 tokens. However, you requested 130000 tokens", 128_000],
    ["the request exceeds the available context size (8192 tokens), try increasing it", 8_192],
    ["input exceeds the context window of 32768 tokens", 32_768],
    ["too many tokens", undefined],
    ["the context size is 12 somethings", undefined]
  ])("%s", (message, expected) => {
    assert.strictEqual(limitIn(message), expected)
  })
})
