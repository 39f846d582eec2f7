import { assert, describe, it } from "@effect/vitest"
import {
  type Action,
  type Data,
  type Event,
  initial,
  type State,
  Tool
} from "../../../src/agents/machines/ToolMachine.ts"
import { begin, drive, type Driven } from "../../world/machines/drive.ts"

const fresh = begin<State, Data, Action>(Tool, initial())
const after = (events: ReadonlyArray<Event>, from: Driven<State, Data, Action> = fresh) => drive(Tool, from, events)

const callId = "c1"
const call = (timeout?: number): Event => ({
  _tag: "call_requested",
  callId,
  turnId: "t1",
  toolName: "shell",
  arguments: { command: "ls" },
  ...(timeout === undefined ? {} : { timeout })
})
const asks: Event = { _tag: "requires_approval", callId, policyReason: "it writes" }
const runs: Event = { _tag: "no_approval_needed", callId }
const approved: Event = { _tag: "approved", callId, approver: "me" }
const denied: Event = { _tag: "denied", callId, approver: "me", reason: "no" }
const reported: Event = { _tag: "denial_reported", callId }
const cancelled: Event = { _tag: "cancelled", callId, reason: "interrupt" }
const success: Event = { _tag: "success", callId, output: "a b" }
const failed = (status: "error" | "unknown" | "sandbox_violation"): Event => ({
  _tag: "execution_error",
  callId,
  status,
  error: "it broke"
})
const timedOut: Event = { _tag: "execution_timeout", callId }
const unanswered: Event = { _tag: "approval_timeout", callId }

describe("Tool", () => {
  const ends: ReadonlyArray<readonly [string, ReadonlyArray<Event>, State, string]> = [
    ["success", [runs, success], "completed_result", "success"],
    ["error", [runs, failed("error")], "error_result", "error"],
    ["unknown", [runs, failed("unknown")], "error_result", "unknown"],
    ["sandbox_violation", [runs, failed("sandbox_violation")], "error_result", "sandbox_violation"],
    ["timeout of the execution", [runs, timedOut], "timeout_result", "timeout"],
    ["timeout of the approval", [asks, unanswered], "timeout_result", "timeout"],
    ["cancelled before it ran", [cancelled], "cancelled_result", "cancelled"],
    ["cancelled while it asked", [asks, cancelled], "cancelled_result", "cancelled"],
    ["cancelled while it ran", [asks, approved, cancelled], "cancelled_result", "cancelled"],
    ["denied", [asks, denied, reported], "denied", "denied"]
  ]

  it.each(ends)("INV-TOOL-TERMINAL: exactly one result: %s", (_, events, state, status) => {
    const driven = after([call(), ...events])
    assert.strictEqual(driven.state, state)
    assert.strictEqual(driven.kinds.filter((kind) => kind === "tool.result").length, 1)
    assert.deepInclude(driven.payloads.at(-1), { call_id: callId, status })
    assert.deepInclude({ ...driven.actions.at(-1) }, { _tag: "ReportResult", status })
    const late = after([success, failed("error"), cancelled, approved, denied, reported, timedOut, unanswered], driven)
    assert.deepStrictEqual(late.kinds, driven.kinds)
    assert.strictEqual(late.refused, "stale")
  })

  it("a denied call ends with tool.denied and tool.result", () => {
    const { kinds, payloads } = after([call(), asks, denied, reported])
    assert.deepStrictEqual(kinds, ["tool.call", "tool.approval_requested", "tool.denied", "tool.result"])
    assert.deepInclude(payloads[2], { call_id: callId, reason: "no" })
  })

  it("INV-TOOL-CALL-BEFORE-RESULT: nothing comes before the call", () => {
    assert.strictEqual(after([success]).refused, "stale")
    assert.deepStrictEqual(after([success, cancelled, approved]).kinds, [])
  })

  it("INV-TOOL-APPROVAL-BEFORE-EXEC: what asks is not run before the answer", () => {
    const asking = after([call(), asks])
    for (const event of [runs, success, { _tag: "auto_approved", callId, policyReason: "" }] as const) {
      assert.strictEqual(after([event], asking).state, "awaiting_approval")
    }
    assert.strictEqual(after([approved], asking).kinds.at(-1), "tool.approved")
  })

  it("what runs is stopped by a timeout and by a cancellation", () => {
    for (const event of [timedOut, cancelled]) {
      assert.deepStrictEqual(
        after([call(), runs, event]).actions.map(({ _tag }) => _tag),
        ["StopTool", "ReportResult"]
      )
    }
  })

  it("runs two minutes, thirty at most, and asks until it is answered", () => {
    const limit = (timeout?: number) => Tool.timers.execution.after(after([call(timeout)]).data, 0)
    assert.strictEqual(limit(), 120_000)
    assert.strictEqual(limit(5_000), 5_000)
    assert.strictEqual(limit(86_400_000), 1_800_000)
    assert.strictEqual(Tool.timers.approval.after(fresh.data, 0), Infinity)
  })

  it("an event of another call is stale", () =>
    assert.strictEqual(after([call(), { ...runs, callId: "c2" }]).refused, "stale"))
})
