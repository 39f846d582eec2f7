/** Words of a run on their way to the log: thoughts, from each wire to the terminal and the page, apart from the answer; and their order. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { AcpUpdates } from "../../../src/runs/acp/AcpUpdates.ts"
import type { RunEvent } from "../../../src/runs/Backend.ts"
import { ClaudeStream } from "../../../src/runs/claude/ClaudeStream.ts"
import * as Anthropic from "../../../src/model-agent/AnthropicProvider.ts"
import * as OpenAi from "../../../src/model-agent/OpenAiProvider.ts"
import { ProviderError } from "../../../src/model-agent/Provider.ts"
import { AttachView } from "../../../src/cli/tui/AttachView.ts"
import { ChatItems } from "../../../src/web/ChatItems.ts"
import { caller, make as makeWorld } from "../../world/agents/AgentWorld.ts"
import * as Puppet from "../../world/agents/Puppet.ts"
import { until } from "../../world/agents/World.ts"

const account = { key: "k", keySource: "K", baseUrl: "https://api.example.org", model: "m" }
const thoughtsIn = (events: ReadonlyArray<RunEvent>): ReadonlyArray<string> =>
  events.flatMap((event) => (event._tag === "Delta" && event.stream === "thinking" ? [event.text] : []))

describe("thoughts on the wire", () => {
  it("Claude Code: in pieces and whole, told once", () => {
    const stream = new ClaudeStream(7)
    stream.give("t1", "u1", "go")
    const streamed = (event: object) => ({ type: "stream_event", event })
    const block = { type: "thinking", thinking: "Is it so? It is.", signature: "s" }
    const records = [
      { type: "system", subtype: "init", session_id: "s" },
      streamed({ type: "message_start", message: { id: "m1" } }),
      streamed({ type: "content_block_start", index: 0, content_block: { type: "thinking" } }),
      streamed({ type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "Is it so? " } }),
      streamed({ type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "It is." } }),
      { type: "assistant", message: { id: "m1", content: [block] } },
      { type: "assistant", message: { id: "m2", content: [{ ...block, thinking: "And now?" }] } }
    ]
    const events = records.flatMap((record) => stream.take(record, 0).events)
    assert.deepStrictEqual(thoughtsIn(events), ["Is it so? ", "It is.", "And now?"])
  })

  it("ACP: a thought's chunk is no part of the answer", () => {
    const updates = new AcpUpdates()
    updates.begin("t1")
    const chunk = (sessionUpdate: string, text: string) => ({ sessionUpdate, content: { type: "text", text } })
    const events = [chunk("agent_thought_chunk", "hm"), chunk("agent_message_chunk", "Yes.")].flatMap((one) =>
      updates.update(one)
    )
    assert.deepStrictEqual(thoughtsIn(events), ["hm"])
    const [done] = updates.finish({ _tag: "Completed" })
    assert.deepStrictEqual(done, { _tag: "TurnCompleted", turnId: "t1", output: "Yes." })
  })

  it("APIs of models: Anthropic's thinking, and the reasoning of others", () => {
    const told = (assembly: ReturnType<typeof OpenAi.assembly>, chunks: ReadonlyArray<object>) =>
      chunks.flatMap((chunk) => {
        const taken = assembly.take(JSON.stringify(chunk), 0)
        if (taken instanceof ProviderError) throw taken
        return taken.filter(({ _tag }) => _tag === "Thought")
      })
    const thought = { _tag: "Thought", text: "hm" } as const
    assert.deepStrictEqual(
      told(Anthropic.assembly(account), [
        { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "", signature: "" } },
        { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "hm" } }
      ]),
      [thought]
    )
    for (const name of ["reasoning_content", "reasoning"])
      assert.deepStrictEqual(
        told(OpenAi.assembly(account), [{ choices: [{ index: 0, delta: { [name]: "hm" }, finish_reason: null }] }]),
        [thought]
      )
  })
})

const completed = (turnId: string): RunEvent => ({ _tag: "TurnCompleted", turnId, output: "Done." })

/** With one turn under way. */
const working = Effect.gen(function* () {
  const puppet = Puppet.make()
  const world = yield* makeWorld([], {}, { puppet })
  yield* world.tree.send("work", "queue", caller)
  const run = yield* puppet.run()
  yield* until(
    Effect.sync(() => world.tree.turn().state),
    (state) => state === "streaming"
  )
  return { run, turnId: run.spec.turnId, world }
})

describe("words of a run", () => {
  it.live("that come with a call and its result stand behind them", () =>
    Effect.gen(function* () {
      const { run, turnId, world } = yield* working
      yield* run.say(
        { _tag: "Delta", stream: "assistant", text: "I look." },
        { _tag: "ToolCall", callId: "c", tool: "shell", arguments: {}, readOnly: true },
        { _tag: "ToolResult", callId: "c", status: "success", output: "12 passed" },
        { _tag: "Delta", stream: "assistant", text: "All pass." },
        completed(turnId)
      )
      yield* world.kind("turn.completed")
      const kinds = ["turn.assistant_delta", "tool.call", "tool.result", "turn.completed"]
      const runes = yield* world.log.tail({ kinds }, 10)
      assert.deepStrictEqual(
        runes.map(({ kind, payload }) => payload["content"] ?? kind),
        ["I look.", "tool.call", "tool.result", "All pass.", "turn.completed"]
      )
    }).pipe(Effect.scoped)
  )
})

describe("thoughts of a run", () => {
  it.live("are runes of their own, without secrets that come in pieces, and no part of the answer", () =>
    Effect.gen(function* () {
      const { run, turnId, world } = yield* working
      const thinks = (text: string): RunEvent => ({ _tag: "Delta", stream: "thinking", text })
      yield* run.say(
        thinks("The key is sk-ant-"),
        thinks("api03-abcdefghijklmnopqrstuvwxyz0123456789 and\n"),
        thinks("nothing else."),
        { _tag: "Delta", stream: "assistant", text: "Done." },
        completed(turnId)
      )
      const [done] = yield* world.kind("turn.completed")
      assert.strictEqual(done!.payload["final_output"], "Done.")
      const runes = yield* world.log.tail({ kinds: ["run.thought", "turn.assistant_delta"] }, 10)
      const text = runes
        .flatMap(({ kind, payload }) => (kind === "run.thought" ? [String(payload["text"])] : []))
        .join("")
      assert.match(text, /^The key is .* and\nnothing else\.$/)
      assert.notInclude(text, "api03")
      assert.strictEqual(runes.at(-1)!.kind, "turn.assistant_delta", "in the order in which they were told")

      const view = new AttachView()
      const lines = [...runes, done!].flatMap((rune) => view.feed(rune)).map((line) => line.text)
      assert.match(lines[0]!, /^ {2}┊ The key is /)
      assert.deepStrictEqual(lines.slice(1, 3), ["  ┊ nothing else.", "Done."])

      const talk = new ChatItems()
      for (const rune of [...runes, done!]) talk.feed(rune)
      assert.deepStrictEqual(
        talk.items.map((item) => [item.is, "isOpen" in item && item.isOpen]),
        [
          ["thought", false],
          ["said", false]
        ]
      )
    }).pipe(Effect.scoped)
  )

  it.live("and the answer stand in the order in which the run said them", () =>
    Effect.gen(function* () {
      const { run, turnId, world } = yield* working
      const says = (stream: "assistant" | "thinking", text: string): RunEvent => ({ _tag: "Delta", stream, text })
      yield* run.say(says("assistant", "I look. "), says("thinking", "Is it so?"), says("assistant", "It is."))
      yield* run.say(
        says("thinking", "And "),
        says("thinking", "now?\n"),
        says("assistant", "Done.\n"),
        completed(turnId)
      )
      yield* world.kind("turn.completed")
      const runes = yield* world.log.tail({ kinds: ["run.thought", "turn.assistant_delta"] }, 10)
      assert.deepStrictEqual(
        runes.map(({ payload }) => payload["text"] ?? payload["content"]),
        ["I look. ", "Is it so?", "It is.", "And now?\n", "Done.\n"]
      )
    }).pipe(Effect.scoped)
  )

  it.live("are bounded by the turn, which says so once, and no secret is cut by the bound", () =>
    Effect.gen(function* () {
      const { run, turnId, world } = yield* working
      const thinks = (text: string): RunEvent => ({ _tag: "Delta", stream: "thinking", text })
      const line = `${"x".repeat(63)}\n`
      for (let n = 0; n < 4; n++) yield* run.say(thinks(line.repeat(n < 3 ? 1024 : 1023)))
      yield* run.say(thinks(`${"y".repeat(48)}: sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789\n`))
      for (let n = 0; n < 3; n++) yield* run.say(thinks("beyond it\n"))
      yield* run.say(completed(turnId))
      yield* world.kind("turn.completed")
      yield* world.tree.send("more work", "queue", caller)
      yield* until(
        Effect.sync(() => run.sent.length),
        (count) => count > 0
      )
      yield* run.say(thinks("A new turn.\n"), completed(run.sent.at(-1)!.turnId))
      yield* until(world.log.tail({ kinds: ["turn.completed"] }, 10), ({ length }) => length === 2)
      const runes = yield* world.log.tail({ kinds: ["run.thought"] }, 100)
      const text = runes.map(({ payload }) => String(payload["text"])).join("")
      assert.strictEqual(text.split("more thoughts are omitted").length, 2)
      assert.notInclude(text, "sk-ant")
      assert.notInclude(text, "beyond it")
      assert.match(text, /A new turn\.\n$/)
    }).pipe(Effect.scoped)
  )

  it.live("are kept up to a bound, and what is beyond it harms nothing", () =>
    Effect.gen(function* () {
      const { run, turnId, world } = yield* working
      for (let n = 0; n < 8; n++) yield* run.say({ _tag: "Delta", stream: "thinking", text: "漢".repeat(100_000) })
      yield* run.say(completed(turnId))
      yield* world.kind("turn.completed")
      const runes = yield* world.log.tail({ kinds: ["run.thought"] }, 100)
      const size = runes.reduce((sum, { payload }) => sum + String(payload["text"]).length, 0)
      assert.isAbove(size, 40_000)
      assert.isAtMost(size, 300_000)
    }).pipe(Effect.scoped)
  )
})
