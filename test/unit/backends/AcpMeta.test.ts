/** Facts that an agent sends agentd in `_meta` under the key `agentd`: classes of errors, usage, and copies of sessions. */
import { assert, describe, it } from "@effect/vitest"
import * as AcpFault from "../../../src/runs/acp/AcpFault.ts"
import * as AcpMessages from "../../../src/runs/acp/AcpMessages.ts"
import * as AcpMeta from "../../../src/runs/acp/AcpMeta.ts"
import { AcpUpdates } from "../../../src/runs/acp/AcpUpdates.ts"

const agent = { name: "it", authMethods: [] }
const refused = (agentd: object, message = "no") =>
  AcpFault.ofRefusal({ code: -32603, message, data: { _meta: { agentd } } }, "the prompt", agent, 1000)

describe("an error whose class the agent names", () => {
  const cases = [
    ["rate_limit", "Uncounted", "quota"],
    ["overloaded", "Uncounted", "unavailable"],
    ["auth", "Uncounted", "auth"],
    ["overflow", "Uncounted", "overflow"],
    ["held", "Uncounted", "held"],
    ["billing", "Fatal", undefined]
  ] as const
  for (const [error, tag, reason] of cases)
    it(`${error} → ${reason ?? tag}, whatever its words say`, () => {
      const { errorType, outcome } = refused({ error }, "session not found: 500 Internal error")
      assert.deepStrictEqual([errorType, outcome._tag], [error, tag])
      if (outcome._tag === "Uncounted") assert.strictEqual(outcome.reason, reason)
    })

  it("retryAfter, in seconds, is when the next run begins", () => {
    for (const error of ["rate_limit", "overloaded"])
      assert.propertyVal(refused({ error, retryAfter: 30 }).outcome, "until", 31_000)
    assert.notProperty(refused({ error: "rate_limit" }).outcome, "until")
  })

  it("remedy is what a person reads", () => {
    assert.include(JSON.stringify(refused({ error: "billing", remedy: "buy a licence" }).outcome), "buy a licence")
    assert.include(JSON.stringify(refused({ error: "auth", remedy: "run `it login`" }).outcome), "run `it login`")
  })

  it("an unknown class, or one of the wrong type, is no class: the words decide", () => {
    for (const error of ["other", 7]) assert.strictEqual(refused({ error }, "Overloaded").errorType, "overloaded")
    assert.strictEqual(refused({ error: "auth", retryAfter: -1 }, "Overloaded").errorType, "overloaded")
  })

  it("a session that is held is not gone, whatever its words say", () => {
    const data = { _meta: { agentd: { error: "held" } } }
    assert.isFalse(AcpFault.isGone({ code: -32002, message: "session not found", data }))
    assert.isTrue(AcpFault.isGone({ code: -32002, message: "session not found" }))
  })
})

describe("usage that the agent tells as differences", () => {
  const told = (usage: object) => ({ sessionUpdate: "session_info_update", _meta: { agentd: { usage } } })
  const began = () => {
    const updates = new AcpUpdates()
    updates.begin("t1")
    return updates
  }

  it("is told at once, with its model and its price", () => {
    const usage = { input: 100, output: 5, cacheRead: 80, model: "m", usd: 0.5 }
    assert.deepStrictEqual(began().update(told(usage)), [
      { _tag: "Usage", inputTokens: 100, outputTokens: 5, cacheRead: 80, model: "m", usd: 0.5 }
    ])
  })

  it("is not told again with the usage of the whole turn", () => {
    const updates = began()
    updates.update(told({ input: 100, output: 5 }))
    const answer = {
      stopReason: "end_turn",
      usage: { inputTokens: 130, outputTokens: 9 },
      _meta: { agentd: { usage: { input: 20, output: 1 } } }
    }
    assert.deepStrictEqual(updates.usage(AcpMessages.usageOf(answer)), [
      { _tag: "Usage", inputTokens: 20, outputTokens: 1 },
      { _tag: "Usage", inputTokens: 10, outputTokens: 3 }
    ])
  })

  it("alone in the answer is no sign that the model did not answer", () => {
    const spent = AcpMessages.usageOf({ _meta: { agentd: { usage: { input: 2, output: 1 } } } })
    assert.isFalse(spent.untold)
    assert.deepStrictEqual(began().usage(spent), [{ _tag: "Usage", inputTokens: 2, outputTokens: 1 }])
  })

  it("that is negative or of the replay of an old session counts nothing", () => {
    assert.deepStrictEqual(new AcpUpdates().update(told({ input: 100, output: 5 })), [])
    assert.deepStrictEqual(began().update(told({ input: -1, output: 5 })), [])
  })
})

describe("a copy of a session", () => {
  it("is offered by a capability, and named in the answer", () => {
    assert.isTrue(AcpMeta.forks({ _meta: { agentd: { fork: true } } }))
    for (const none of [undefined, null, {}, { _meta: null }, { _meta: { agentd: { fork: "yes" } } }])
      assert.isFalse(AcpMeta.forks(none))
    assert.strictEqual(AcpMeta.copyOf({ _meta: { agentd: { sessionId: "s2" } } }), "s2")
  })
})
