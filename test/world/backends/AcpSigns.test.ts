/** Signs of real ACP agents that their answers leave out: failures, and what they have spent. Recorded of the programs. */
import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as path from "node:path"
import * as AcpFault from "../../../src/runs/acp/AcpFault.ts"
import * as Messages from "../../../src/runs/acp/AcpMessages.ts"
import { AcpUpdates } from "../../../src/runs/acp/AcpUpdates.ts"
import { SessionCosts } from "../../../src/runs/acp/AcpUsage.ts"
import type { RunEvent } from "../../../src/runs/Backend.ts"

interface Wire {
  readonly dir: ">" | "<"
  readonly msg: { readonly id?: number; readonly method?: string; readonly params?: any; readonly result?: any }
}

const recorded = (name: string): ReadonlyArray<Wire> =>
  fs
    .readFileSync(path.join(import.meta.dirname, "../../fixtures/acp", `${name}.jsonl`), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))

/** The end of each turn that was recorded: its failure, where there is one, and the tokens and cost that it told. */
const turns = (name: string, costs = new SessionCosts(), updates = new AcpUpdates()) => {
  const all: Array<{ fault: AcpFault.Fault | undefined; tokens: number; usd: number; deltas: string }> = []
  let [prompt, events]: [number, Array<RunEvent>] = [-1, []]
  let agent: AcpFault.Agent = { name: "", authMethods: [] }
  for (const { dir, msg } of recorded(name)) {
    const info = msg.result?.agentInfo
    if (info !== undefined) {
      agent = { name: info.title ?? info.name, authMethods: [] }
      updates.spending.opens({ isSum: info.name === "Copilot", sessionId: "s" }, undefined, costs)
    }
    if (msg.method === "session/prompt") {
      prompt = msg.id!
      events = []
      updates.begin(`turn-${prompt}`)
    } else if (msg.method === "session/update") {
      events.push(...updates.update(Messages.read(Messages.Update, msg.params)!.update))
    } else if (msg.method === "session/request_permission") {
      const question = updates.ask(Messages.read(Messages.PermissionRequest, msg.params)!.toolCall)!
      updates.answered(question.callId, true)
    } else if (dir === "<" && msg.id === prompt) {
      const usage = Messages.usageOf(msg.result)
      const failure = updates.failure(usage)
      events.push(...updates.usage(usage))
      updates.finish({ _tag: "Completed" })
      const spent = events.flatMap((event) => (event._tag === "Usage" ? [event] : []))
      all.push({
        fault: failure === undefined ? undefined : AcpFault.ofFailure(failure, agent),
        tokens: spent.reduce((sum, { inputTokens, outputTokens }) => sum + inputTokens + outputTokens, 0),
        usd: spent.reduce((sum, { usd = 0 }) => sum + usd, 0),
        deltas: events.flatMap((event) => (event._tag === "Delta" ? [event.text] : [])).join("")
      })
    }
  }
  return all
}

describe("a failure that the answer calls a good end", () => {
  const rows: ReadonlyArray<readonly [recorded: string, type: string, outcome: string]> = [
    ["copilot-error-401", "auth", "auth"],
    ["copilot-error-402", "billing", "Fatal"],
    ["copilot-error-429", "rate_limit", "quota"],
    ["copilot-error-500", "server", "unavailable"],
    ["copilot-error-long", "overflow", "overflow"],
    ["copilot-error-cut", "connection", "unavailable"],
    ["codex-error-402", "billing", "Fatal"],
    ["codex-error-403", "auth", "auth"],
    ["codex-error-429", "rate_limit", "quota"],
    ["codex-error-500", "overloaded", "unavailable"],
    ["codex-error-long", "overflow", "overflow"],
    ["codex-error-cut", "connection", "unavailable"]
  ]
  it.each(rows)("%s (Copilot 1.0.102, codex-acp 2.6.0 with Codex 0.171.0): %s, %s", (name, type, expected) => {
    const [turn, ...more] = turns(name)
    assert.lengthOf(more, 0)
    const { errorType, message, outcome } = turn!.fault!
    assert.deepStrictEqual(
      [errorType, outcome._tag === "Uncounted" ? outcome.reason : outcome._tag],
      [type, expected],
      message
    )
  })

  it("is seen after a turn that ended well, too: Copilot then repeats its sum of tokens (1.0.102)", () => {
    const faults = turns("copilot-error-429-later").map(({ fault }) => fault?.errorType)
    assert.deepStrictEqual(faults, [undefined, "rate_limit"])
  })

  it("what Codex writes of it is no answer", () => {
    assert.notInclude(turns("codex-error-500")[0]!.deltas, "high demand")
  })

  it("is none where the turn ended well", () => {
    for (const name of ["copilot-three-turns", "codex-three-turns", "claude-three-turns"])
      assert.deepStrictEqual(
        turns(name).map(({ fault }) => fault),
        [undefined, undefined, undefined],
        name
      )
  })

  const answered = (updates: AcpUpdates, text: string, result: unknown) => {
    updates.begin("t")
    updates.update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } } as never)
    const usage = Messages.usageOf(result)
    const told = [updates.failure(usage)?.words, updates.isDoubtful(usage)]
    updates.usage(usage)
    updates.finish({ _tag: "Completed" })
    return told
  }

  it("is not read from words of an agent that tells no tokens, or that told some of this turn", () => {
    const spent = { usage: { inputTokens: 5, outputTokens: 1 } }
    const updates = new AcpUpdates()
    assert.deepStrictEqual(answered(updates, "Error: 500 is what it says", {}), [undefined, false])
    assert.deepStrictEqual(answered(updates, "Error: 500 is what it says", spent), [undefined, false])
    assert.deepStrictEqual(answered(updates, "Error: 500 is what it says", {}), ["500 is what it says", true])
    assert.deepStrictEqual(answered(updates, "done", {}), [undefined, true], "an agent that meters, and tells nothing")
    assert.deepStrictEqual(answered(updates, "done", spent), [undefined, false])
  })

  it("is not read from what a tool wrote", () => {
    const updates = new AcpUpdates()
    answered(updates, "hello", { usage: { inputTokens: 5, outputTokens: 1 } })
    updates.begin("t")
    const content = [{ type: "content", content: { type: "text", text: "Error: connection refused" } }]
    updates.update({ sessionUpdate: "tool_call", toolCallId: "a", status: "completed", content } as never)
    assert.isUndefined(updates.failure(Messages.usageOf({})))
  })

  it("ends with Codex' next turn", () => {
    const updates = new AcpUpdates()
    const status = (type: string) =>
      updates.update({ sessionUpdate: "session_info_update", _meta: { codex: { threadStatus: { type } } } } as never)
    updates.begin("t")
    status("systemError")
    assert.isDefined(updates.failure(Messages.usageOf({})))
    status("active")
    assert.isUndefined(updates.failure(Messages.usageOf({})))
    updates.finish({ _tag: "Completed" })
    updates.begin("u")
    assert.isUndefined(updates.failure(Messages.usageOf({})))
  })
})

describe("an agent that asks its model again by itself says so", () => {
  const begun = () => {
    const updates = new AcpUpdates()
    updates.begin("t")
    return updates
  }

  it("codex-acp 2.6.0: in its session's news", () => {
    const error = {
      message: "Reconnecting... 1/3",
      codexErrorInfo: { responseStreamDisconnected: { httpStatusCode: 503 } },
      additionalDetails: "unexpected status 503 Service Unavailable: overloaded, url: http://127.0.0.1:1/v1/responses",
      misalignment: null,
      turnId: "01a2236f-f5bd-7342-ac29-c7290b8785de",
      willRetry: true
    }
    const update = { sessionUpdate: "session_info_update", _meta: { codex: { error } } }
    const text = `${error.message} (${error.additionalDetails})`
    assert.deepStrictEqual(begun().update(update as never), [{ _tag: "Notice", text, retries: {} }])
    const last = { ...error, willRetry: false }
    assert.deepStrictEqual(begun().update({ ...update, _meta: { codex: { error: last } } } as never), [])
  })

  it("claude-agent-acp 0.101.0: beside the protocol, where it is asked to", () => {
    const message = {
      type: "system",
      subtype: "api_retry",
      attempt: 2,
      max_retries: 10,
      retry_delay_ms: 1115,
      error_status: 529,
      error: "overloaded",
      session_id: "s"
    }
    const text = "the API failed (529 overloaded); try 2 of 10 follows"
    assert.deepStrictEqual(begun().retried(Messages.claudeRetry({ sessionId: "s", message })), [
      { _tag: "Notice", text, retries: {} }
    ])
    assert.deepStrictEqual(new AcpUpdates().retried(text), [], "between turns it is nobody's")
    assert.deepStrictEqual(begun().retried(Messages.claudeRetry({ message: { type: "system", subtype: "init" } })), [])
  })
})

const COPILOT = { isSum: true, sessionId: "s" }

describe("sums", () => {
  it("of tokens since the process began are told as differences (Copilot), others as they are", () => {
    const tokens = (name: string) => turns(name).map((turn) => turn.tokens)
    assert.deepStrictEqual(tokens("copilot-three-turns"), [240, 120, 120])
    assert.deepStrictEqual(tokens("codex-three-turns"), [240, 120, 120])
    assert.deepStrictEqual(tokens("claude-three-turns"), [240, 120, 120])
  })

  it("of tokens go on where a daemon takes the process up", () => {
    const updates = new AcpUpdates()
    updates.spending.opens(COPILOT, undefined, new SessionCosts())
    const tell = (it: AcpUpdates, sum: number) => {
      it.begin("t")
      const [event] = it.usage(Messages.usageOf({ usage: { inputTokens: sum, outputTokens: 0 } }))
      it.finish({ _tag: "Completed" })
      return event?._tag === "Usage" ? event.inputTokens : 0
    }
    assert.deepStrictEqual(
      [100, 200].map((sum) => tell(updates, sum)),
      [100, 100]
    )
    const next = new AcpUpdates(undefined, JSON.parse(JSON.stringify(updates.known)))
    next.spending.opens(COPILOT, undefined, new SessionCosts())
    assert.deepStrictEqual(
      [300, 400].map((sum) => tell(next, sum)),
      [100, 100]
    )
  })

  const cost = (it: AcpUpdates, amount: number) => {
    it.begin("t")
    const [event] = it.update({ sessionUpdate: "usage_update", cost: { amount, currency: "USD" } } as never)
    it.finish({ _tag: "Completed" })
    return event?._tag === "Usage" ? Math.round(event.usd! * 10_000) : 0
  }

  /** A further process of the session. */
  const goesOn = (costs: SessionCosts, fork = false) => {
    const next = new AcpUpdates()
    const session = { isSum: false, sessionId: fork ? "copy" : "s" }
    next.spending.opens(session, { sessionId: "s", fork }, costs)
    return next
  }

  it("of a session's cost count once, however many processes it has (claude-agent-acp 0.101.0)", () => {
    const costs = new SessionCosts()
    const counted = turns("claude-three-turns", costs).map(({ usd }) => Math.round(usd * 10_000))
    assert.deepStrictEqual(counted, [16, 16, 16])
    const copy = goesOn(costs, true)
    assert.strictEqual(cost(copy, 0.0056), 8)
    for (const before of [0.0048, 0.0064]) {
      const next = goesOn(costs)
      assert.deepStrictEqual([cost(next, before + 0.0008), cost(next, before + 0.0016)], [8, 8])
    }
  })

  it("of a session that nobody remembers only say where to count from", () => {
    const next = goesOn(new SessionCosts())
    assert.deepStrictEqual([cost(next, 0.0056), cost(next, 0.0064)], [0, 8])
  })

  it("that a process begins anew count from nothing", () => {
    const costs = new SessionCosts()
    costs.set("s", 0.0048)
    const next = goesOn(costs)
    assert.deepStrictEqual([cost(next, 0.0008), cost(next, 0.0016)], [8, 8])
  })

  it("of costs are remembered of the newest sessions alone", () => {
    const costs = new SessionCosts()
    for (let at = 0; at < 1_001; at++) costs.set(`s${at}`, 1)
    assert.isUndefined(costs.get("s0"))
    assert.strictEqual(costs.get("s1000"), 1)
  })
})
