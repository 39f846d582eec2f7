import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { RequestPermissionRequest, SessionUpdate, ToolCall, ToolCallUpdate } from "@agentclientprotocol/sdk"
import * as fs from "node:fs"
import * as path from "node:path"
import * as AcpFault from "../../../src/runs/acp/AcpFault.ts"
import * as Messages from "../../../src/runs/acp/AcpMessages.ts"
import { AcpUpdates } from "../../../src/runs/acp/AcpUpdates.ts"
import type { RunEvent } from "../../../src/runs/Backend.ts"

/** Proof that ours reads all that the protocol's own types allow: else this file does not compile. */
export const reads: (
  message: ToolCall | ToolCallUpdate | RequestPermissionRequest["toolCall"]
) => typeof Messages.ToolCall.Encoded = (message) => message

interface Wire {
  readonly dir: ">" | "<"
  readonly msg: {
    readonly id?: number
    readonly method?: string
    readonly params?: any
    readonly result?: any
    readonly error?: any
  }
}

const recorded = (name: string): ReadonlyArray<Wire> =>
  fs
    .readFileSync(path.join(import.meta.dirname, "../../fixtures/acp", `${name}.jsonl`), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))

/** The events of the one turn that was recorded. */
const replay = (name: string): ReadonlyArray<RunEvent> => {
  const updates = new AcpUpdates()
  const events: Array<RunEvent> = []
  let [prompt, asked, cancelled] = [-1, "", false]
  for (const { dir, msg } of recorded(name)) {
    if (msg.method === "session/prompt") {
      prompt = msg.id!
      updates.begin("turn-1")
    } else if (msg.method === "session/cancel") {
      cancelled = true
      updates.cancel()
    } else if (msg.method === "session/update") {
      events.push(...updates.update(Messages.read(Messages.Update, msg.params)!.update))
    } else if (msg.method === "session/request_permission") {
      const question = updates.ask(Messages.read(Messages.PermissionRequest, msg.params)!.toolCall)!
      asked = question.callId
      // nothing more is heard of it until it is answered
      events.push(...question.events, ...updates.settle(updates.version))
    } else if (dir === ">" && msg.result?.outcome !== undefined) {
      events.push(...updates.answered(asked, !/reject/.test(msg.result.outcome.optionId)))
    } else if (dir === "<" && msg.id === prompt) {
      if (msg.error === undefined) {
        events.push(...updates.usage(Messages.usageOf(msg.result)))
        events.push(...updates.finish({ _tag: cancelled ? "Interrupted" : "Completed" }))
      } else {
        const fault = AcpFault.ofRefusal(msg.error, "the prompt", { name: "it", authMethods: [] }, 0)
        events.push(...updates.finish({ _tag: "Failed", ...fault }))
      }
    }
  }
  return events
}

const short = (events: ReadonlyArray<RunEvent>) =>
  events.map((event) => {
    switch (event._tag) {
      case "ToolCall":
        return `ToolCall ${event.tool} ${JSON.stringify(event.arguments)}`
      case "ApprovalRequested":
        return `ApprovalRequested ${event.reason}`
      case "ToolResult":
        return `ToolResult ${event.status}`
      case "Usage":
        return `Usage ${event.inputTokens} ${event.outputTokens} ${event.usd ?? 0}`
      case "TurnCompleted":
      case "TurnInterrupted":
        return `${event._tag} ${event.output}`
      case "TurnError":
        return `TurnError ${event.errorType}`
      default:
        return event._tag
    }
  })

const update = (updates: AcpUpdates, sessionUpdate: string, fields: object = {}) =>
  updates.update({ sessionUpdate, ...fields })

describe("recorded sessions", () => {
  const touch = '{"command":"touch made-by-agent.txt","description":"run a shell command"'
  const asks = "ApprovalRequested touch made-by-agent.txt"
  const cases: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
    [
      "opencode-permission",
      [
        "TurnStarted",
        `ToolCall execute ${touch},"cwd":"/home/user/project"}`,
        asks,
        "ToolStarted",
        "ToolResult success",
        "Delta",
        "Usage 100 20 0",
        "TurnCompleted Made it."
      ]
    ],
    [
      "opencode-reject",
      [
        "TurnStarted",
        `ToolCall execute ${touch},"cwd":"/home/user/project"}`,
        asks,
        "ToolResult denied",
        "Usage 100 20 0",
        "TurnCompleted "
      ]
    ],
    [
      "opencode-cancel-tool",
      [
        "TurnStarted",
        "Delta",
        'ToolCall execute {"command":"sleep 20; echo done","description":"run a shell command","cwd":"/home/user/project"}',
        "ApprovalRequested sleep 20; echo done",
        "ToolStarted",
        "ToolResult cancelled",
        "TurnInterrupted Waiting."
      ]
    ],
    ["opencode-error-401", ["TurnStarted", "TurnError auth"]],
    [
      "claude-permission",
      [
        "TurnStarted",
        `ToolCall Bash ${touch}}`,
        asks,
        "ToolStarted",
        "ToolResult success",
        "Delta",
        "Usage 0 0 0.0024000000000000002",
        "Usage 200 40 0",
        "TurnCompleted Made it."
      ]
    ],
    [
      "claude-reject",
      [
        "TurnStarted",
        `ToolCall Bash ${touch}}`,
        asks,
        "ToolResult denied",
        "Delta",
        "Usage 0 0 0.0024000000000000002",
        "Usage 200 40 0",
        "TurnCompleted Made it."
      ]
    ],
    [
      "gemini-permission",
      [
        "TurnStarted",
        'ToolCall execute {"title":"touch made-by-agent.txt","content":[{"type":"content","content":{"type":"text","text":"[current working directory /home/user/project] (run a shell command)"}}]}',
        asks,
        "ToolStarted",
        "ToolResult success",
        "Delta",
        "Usage 200 40 0",
        "TurnCompleted Made it."
      ]
    ]
  ]
  for (const [name, expected] of cases) {
    it(name, () => assert.deepStrictEqual(short(replay(name)), expected))
  }
})

describe("AcpUpdates", () => {
  it("the answer is the last message: what was said before a tool is none of it", () => {
    const updates = new AcpUpdates()
    updates.begin("turn-1")
    const say = (text: string, messageId?: string) =>
      update(updates, "agent_message_chunk", { content: { type: "text", text }, messageId })
    say("I look.")
    update(updates, "tool_call", { toolCallId: "t", status: "in_progress" })
    say("It ")
    update(updates, "tool_call_update", { toolCallId: "t", status: "completed" })
    say("works.")
    assert.strictEqual((updates.finish({ _tag: "Completed" }).at(-1) as { output: string }).output, "It works.")
    updates.begin("turn-2")
    say("One.", "m1")
    say("Two.", "m2")
    assert.strictEqual((updates.finish({ _tag: "Completed" }).at(-1) as { output: string }).output, "Two.")
  })

  it("the config says which kinds and which tools change nothing; the agent's word alone does not", () => {
    const updates = new AcpUpdates({ trustKinds: ["search"], readOnlyTools: ["look"] })
    updates.begin("turn-1")
    const call = (more: object) =>
      update(updates, "tool_call", { status: "in_progress", ...more }).flatMap((event) =>
        event._tag === "ToolCall" ? [event.readOnly] : []
      )
    assert.deepStrictEqual(call({ toolCallId: "a", name: "look", kind: "execute" }), [true])
    assert.deepStrictEqual(call({ toolCallId: "b", title: "look" }), [true])
    assert.deepStrictEqual(call({ toolCallId: "c", name: "find", kind: "search" }), [true])
    assert.deepStrictEqual(call({ toolCallId: "d", name: "read", kind: "read" }), [false])
    assert.deepStrictEqual(call({ toolCallId: "e", name: "looks", kind: "execute" }), [false])
  })

  describe("an agent that asks before it has told of the call (opencode and Kilo, November 2026)", () => {
    const began = { toolCallId: "a", title: "bash", kind: "execute", status: "pending", rawInput: { cwd: "/p" } }
    const whole = { command: "touch x", description: "make it", cwd: "/p" }
    const runs = { toolCallId: "a", title: "touch x", kind: "execute", status: "in_progress", rawInput: whole }
    const question = { toolCallId: "a", title: "touch x", kind: "execute", rawInput: { command: "touch x" } }
    const asks = () => {
      const updates = new AcpUpdates()
      updates.begin("turn-1")
      return { updates, asked: updates.ask(question)! }
    }

    it("is heard out: the question has all that was told of the call, and what is allowed is allowed", () => {
      const { asked, updates } = asks()
      assert.deepStrictEqual(short(asked.events), ["TurnStarted"])
      const seen = updates.version
      assert.deepStrictEqual(update(updates, "tool_call", began), [])
      assert.deepStrictEqual(updates.settle(seen), [], "it is not still")
      assert.deepStrictEqual(update(updates, "tool_call_update", runs), [])
      assert.isTrue(updates.holding)
      assert.deepStrictEqual(short(updates.settle(updates.version)), [
        `ToolCall execute {"command":"touch x","description":"make it","cwd":"/p"}`,
        "ApprovalRequested touch x"
      ])
      assert.isUndefined(updates.askAgain(asked.callId))
      assert.deepStrictEqual(short(updates.answered(asked.callId, true)), ["ToolStarted"])
    })

    it("a part of it that is told again changes nothing", () => {
      const { asked, updates } = asks()
      update(updates, "tool_call_update", runs)
      updates.settle(updates.version)
      update(updates, "tool_call_update", began)
      assert.isFalse(updates.changed(asked.callId))
    })

    for (const [what, rawInput] of [
      ["another command", { ...whole, command: "rm -rf x" }],
      ["one thing more", { ...whole, timeout: 5 }]
    ] as const) {
      it(`${what} after it was shown: it asks again, with what it is now, and the old question is over`, () => {
        const { asked, updates } = asks()
        update(updates, "tool_call_update", runs)
        updates.settle(updates.version)
        update(updates, "tool_call_update", { ...runs, rawInput })
        const again = updates.askAgain(asked.callId)!
        assert.deepStrictEqual(
          again.events.map((event) => [event._tag, "callId" in event ? event.callId : ""]),
          [
            ["ToolResult", "a"],
            ["ToolCall", "a#2"],
            ["ApprovalRequested", "a#2"]
          ]
        )
        assert.deepInclude(again.events[1], { arguments: rawInput })
        updates.answered("a#2", true)
        const over = update(updates, "tool_call_update", { toolCallId: "a", status: "completed" })
        assert.deepStrictEqual(
          over.flatMap((event) => ("callId" in event ? [event.callId] : [])),
          ["a#2"]
        )
      })
    }
  })

  it("a call of which nothing is heard is told, one that still changes is held", () => {
    const updates = new AcpUpdates()
    updates.begin("turn-1")
    for (const id of ["a", "b"]) update(updates, "tool_call", { toolCallId: id, title: id, status: "pending" })
    const seen = updates.version
    update(updates, "tool_call_update", { toolCallId: "b", rawInput: { x: 1 } })
    assert.deepStrictEqual(short(updates.settle(seen)), ['ToolCall a {"title":"a"}'])
    assert.isTrue(updates.holding)
    assert.deepStrictEqual(short(updates.settle(updates.version)), ['ToolCall b {"x":1}'])
    assert.isFalse(updates.holding)
  })

  it("a session's news outside its turns begins none", () => {
    const updates = new AcpUpdates()
    updates.begin("turn-1")
    assert.deepStrictEqual(update(updates, "available_commands_update"), [])
    assert.deepStrictEqual(update(updates, "session_info_update"), [])
    assert.deepStrictEqual(short(update(updates, "agent_thought_chunk")), ["TurnStarted"])
  })

  it("what is too long is cut", () => {
    const updates = new AcpUpdates()
    updates.begin("turn-1")
    const rawOutput = "x".repeat(1_000_000)
    const done = update(updates, "tool_call", { toolCallId: "t", status: "completed", rawOutput })
    const result = done.find((event) => event._tag === "ToolResult")
    assert.isBelow(String(result?.output).length, 300_000)
  })

  const Id = Schema.Literals(["a", "b"])
  const Step = Schema.Union([
    Schema.Struct({
      sessionUpdate: Schema.Literals(["tool_call", "tool_call_update"]),
      toolCallId: Id,
      status: Schema.Literals(["pending", "in_progress", "completed", "failed", "odd"])
    }),
    Schema.Struct({ ask: Id, allowed: Schema.UndefinedOr(Schema.Boolean) }),
    Schema.Literals(["settle", "cancel", "say", "Completed", "Interrupted"])
  ])

  it.prop(
    "in whatever order: one call, one question and one result each, within its turn",
    [Schema.Array(Step)],
    ([steps]) => {
      const updates = new AcpUpdates()
      const events: Array<RunEvent> = []
      let turn = 0
      const begin = () => updates.begin(`turn-${++turn}`)
      begin()
      for (const step of steps) {
        if (typeof step === "object" && "ask" in step) {
          const asked = updates.ask({ toolCallId: step.ask })
          events.push(...(asked?.events ?? []))
          if (asked !== undefined && step.allowed !== undefined) events.push(...updates.settle(updates.version))
          if (asked !== undefined && step.allowed !== undefined)
            events.push(...updates.answered(asked.callId, step.allowed))
        } else if (typeof step === "object") events.push(...updates.update(step))
        else if (step === "settle") events.push(...updates.settle(updates.version))
        else if (step === "cancel") updates.cancel()
        else if (step === "say") {
          const said: SessionUpdate = { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "x" } }
          events.push(...updates.update(said))
        } else {
          events.push(...updates.finish({ _tag: step }))
          begin()
        }
      }
      events.push(...updates.finish({ _tag: "Completed" }))

      const states = new Map<string, "called" | "asked" | "over">()
      let active = false
      for (const event of events) {
        if (event._tag === "TurnStarted") {
          assert.isFalse(active)
          active = true
        } else assert.isTrue(active, event._tag)
        if (event._tag === "TurnCompleted" || event._tag === "TurnInterrupted") {
          active = false
          assert.isTrue([...states.values()].every((state) => state === "over"))
        }
        if (!("callId" in event)) continue
        const state = states.get(event.callId)
        if (event._tag === "ToolCall") {
          assert.strictEqual(state, undefined)
          states.set(event.callId, "called")
        } else if (event._tag === "ApprovalRequested") {
          assert.strictEqual(state, "called")
          states.set(event.callId, "asked")
        } else {
          assert.notInclude([undefined, "over"], state)
          if (event._tag === "ToolResult") states.set(event.callId, "over")
        }
      }
      assert.isFalse(active)
      return true
    }
  )
})

describe("AcpFault", () => {
  const agent = { name: "Fake", authMethods: [{ id: "key" }] }
  const cases: ReadonlyArray<readonly [words: string, code: number, data: unknown, kind: string, outcome: string]> = [
    ["Authentication required", -32000, undefined, "auth", "auth"],
    ["Internal error: API Error: 401 stub", -32603, undefined, "auth", "auth"],
    ["Request rejected (429)", -32603, { errorKind: "rate_limit" }, "rate_limit", "quota"],
    ["You have hit your usage limit", -32000, undefined, "rate_limit", "quota"],
    ["Your credit balance is too low", -32603, undefined, "billing", "Fatal"],
    ["Overloaded", -32603, { status: 529 }, "overloaded", "unavailable"],
    ["Internal error: fetch failed", -32603, undefined, "connection", "unavailable"],
    ["connect ECONNREFUSED 127.0.0.1:443", -32603, undefined, "connection", "unavailable"],
    ["API Error: 502 bad gateway", -32603, undefined, "server", "unavailable"],
    ["input exceeds the limit of 100000 tokens", -32603, undefined, "overflow", "overflow"],
    ["session s-1 is already open in another process", -32603, undefined, "held", "held"],
    ["Invalid params", -32602, undefined, "invalid_request", "Error"],
    ["Internal error", -32603, {}, "agent", "Error"]
  ]
  for (const [message, code, data, kind, expected] of cases) {
    it(`${code} ${message} ${JSON.stringify(data) ?? ""} → ${kind}, ${expected}`, () => {
      const { errorType, outcome } = AcpFault.ofRefusal({ code, message, data }, "the prompt", agent, 0)
      assert.deepStrictEqual(
        [errorType, outcome._tag === "Uncounted" ? outcome.reason : outcome._tag],
        [kind, expected]
      )
    })
  }
})
