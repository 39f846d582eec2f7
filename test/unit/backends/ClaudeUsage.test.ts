/** Spending as Claude Code tells it: once, with each request, whatever else it says. */
import { assert, describe, it } from "@effect/vitest"
import type { RunEvent } from "../../../src/runs/Backend.ts"
import { ClaudeStream } from "../../../src/runs/claude/ClaudeStream.ts"
import type { ClaudeRecord } from "../../../src/runs/claude/ClaudeRecord.ts"

type Usage = Extract<RunEvent, { readonly _tag: "Usage" }>

const UUID = "11111111-1111-4111-8111-111111111111"
const init = { type: "system", subtype: "init", session_id: "s" }
const stream = (event: object, more: object = {}) => ({
  type: "stream_event",
  parent_tool_use_id: null,
  event,
  ...more
})
const start = (id: string, usage: object, model = "claude-opus-5") =>
  stream({ type: "message_start", message: { id, model, usage } })
const delta = (usage: object) => stream({ type: "message_delta", usage })
const whole = (id: string, usage: object, more: object = {}) => ({
  type: "assistant",
  parent_tool_use_id: null,
  message: { id, model: "claude-opus-5", content: [{ type: "text", text: "x" }], usage },
  ...more
})
const result = (more: object = {}) => ({ type: "result", subtype: "success", is_error: false, result: "x", ...more })

/** Each record with the usage that it led to. */
const heard = (records: ReadonlyArray<ClaudeRecord>) => {
  const cli = new ClaudeStream(7)
  cli.give("t1", UUID, "go")
  return records.map((record) => cli.take(record, 0).events.filter((event): event is Usage => event._tag === "Usage"))
}
const sums = (told: ReadonlyArray<ReadonlyArray<Usage>>) =>
  told.flat().reduce(
    (sum, { inputTokens, outputTokens, usd = 0 }) => ({
      input: sum.input + inputTokens,
      output: sum.output + outputTokens,
      usd: sum.usd + usd
    }),
    { input: 0, output: 0, usd: 0 }
  )

describe("the usage of Claude Code", () => {
  it("is told with each request, with its model and the parts of its cache", () => {
    const told = heard([
      init,
      start("m1", {
        input_tokens: 10,
        cache_read_input_tokens: 300,
        cache_creation_input_tokens: 20,
        output_tokens: 1
      }),
      delta({ output_tokens: 40 }),
      start("m2", { input_tokens: 12, cache_read_input_tokens: 400, output_tokens: 1 }),
      delta({ output_tokens: 50 })
    ])
    assert.deepStrictEqual(told, [
      [],
      [],
      [
        {
          _tag: "Usage",
          inputTokens: 330,
          outputTokens: 40,
          cacheRead: 300,
          cacheWrite: 20,
          model: "claude-opus-5",
          context: { used: 330 }
        }
      ],
      [],
      [
        {
          _tag: "Usage",
          inputTokens: 412,
          outputTokens: 50,
          cacheRead: 400,
          model: "claude-opus-5",
          context: { used: 412 }
        }
      ]
    ])
  })

  it("of one message counts once, in however many lines it is repeated", () => {
    const usage = { input_tokens: 100, output_tokens: 20 }
    const told = heard([
      init,
      start("m1", { input_tokens: 100, output_tokens: 1 }),
      whole("m1", { input_tokens: 100, output_tokens: 1 }),
      whole("m1", usage),
      delta({ output_tokens: 20 }),
      delta({ output_tokens: 20 }),
      whole("m1", usage),
      start("m1", { input_tokens: 100, output_tokens: 1 }),
      delta({ output_tokens: 20 }),
      result({
        modelUsage: { "claude-opus-5": { inputTokens: 100, outputTokens: 20, costUSD: 0.5 } },
        total_cost_usd: 0.5
      })
    ])
    assert.deepStrictEqual(sums(told), { input: 100, output: 20, usd: 0.5 })
  })

  it("of a subagent is told with its message, not at the turn's end", () => {
    const usage = { input_tokens: 700, output_tokens: 5 }
    const told = heard([
      init,
      start("m1", { input_tokens: 100, output_tokens: 1 }),
      whole("s1", usage, { parent_tool_use_id: "task" }),
      whole("s1", usage, { parent_tool_use_id: "task" }),
      delta({ output_tokens: 20 }),
      result({
        total_cost_usd: 1,
        modelUsage: { "claude-opus-5": { inputTokens: 800, outputTokens: 60, costUSD: 1 } }
      })
    ])
    assert.deepStrictEqual(sums([told[2]!]), { input: 700, output: 5, usd: 0 })
    assert.deepStrictEqual(sums(told), { input: 800, output: 60, usd: 1 })
  })

  it("of a CLI that does not stream is told with its messages", () => {
    const told = heard([init, whole("m1", { input_tokens: 100, output_tokens: 20 }), whole("m2", { input_tokens: 7 })])
    assert.deepStrictEqual(
      told.map((one) => sums([one]).input),
      [0, 100, 7]
    )
  })

  it("of a turn that is interrupted is told, what was cut off included", () => {
    const cli = new ClaudeStream(7)
    cli.give("t1", UUID, "go")
    const take = (record: ClaudeRecord) => cli.take(record, 0).events
    take(init)
    take(start("m1", { input_tokens: 100, output_tokens: 3 }))
    cli.interrupt()
    const events = take({ type: "result", subtype: "error_during_execution", is_error: true })
    assert.deepStrictEqual(
      events.map(({ _tag }) => _tag),
      ["Usage", "TurnInterrupted"]
    )
    assert.deepStrictEqual(sums([events.filter((event): event is Usage => event._tag === "Usage")]), {
      input: 100,
      output: 3,
      usd: 0
    })
  })

  it("of a process that dies within its turn is told", () => {
    const cli = new ClaudeStream(7)
    cli.give("t1", UUID, "go")
    cli.take(init, 0)
    cli.take(start("m1", { input_tokens: 100, output_tokens: 3 }), 0)
    const [usage] = cli.end({ _tag: "Interrupted" })
    assert.deepInclude(usage, { _tag: "Usage", inputTokens: 100, outputTokens: 3 })
  })

  it("that is no number, or less than nothing, is nothing", () => {
    const told = heard([
      init,
      start("m1", { input_tokens: -100, cache_read_input_tokens: "9", output_tokens: null }),
      delta({ output_tokens: Number.NaN }),
      start("m2", { input_tokens: Number.POSITIVE_INFINITY }),
      delta({ output_tokens: -1 }),
      result({ total_cost_usd: -3, modelUsage: { m: { inputTokens: -5, outputTokens: {}, costUSD: -1 }, n: 7 } })
    ])
    assert.deepStrictEqual(told.flat(), [])
  })

  it("by another name in the result is not told again", () => {
    const told = heard([
      init,
      start("m1", { input_tokens: 100, output_tokens: 1 }),
      delta({ output_tokens: 20 }),
      result({
        total_cost_usd: 1,
        modelUsage: { "claude-opus-5[1m]": { inputTokens: 100, outputTokens: 20, costUSD: 1 } }
      })
    ])
    assert.deepStrictEqual(sums(told), { input: 100, output: 20, usd: 1 })
  })

  it("is bounded, however many messages there are", () => {
    const usage = { input_tokens: 1, output_tokens: 1 }
    const many = Array.from({ length: 5000 }, (_, index) => whole(`m${index}`, usage, { parent_tool_use_id: "task" }))
    assert.strictEqual(sums(heard([init, ...many])).input, 5000)
  })
})
