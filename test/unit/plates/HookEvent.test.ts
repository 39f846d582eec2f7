/** Each of Claude Code's hooks, as it was captured, and what it says about a session. */
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import * as PlateMachine from "../../../src/plates/PlateMachine.ts"
import * as HookEvent from "../../../src/plates/HookEvent.ts"
import { captured, payload, T0 } from "../../world/plates/World.ts"

const sub = { agentId: "a98f07f735d1fe78a" }
const question = { tool: "AskUserQuestion", input: "same" }

/** By case; `nothing` says nothing about the state. */
const expected: { readonly [name: string]: "nothing" | { readonly _tag: string; readonly [field: string]: unknown } } =
  {
    CwdChanged: "nothing",
    InstructionsLoaded: "nothing",
    MessageDisplay: "nothing",
    "Notification / agent_needs_input": { _tag: "HookNotification", notificationType: "agent_needs_input" },
    "Notification / idle_prompt": { _tag: "HookNotification", notificationType: "idle_prompt" },
    "Notification / permission_prompt": { _tag: "HookNotification", notificationType: "permission_prompt" },
    "PermissionRequest / AskUserQuestion": { _tag: "HookPermissionRequest", ...question },
    "PermissionRequest / Bash": { _tag: "HookPermissionRequest", tool: "Bash", input: "any" },
    "PermissionRequest / Bash / subagent": {
      _tag: "HookPermissionRequest",
      agentId: "a475f2d502ac96457",
      tool: "Bash",
      input: "any"
    },
    "PermissionRequest / ExitPlanMode": { _tag: "HookPermissionRequest", tool: "ExitPlanMode", input: "any" },
    PostCompact: { _tag: "HookPostCompact" },
    PostToolBatch: { _tag: "HookPostToolBatch" },
    "PostToolBatch / subagent": { _tag: "HookPostToolBatch", ...sub },
    "PostToolUse / Agent": {
      _tag: "HookPostToolUse",
      tool: "Agent",
      callId: "toolu_98755de1934cddf4aa57",
      launched: "a98f07f735d1fe78a"
    },
    "PostToolUse / AskUserQuestion": {
      _tag: "HookPostToolUse",
      tool: "AskUserQuestion",
      callId: "toolu_c9c2d961318607fd2760"
    },
    "PostToolUse / Bash": { _tag: "HookPostToolUse", tool: "Bash", callId: "toolu_f736095628747970ee6f" },
    "PostToolUse / Bash / subagent": {
      _tag: "HookPostToolUse",
      ...sub,
      tool: "Bash",
      callId: "toolu_a7ca6f8a28cda78f14b8"
    },
    "PostToolUse / ExitPlanMode": {
      _tag: "HookPostToolUse",
      tool: "ExitPlanMode",
      callId: "toolu_0a2e5d515376b25d2a04"
    },
    "PostToolUseFailure / Bash": {
      _tag: "HookPostToolUseFailure",
      tool: "Bash",
      callId: "toolu_3678c6568fa4ab499279",
      isInterrupt: false
    },
    PreCompact: { _tag: "HookPreCompact" },
    "PreModelSwitch / command": "nothing",
    "PreToolUse / Agent": { _tag: "HookPreToolUse", tool: "Agent", callId: "toolu_98755de1934cddf4aa57", input: "any" },
    "PreToolUse / AskUserQuestion": { _tag: "HookPreToolUse", ...question, callId: "toolu_c9c2d961318607fd2760" },
    "PreToolUse / Bash": { _tag: "HookPreToolUse", tool: "Bash", callId: "toolu_f736095628747970ee6f", input: "any" },
    "PreToolUse / Bash / plan": {
      _tag: "HookPreToolUse",
      tool: "Bash",
      callId: "toolu_fb3b759b25b0432571b6",
      input: "any"
    },
    "PreToolUse / Bash / subagent": {
      _tag: "HookPreToolUse",
      ...sub,
      tool: "Bash",
      callId: "toolu_a7ca6f8a28cda78f14b8",
      input: "any"
    },
    "PreToolUse / ExitPlanMode / plan": {
      _tag: "HookPreToolUse",
      tool: "ExitPlanMode",
      callId: "toolu_0a2e5d515376b25d2a04",
      input: "any"
    },
    "SessionEnd / clear": { _tag: "HookSessionEnd", reason: "clear" },
    "SessionEnd / other": { _tag: "HookSessionEnd", reason: "other" },
    "SessionEnd / prompt_input_exit": { _tag: "HookSessionEnd", reason: "prompt_input_exit" },
    "SessionStart / clear": { _tag: "HookSessionStart", source: "clear" },
    "SessionStart / compact": { _tag: "HookSessionStart", source: "compact" },
    "SessionStart / fork": { _tag: "HookSessionStart", source: "fork" },
    "SessionStart / resume": { _tag: "HookSessionStart", source: "resume" },
    "SessionStart / startup": { _tag: "HookSessionStart", source: "startup" },
    Stop: { _tag: "HookStop", backgroundTasks: [] },
    "Stop / again": { _tag: "HookStop", backgroundTasks: [] },
    "Stop / background": { _tag: "HookStop", backgroundTasks: ["a475f2d502ac96457"] },
    "StopFailure / authentication_failed": { _tag: "HookStopFailure", error: "authentication_failed" },
    "StopFailure / invalid_request": { _tag: "HookStopFailure", error: "invalid_request" },
    "StopFailure / max_output_tokens": { _tag: "HookStopFailure", error: "max_output_tokens" },
    "StopFailure / rate_limit": { _tag: "HookStopFailure", error: "rate_limit" },
    "StopFailure / server_error": { _tag: "HookStopFailure", error: "server_error" },
    "StopFailure / unknown": { _tag: "HookStopFailure", error: "unknown" },
    "SubagentStart / subagent": "nothing",
    "SubagentStop / subagent": { _tag: "HookSubagentStop", agentId: "a7d2e58da2c833ea1" },
    "SubagentStop / subagent / background": { _tag: "HookSubagentStop", ...sub },
    UserPromptExpansion: "nothing",
    UserPromptSubmit: { _tag: "HookUserPromptSubmit" },
    "UserPromptSubmit / task-notification": { _tag: "HookUserPromptSubmit", endedTask: "bzzu0rsls" }
  }

const parse = (body: unknown) => Result.getOrThrow(HookEvent.parse(body, T0))
const eventOf = (name: string): object => parse(captured.get(name)).event ?? {}

const isEvent = Schema.is(PlateMachine.Event)

describe("a captured hook", () => {
  it("is expected, and none that is expected was not captured", () =>
    assert.deepStrictEqual(Object.keys(expected).toSorted(), [...captured.keys()].toSorted()))

  it.each([...captured.keys()])("%s", (name) => {
    const body = captured.get(name)!
    const { event, sessionId } = parse(body)
    assert.strictEqual(sessionId, body["session_id"])
    const wanted = expected[name]!
    if (wanted === "nothing") return assert.isUndefined(event)
    assert.isTrue(isEvent(event))
    const { input, ...rest } = event as { readonly input?: string }
    const { input: hasInput, ...others } = wanted
    assert.deepStrictEqual({ ...rest }, { at: T0, sessionId, ...others } as object)
    assert.strictEqual(input === undefined, hasInput === undefined)
  })

  it("tells by their input that a request is about a call", () => {
    const of = (name: string) => (eventOf(name) as { readonly input?: string }).input
    assert.strictEqual(of("PreToolUse / AskUserQuestion"), of("PermissionRequest / AskUserQuestion"))
    assert.notStrictEqual(of("PreToolUse / Bash"), of("PermissionRequest / Bash"))
  })

  it("keeps no prompt, no input and no output in its event", () => {
    for (const name of captured.keys()) {
      assert.notMatch(JSON.stringify(eventOf(name)), /echo|touch|colour|stub|Blue/, name)
    }
  })
})

describe("every hook there is", () => {
  it("is known: 33 of them", () => assert.strictEqual(HookEvent.names.length, 33))

  it.each([...HookEvent.names])("%s is taken, and becomes an event of the machine or none", (name) => {
    const body = payload(name, "s1", {
      source: "startup",
      reason: "other",
      tool_name: "Bash",
      tool_use_id: "c1",
      agent_id: "a1",
      mcp_server_name: "forms",
      notification_type: "agent_completed"
    })
    const { event } = parse(body)
    assert.isTrue(event === undefined || isEvent(event))
  })
})

describe("the prompt", () => {
  const promptOf = (prompt: unknown) => parse(payload("UserPromptSubmit", "s1", { prompt })).prompt
  it("is the beginning of what a person typed, and not what a program put there", () => {
    assert.strictEqual(promptOf("  make a file\n"), "make a file")
    assert.strictEqual(promptOf("x".repeat(10_000))?.length, 200)
    for (const none of ["<task-notification>x", "", 7, undefined]) assert.isUndefined(promptOf(none))
  })
})
