/** Spending as an ACP agent tells it: with its requests where it can, and never twice. */
import { assert, describe, it } from "@effect/vitest"
import type { RunEvent } from "../../../src/runs/Backend.ts"
import * as Messages from "../../../src/runs/acp/AcpMessages.ts"
import { AcpUpdates } from "../../../src/runs/acp/AcpUpdates.ts"

type Usage = Extract<RunEvent, { readonly _tag: "Usage" }>
const of = (events: ReadonlyArray<RunEvent>) => events.filter((event): event is Usage => event._tag === "Usage")

const began = () => {
  const updates = new AcpUpdates()
  updates.begin("t1")
  return updates
}
/** As Qwen Code tells it: a piece of the answer without words. */
const call = (usage: object) => ({
  sessionUpdate: "agent_message_chunk",
  content: { type: "text", text: "" },
  _meta: { usage, durationMs: 12 }
})
const first = call({ inputTokens: 1000, outputTokens: 50, totalTokens: 1080, thoughtTokens: 30, cachedReadTokens: 600 })

describe("the usage of an ACP agent", () => {
  it("is told with each request, where its pieces of an answer tell it", () => {
    const updates = began()
    assert.deepStrictEqual(of(updates.update(first)), [
      { _tag: "Usage", inputTokens: 1000, outputTokens: 80, cacheRead: 600 }
    ])
    assert.deepStrictEqual(of(updates.update(call({ inputTokens: 5, outputTokens: 1 }))), [
      { _tag: "Usage", inputTokens: 5, outputTokens: 1 }
    ])
  })

  it("that was told with the requests is not told again with the answer", () => {
    const updates = began()
    updates.update(first)
    const answer = { usage: { inputTokens: 400, cachedReadTokens: 600, outputTokens: 100 } }
    assert.deepStrictEqual(updates.usage(Messages.usageOf(answer)), [
      { _tag: "Usage", inputTokens: 0, outputTokens: 20 }
    ])
    updates.begin("t2")
    assert.strictEqual(updates.usage(Messages.usageOf(answer)).length, 1, "a new turn counts anew")
  })

  it("of an old session that is replayed is nobody's", () => {
    assert.deepStrictEqual(new AcpUpdates().update(first), [])
  })

  it("is of the model that the session names, or its newest update", () => {
    const updates = began()
    updates.spending.model = "anthropic/claude-opus-5"
    assert.strictEqual(of(updates.update(first))[0]?.model, "anthropic/claude-opus-5")
    updates.update({ sessionUpdate: "usage_update", _meta: { "_claude/model": "claude-opus-5-5" } } as never)
    assert.strictEqual(of(updates.update(first))[0]?.model, "claude-opus-5-5")
  })

  it("has its cost from the agent where that says it: the tokens that follow say so", () => {
    const updates = began()
    const cost = { sessionUpdate: "usage_update", cost: { amount: 0.5, currency: "USD" } }
    assert.deepStrictEqual(updates.update(cost), [{ _tag: "Usage", inputTokens: 0, outputTokens: 0, usd: 0.5 }])
    assert.strictEqual(of(updates.update(first))[0]?.usd, 0)
  })

  it("that is no number, or less than nothing, is nothing", () => {
    const updates = began()
    for (const usage of [
      { inputTokens: -7, outputTokens: -1, totalTokens: -9, cachedReadTokens: -3 },
      { inputTokens: Number.NaN, outputTokens: 3 },
      { inputTokens: "5", outputTokens: 3 },
      { inputTokens: Number.POSITIVE_INFINITY, outputTokens: 3 },
      null
    ])
      assert.deepStrictEqual(of(updates.update(call(usage as never))), [], JSON.stringify(usage))
    for (const amount of [-1, Number.NaN, Number.POSITIVE_INFINITY])
      assert.deepStrictEqual(
        updates.update({ sessionUpdate: "usage_update", cost: { amount, currency: "USD" } } as never),
        []
      )
  })
})
