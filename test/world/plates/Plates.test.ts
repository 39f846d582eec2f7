/** The board through whole sessions, as the real Claude Code tells of them. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { PlateInfo } from "../../../src/domain/Messages.ts"
import type { EventRefused } from "../../../src/plates/JsonReader.ts"
import type { EventLog } from "../../../src/core/event-log/EventLog.ts"
import {
  Board,
  caller,
  captured,
  child,
  nobody,
  restart,
  result,
  run,
  start,
  T0,
  toolUse,
  until,
  user
} from "./World.ts"

type Status = PlateInfo["status"]
type Fields = { readonly [field: string]: unknown }

const bash = { tool_name: "Bash", tool_input: { command: "sleep 3" }, tool_use_id: "c1" }
const other = { tool_name: "Read", tool_input: { file_path: "a" }, tool_use_id: "c2" }
const fetchOf = (id: string) => ({ tool_name: "WebFetch", tool_input: { url: id }, tool_use_id: id })
const asking = ({ tool_input, tool_name }: Fields) => ({ tool_name, tool_input })
const question = { tool_name: "AskUserQuestion", tool_input: { questions: [] }, tool_use_id: "q1" }
const plan = { tool_name: "ExitPlanMode", tool_input: {}, tool_use_id: "p1" }
const sub = { agent_id: "a1", agent_type: "general-purpose" }
const background = { background_tasks: [{ id: "a1", type: "subagent", status: "running" }] }

/** Hooks, and the board's status after each. */
type Story = ReadonlyArray<readonly [hook: string, more: Fields, status: Status]>

const begin: Story = [
  ["SessionStart", { source: "startup" }, "Idle"],
  ["UserPromptSubmit", { prompt: "go" }, "Running"]
]
const stop = (more: Fields = { background_tasks: [] }) => ["Stop", more, "Idle"] as const

const stories: { readonly [name: string]: Story } = {
  "a tool that needs no permission": [
    ...begin,
    ["PreToolUse", bash, "Running"],
    ["PostToolUse", bash, "Running"],
    ["PostToolBatch", {}, "Running"],
    stop()
  ],
  "a permission that is given": [
    ...begin,
    ["PreToolUse", bash, "Running"],
    ["PermissionRequest", asking(bash), "AwaitingApproval"],
    ["Notification", { notification_type: "permission_prompt" }, "AwaitingApproval"],
    ["PostToolUse", bash, "Running"],
    stop()
  ],
  "a permission that is refused": [
    ...begin,
    ["PreToolUse", bash, "Running"],
    ["PermissionRequest", asking(bash), "AwaitingApproval"],
    ["PostToolBatch", {}, "Running"],
    stop()
  ],
  "a permission that was asked for and not told of before": [
    ...begin,
    ["PermissionRequest", asking(bash), "AwaitingApproval"],
    ["PostToolUse", bash, "Running"]
  ],
  "two calls of one tool that ask side by side": [
    ...begin,
    ["PreToolUse", fetchOf("a"), "Running"],
    ["PreToolUse", fetchOf("b"), "Running"],
    ["PermissionRequest", asking(fetchOf("a")), "AwaitingApproval"],
    ["PermissionRequest", asking(fetchOf("b")), "AwaitingApproval"],
    ["PostToolUseFailure", { ...fetchOf("a"), is_interrupt: false }, "AwaitingApproval"],
    ["PostToolUse", fetchOf("b"), "Running"]
  ],
  "a question": [
    ...begin,
    ["PreToolUse", question, "AwaitingInput"],
    ["PermissionRequest", asking(question), "AwaitingInput"],
    ["PostToolUse", question, "Running"],
    ["PostToolBatch", {}, "Running"],
    stop()
  ],
  "a plan": [
    ...begin,
    ["PreToolUse", plan, "AwaitingApproval"],
    ["PermissionRequest", asking(plan), "AwaitingApproval"],
    ["PostToolUse", plan, "Running"],
    stop()
  ],
  "a subagent that asks after the stop": [
    ...begin,
    ["PreToolUse", { tool_name: "Agent", tool_use_id: "t1", tool_input: {} }, "Running"],
    ["SubagentStart", sub, "Running"],
    [
      "PostToolUse",
      { tool_name: "Agent", tool_use_id: "t1", tool_response: { isAsync: true, agentId: "a1" } },
      "Running"
    ],
    ["Stop", background, "Idle"],
    ["PreToolUse", { ...bash, ...sub }, "Idle"],
    ["PermissionRequest", { ...asking(bash), ...sub }, "AwaitingApproval"],
    ["PostToolUse", { ...bash, ...sub }, "Idle"],
    ["PostToolBatch", sub, "Idle"],
    ["SubagentStop", sub, "Idle"],
    ["UserPromptSubmit", { prompt: "<task-notification>\n<task-id>a1</task-id>" }, "Running"],
    stop()
  ],
  "a turn that fails": [
    ...begin,
    ["StopFailure", { error: "server_error" }, "Error"],
    ["UserPromptSubmit", {}, "Running"]
  ],
  "a prompt typed in mid-turn": [
    ...begin,
    ["PreToolUse", bash, "Running"],
    ["UserPromptSubmit", { prompt: "and this" }, "Running"],
    ["PostToolUse", bash, "Running"],
    stop()
  ],
  "a stop hook that makes it go on": [
    ...begin,
    stop({ background_tasks: [], stop_hook_active: false }),
    ["PreToolUse", bash, "Running"],
    stop({ background_tasks: [], stop_hook_active: true })
  ],
  "a compaction by hand": [
    ...begin,
    stop(),
    ["PreCompact", { trigger: "manual" }, "Running"],
    ["SessionStart", { source: "compact" }, "Idle"],
    ["PostCompact", { trigger: "manual" }, "Idle"]
  ],
  "an elicitation of an MCP server": [
    ...begin,
    ["Elicitation", { mcp_server_name: "forms" }, "AwaitingInput"],
    ["PostToolUse", other, "AwaitingInput"],
    ["ElicitationResult", { mcp_server_name: "forms", action: "accept" }, "Running"]
  ],
  "a dialog that only a notification tells of": [
    ...begin,
    ["Notification", { notification_type: "agent_needs_input" }, "AwaitingInput"],
    ["PostToolUse", bash, "Running"]
  ],
  "what says nothing about the state": [
    ...begin,
    ["PermissionRequest", asking(question), "AwaitingInput"],
    ["MessageDisplay", {}, "AwaitingInput"],
    ["CwdChanged", { new_cwd: "/elsewhere" }, "AwaitingInput"],
    ["Notification", { notification_type: "auth_success" }, "AwaitingInput"]
  ],
  "a resumed session": [
    ...begin,
    ["SessionEnd", { reason: "other" }, "Idle"],
    ["SessionStart", { source: "resume" }, "Idle"],
    ["UserPromptSubmit", {}, "Running"]
  ]
}

describe("a session, told by its hooks", () => {
  for (const [name, story] of Object.entries(stories)) {
    it.effect(name, () =>
      run(({ board }) =>
        Effect.gen(function* () {
          for (const [index, [hook, more, status]] of story.entries()) {
            yield* board.hook(hook, "s1", more)
            const row = yield* board.settled("s1")
            assert.strictEqual(row.status, status, `after ${index + 1}: ${hook}`)
          }
          assert.strictEqual((yield* board.rows).length, 1)
        })
      )
    )
  }
})

describe("a captured hook", () => {
  it.effect("is taken, each of them, and opens one plate for its session; none where it tells of others", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        const own = [...captured].filter(([, body]) => body["notification_type"] !== "agent_needs_input")
        yield* board.hooks(...captured.values().filter((body) => body["notification_type"] === "agent_needs_input"))
        assert.lengthOf(yield* board.rows, 0)
        for (const [name, body] of own) {
          yield* board.hooks(body)
          const row = yield* board.settled(String(body["session_id"]))
          assert.strictEqual(row.sessionId === null || row.sessionId === body["session_id"], true, name)
        }
        const sessions = new Set(own.map(([, body]) => body["session_id"]))
        // One of them goes on from a clear.
        assert.strictEqual((yield* board.rows).length, sessions.size - 1)
      })
    )
  )
})

describe("which plate a session is", () => {
  const begun = (sessionId: string, more: Fields = {}) =>
    ["SessionStart", sessionId, { source: "startup", ...more }] as const

  it.effect("a clear goes on under the new id, and what comes late under the former one changes nothing", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* board.hook(...begun("s1"))
        yield* board.hook("UserPromptSubmit", "s1")
        yield* board.hook("Stop", "s1")
        yield* board.hook("SessionEnd", "s1", { reason: "clear" })
        yield* board.hook("SessionStart", "s2", { source: "clear" })
        yield* board.hook("PreToolUse", "s1", bash)
        const row = yield* board.settled("s2")
        assert.deepStrictEqual([row.sessionId, row.status], ["s2", "Idle"])
        yield* board.hook("UserPromptSubmit", "s2")
        yield* board.status("s2", "Running")
        assert.strictEqual((yield* board.rows).length, 1)
      })
    )
  )

  it.effect("a clear whose start is told after its first prompt is the same plate, and ends no turn", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* board.hook(...begun("s1"))
        yield* board.hook("SessionEnd", "s1", { reason: "clear" })
        yield* TestClock.adjust("1 second")
        yield* board.hook("UserPromptSubmit", "s2")
        yield* board.hook("SessionStart", "s2", { source: "clear" }, { at: T0 + 900 })
        assert.strictEqual((yield* board.settled("s2")).status, "Running")
        assert.strictEqual((yield* board.rows).length, 1)
      })
    )
  )

  it.effect("a clear is followed by its process, also where the folder holds two sessions", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        const [one, two] = [yield* child, yield* child]
        yield* board.hook(...begun("s1"), { pid: one })
        yield* board.hook(...begun("s2"), { pid: two })
        yield* board.settled("s2")
        yield* board.hook("SessionEnd", "s1", { reason: "clear" })
        yield* board.hook("SessionEnd", "s2", { reason: "clear" })
        yield* board.hook("SessionStart", "s4", { source: "clear" }, { pid: two })
        yield* board.hook("SessionStart", "s3", { source: "clear" }, { pid: one })
        yield* board.settled("s3")
        const pids = (yield* board.rows).map(({ pid, sessionId }) => [sessionId, pid])
        assert.sameDeepMembers(pids, [
          ["s3", one],
          ["s4", two]
        ])
      })
    )
  )

  it.effect("a fork in a process of its own is a plate of its own", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* board.hook(...begun("s1"), { pid: yield* child })
        yield* board.settled("s1")
        yield* board.hook("SessionStart", "s2", { source: "fork" }, { pid: yield* child })
        yield* board.settled("s2")
        assert.strictEqual((yield* board.rows).length, 2)
      })
    )
  )

  it.effect("a registered plate waits for the session that has its name", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        const { plateId } = yield* board.plates.register({ cwd: "/home/user/project", pid: process.pid })
        assert.strictEqual((yield* board.plates.find(plateId)).status, "Starting")
        yield* board.hook("SessionStart", "s1", { source: "startup" })
        yield* board.hook("SessionStart", "s2", { source: "startup" }, { plate: plateId })
        assert.strictEqual((yield* board.settled("s2")).plateId, plateId)
        assert.strictEqual((yield* board.rows).length, 2)
      })
    )
  )

  it.effect("a session inside a session's tool has inherited the name, and is a plate of its own", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        const { plateId } = yield* board.plates.register({ cwd: "/home/user/project" })
        yield* board.hook(...begun("outer"), { plate: plateId, pid: process.pid })
        yield* board.hook("UserPromptSubmit", "outer", {}, { plate: plateId })
        yield* board.hook("PermissionRequest", "outer", asking(bash), { plate: plateId })
        yield* board.settled("outer")
        yield* board.hook(...begun("inner"), { plate: plateId, pid: yield* child })
        yield* board.hook("UserPromptSubmit", "inner", {}, { plate: plateId })
        yield* board.hook("Stop", "inner", {}, { plate: plateId })
        assert.strictEqual((yield* board.settled("inner")).status, "Idle")
        const outer = yield* board.plates.find(plateId)
        assert.deepStrictEqual([outer.sessionId, outer.status], ["outer", "AwaitingApproval"])
      })
    )
  )

  /** An agent's session, as the run tells it. */
  const ours = { agent: "shop/builder", runId: "r1" as string | null, isUp: true, turns: true, sessionId: "s1", pid: 7 }

  it.effect("the session of a run of ours has no plate, whatever its hooks say and whenever they come", () => {
    const session = { ...ours, isUp: false, sessionId: "of the run before" }
    const run1 = { run: "r1" }
    return run(
      ({ board }) =>
        Effect.gen(function* () {
          // before the run has told its session
          yield* board.hook(...begun("s1"), run1)
          yield* board.hook("UserPromptSubmit", "s1", {}, run1)
          Object.assign(session, { isUp: true, sessionId: "s1" })
          yield* board.hook("PreToolUse", "s1", bash, run1)
          yield* board.hook("Stop", "s1", {})
          // a clear is told by hooks alone
          yield* board.hook("SessionEnd", "s1", { reason: "clear" }, run1)
          yield* board.hook("SessionStart", "s2", { source: "clear" }, run1)
          yield* board.hook("UserPromptSubmit", "s2", {}, run1)
          Object.assign(session, { runId: null, isUp: false })
          yield* board.hook("SessionEnd", "s1", { reason: "other" }, run1)
          assert.deepStrictEqual(yield* board.plates.list({ closed: true }), [])
          // a person goes on with it
          yield* board.hook("SessionStart", "s1", { source: "resume" })
          const row = yield* board.settled("s1")
          assert.deepStrictEqual([row.agent, row.status], [null, "Idle"])
        }),
      { sessions: Effect.sync(() => [session]) }
    )
  })

  it.effect("a session that a run has started has a plate, which is over with the run", () => {
    const session = { ...ours }
    return run(
      ({ board }) =>
        Effect.gen(function* () {
          yield* board.hook(...begun("inner"), { run: "r1" })
          yield* board.hook("UserPromptSubmit", "inner", {}, { run: "r1" })
          const row = yield* board.settled("inner")
          assert.deepStrictEqual([row.agent, row.status], ["shop/builder", "Running"])
          session.runId = "r2"
          yield* TestClock.adjust("2 seconds")
          yield* board.status("inner", "Closed")
          // The agent's own row says what became of it.
          assert.deepStrictEqual(yield* board.plates.list({ closed: false }), [])
        }),
      { sessions: Effect.sync(() => [session]) }
    )
  })

  it.effect("the sessions of a program that tells nothing of itself have plates", () =>
    run(
      ({ board }) =>
        Effect.gen(function* () {
          yield* board.hook(...begun("s1"), { run: "r1" })
          assert.deepStrictEqual((yield* board.settled("s1")).agent, "shop/builder")
        }),
      { sessions: Effect.succeed([{ ...ours, turns: false, sessionId: "s1" }]) }
    )
  )

  it.effect("plates that a daemon of before had made of runs are closed by a rune, and never shown", () =>
    run((world) =>
      Effect.gen(function* () {
        yield* world.board.stop
        const move = (stream: string, from: string, to: string, event: Record<string, unknown>) => ({
          stream,
          kind: "plate.moved",
          actor: `plate/${stream}`,
          from,
          to,
          trigger: event["_tag"] as string,
          payload: { plateId: stream, sessionId: null, restsOn: "stream", event: { at: T0, ...event } }
        })
        const registered = { _tag: "Registered", cwd: "/x", runId: "r0", agent: "shop/builder" }
        for (const id of ["plate-aaaaaa", "plate-bbbbbb"]) {
          yield* world.log.append([
            move(id, "Starting", "Starting", { ...registered, plateId: id }),
            move(id, "Starting", "Running", { _tag: "RunTurnStarted", runId: "r0" }),
            move(id, "Running", "Running", { _tag: "RunBackground", runId: "r0", works: ["w"] })
          ])
        }
        yield* world.log.append([move("plate-bbbbbb", "Running", "Closed", { _tag: "ProcessExited" })])
        for (const _ of [1, 2]) {
          const again = yield* restart(world)
          assert.deepStrictEqual(yield* again.plates.list({ closed: true }), [])
          yield* Effect.flip(again.plates.find("plate-aaaaaa"))
          yield* again.stop
        }
        const runes = yield* Stream.runCollect(world.log.read({ stream: "plate-aaaaaa", kinds: ["plate.moved"] }))
        assert.deepStrictEqual(
          Array.from(runes, ({ from, to }) => `${from} > ${to}`),
          ["Starting > Starting", "Starting > Running", "Running > Running", "Running > Closed"]
        )
      })
    )
  )

  it.effect("a forgotten plate is gone, and a later hook opens a new one", () =>
    run((world) =>
      Effect.gen(function* () {
        const { board } = world
        const { plateId } = yield* board.plates.register({ plate_id: "mine", cwd: "/home/user/project" })
        yield* board.hook(...begun("s1"), { plate: plateId })
        yield* board.settled("s1")
        // The beginning of its id is enough.
        const { eventId } = yield* board.plates.forget(plateId.slice(0, 3), caller)
        assert.strictEqual((yield* world.log.get(eventId))?.kind, "plate.forgotten")
        assert.deepStrictEqual(yield* board.rows, [])
        yield* board.hook("UserPromptSubmit", "s1", {}, { plate: plateId })
        const row = yield* board.settled("s1")
        assert.notStrictEqual(row.plateId, "mine")
        assert.strictEqual((yield* board.plates.find("mine")).plateId, row.plateId)
        const again = yield* restart(world)
        assert.deepStrictEqual(
          (yield* again.rows).map(({ plateId, status }) => [plateId, status]),
          [[row.plateId, "Running"]]
        )
        assert.strictEqual((yield* Effect.flip(again.plates.forget("nobody", caller)))._tag, "CommandRefused")
      })
    )
  )
})

describe("the five events of /events", () => {
  const post = (type: string, more: Fields = {}) => ({
    event_type: type,
    session_id: "s1",
    project_path: "/home/user/project",
    ...more
  })

  it.effect("do what their table says", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        const story: ReadonlyArray<readonly [Fields, Status]> = [
          [post("session_start", { git_branch: "main", transcript_path: "/t.jsonl" }), "Running"],
          [post("tool_start", { tool_name: "AskUserQuestion", tool_params: {} }), "AwaitingInput"],
          [post("tool_call", { tool_name: "Other" }), "Running"],
          [post("tool_start", { tool_name: "ExitPlanMode" }), "AwaitingApproval"],
          [post("tool_start", { tool_name: "Bash" }), "Running"],
          [post("permission_request", { tool_name: "Bash" }), "AwaitingApproval"],
          [post("permission_answered", { tool_name: "Bash", decision: "allow" }), "Running"],
          [post("permission_request", { tool_name: "Bash" }), "AwaitingApproval"],
          [post("tool_call", { tool_name: "Bash" }), "Running"],
          [post("stop", { error: null }), "Idle"],
          [post("prompt_submit", { timestamp: T0 }), "Running"],
          [post("stop", { error: "it broke", timestamp: T0 + 5 }), "Error"],
          [post("prompt_submit", { timestamp: "2026-11-20T09:00:00.004Z" }), "Error"],
          [post("prompt_submit", { timestamp: T0 + 5 }), "Running"]
        ]
        for (const [event, status] of story) {
          yield* board.plates.event(event)
          assert.strictEqual((yield* board.settled("s1")).status, status, JSON.stringify(event))
        }
        const row = yield* board.plates.find("s1")
        assert.deepStrictEqual([row.branch, row.lastTool, row.toolCalls], ["main", "Bash", 2])
      })
    )
  )

  it.effect("a tool's input is kept, without secrets and bounded, and shown until the tool has ended", () =>
    run((world) =>
      Effect.gen(function* () {
        const { board, log } = world
        const shown = (from: Board) => Effect.map(from.plates.find("s1"), (row) => [row.detail, row.arguments])
        const secret = `sk-${"a1B2".repeat(8)}`
        yield* board.plates.event(post("session_start"))
        yield* board.plates.event(post("tool_start", { tool_name: "Bash", tool_input: { command: `curl ${secret}` } }))
        const kept = JSON.stringify({ command: "curl [redacted]" })
        yield* until("it is shown", shown(board), ([detail]) => detail === "runs Bash")
        assert.deepStrictEqual(yield* shown(board), ["runs Bash", kept])
        const runes = yield* Stream.runCollect(log.read({ kinds: ["plate.moved"] }))
        assert.include(JSON.stringify(runes), "[redacted]")
        assert.notInclude(JSON.stringify(runes), secret)
        const next = yield* restart(world)
        assert.deepStrictEqual(yield* shown(next), ["runs Bash", kept])
        yield* next.plates.event(post("tool_start", { tool_name: "Write", tool_input: { content: "x".repeat(9_000) } }))
        yield* until("it is shown", shown(next), ([detail]) => detail === "runs Write")
        const [, long = ""] = yield* shown(next)
        assert.isBelow(long.length, 2_100)
        assert.include(long, "characters are left out")
        yield* next.plates.event(post("tool_start", { tool_name: "Read" }))
        yield* until("it is shown", shown(next), ([detail]) => detail === "runs Read")
        assert.deepStrictEqual(yield* shown(next), ["runs Read", undefined])
        yield* next.plates.event(post("tool_start", { tool_name: "ExitPlanMode", tool_input: { plan: "1. go" } }))
        yield* until("it is shown", shown(next), ([detail]) => detail === "asks to approve a plan")
        assert.deepStrictEqual((yield* shown(next))[1], JSON.stringify({ plan: "1. go" }))
        yield* next.plates.event(post("tool_call"))
        yield* until("it is shown", shown(next), ([detail]) => detail === "works")
        assert.deepStrictEqual(yield* shown(next), ["works", undefined])
      })
    )
  )
})

describe("what is no event", () => {
  it.effect("is refused with its field and a remedy, and leaves a rune; a flood leaves a few", () =>
    run(({ board, log }) =>
      Effect.gen(function* () {
        const bad: ReadonlyArray<readonly [Effect.Effect<void, EventRefused>, string]> = [
          [board.plates.hook("no", nobody), ""],
          [board.plates.hook(null, nobody), ""],
          [board.plates.hook([], nobody), ""],
          [board.plates.hook({}, nobody), "hook_event_name"],
          [board.plates.hook({ hook_event_name: "Stop" }, nobody), "session_id"],
          [board.plates.hook({ hook_event_name: "Stop", session_id: 7 }, nobody), "session_id"],
          [board.plates.hook({ hook_event_name: "Stop", session_id: "x".repeat(10_000) }, nobody), "session_id"],
          [board.hook("Start", "s1"), "hook_event_name"],
          [board.hook("constructor", "s1"), "hook_event_name"],
          [board.hook("PreToolUse", "s1", { tool_use_id: "c1" }), "tool_name"],
          [board.plates.event({ event_type: "permission_request", session_id: "s1", cwd: "/" }), "tool_name"],
          [board.plates.event({ event_type: "begin", session_id: "s1", cwd: "/" }), "event_type"],
          [board.plates.event({ event_type: "stop", session_id: "s1" }), "cwd"],
          [board.plates.event({ event_type: "stop", session_id: "s1", cwd: "/", timestamp: "noon" }), "timestamp"]
        ]
        for (const [sent, field] of bad) {
          const error = yield* Effect.flip(sent)
          assert.strictEqual(error.field, field, error.message)
          assert.isAbove(error.remedy.length, 0)
        }
        for (let i = 0; i < 1_000; i++) yield* Effect.flip(board.hook("Nope", "s1"))
        assert.deepStrictEqual(yield* board.rows, [])
        yield* TestClock.adjust("1 minute")
        yield* Effect.flip(board.hook("Nope", "s1"))
        const runes = yield* until("they are written", log.tail({ kinds: ["hook.refused"] }, 100), (all) =>
          all.some(({ payload }) => payload["leftOut"] !== undefined)
        )
        assert.strictEqual(runes.length, 31)
        assert.strictEqual(runes[0]!.visibility, "internal")
      })
    )
  )
})

describe("register and stopped", () => {
  it.effect("are durable when they answer, and can be said twice", () =>
    run((world) =>
      Effect.gen(function* () {
        const { plates } = world.board
        const { plateId } = yield* plates.register({ plateId: "p1", cwd: "/home/user/project", pid: 1 })
        assert.strictEqual(plateId, "p1")
        assert.deepStrictEqual(yield* plates.register({ plate_id: "p1", cwd: "/home/user/project" }), { plateId })
        yield* plates.stopped({ plateId })
        assert.strictEqual((yield* plates.find("p1")).status, "Closed")
        yield* plates.stopped({ plateId })
        const again = yield* restart(world)
        assert.strictEqual((yield* again.plates.find("p1")).status, "Closed")
        assert.strictEqual((yield* Effect.flip(again.plates.register({ plateId, cwd: "/" })))._tag, "EventRefused")
      })
    )
  )

  it.effect("a daemon that is ending takes neither, and says so", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        const { plates } = board
        yield* plates.register({ plate_id: "p1", cwd: "/home/user/project" })
        yield* board.stop
        assert.strictEqual((yield* Effect.flip(plates.stopped({ plate_id: "p1" })))._tag, "ActorStopped")
        const again = plates.register({ plate_id: "p1", cwd: "/home/user/project" })
        assert.strictEqual((yield* Effect.flip(again))._tag, "ActorStopped")
        assert.strictEqual((yield* Effect.flip(plates.forget("p1", caller)))._tag, "CommandRefused")
      })
    )
  )

  it.effect("one stop never closes a folder: it names its plate or its session", () =>
    run(({ board: { plates } }) =>
      Effect.gen(function* () {
        for (const body of [{ project_path: "/home/user/project" }, { plate_id: "nobody" }, { session_id: "s0" }]) {
          assert.strictEqual((yield* Effect.flip(plates.stopped(body)))._tag, "EventRefused")
        }
        for (const plateId of ["daemon", "shop-1a2b3c4d", "a/b", "", "x".repeat(65)]) {
          const made = yield* Effect.result(plates.register({ plateId, cwd: "/" }))
          assert.strictEqual(made._tag, plateId === "" ? "Success" : "Failure", plateId)
        }
      })
    )
  )
})

describe("a restart", () => {
  it.effect("in the middle of a session loses no status, id, count or name", () =>
    run((world) =>
      Effect.gen(function* () {
        const { board } = world
        yield* board.hook("SessionStart", "s1", { source: "startup" })
        yield* board.hook("UserPromptSubmit", "s1", { prompt: "make a file" })
        yield* board.hook("PreToolUse", "s1", bash)
        yield* board.hook("PostToolUse", "s1", bash)
        yield* board.hook("PermissionRequest", "s1", asking(plan))
        yield* board.write("s1", user("make a file"), toolUse("m1", "c1", "Bash"), result("c1"))
        const before = yield* board.settled("s1")
        const again = yield* restart(world)
        yield* again.check()
        const after = yield* until("it is read", again.plates.find("s1"), ({ tokens }) => tokens !== null)
        assert.deepStrictEqual({ ...after, title: "", tokens: 0 }, { ...before, title: "", tokens: 0 })
        assert.deepStrictEqual([after.title, after.tokens, after.toolCalls], ["make a file", 120, 1])
        yield* again.hook("PostToolUse", "s1", plan)
        yield* again.status("s1", "Running")
        yield* again.hook("SessionEnd", "s1", { reason: "clear" })
        const third = yield* restart({ ...world, board: again })
        assert.strictEqual((yield* third.plates.find("s1")).status, "Idle")
      })
    )
  )

  it.effect("what is said while the log is folded is kept, in order", () =>
    run((world) =>
      Effect.gen(function* () {
        const { board } = world
        yield* board.hook("SessionStart", "s1", { source: "startup" })
        yield* board.settled("s1")
        yield* board.stop
        const slow = yield* Deferred.make<void>()
        const late: EventLog["Service"] = {
          ...world.log,
          streams: Effect.andThen(Deferred.await(slow), world.log.streams)
        }
        const next = yield* start(late, world.store, { awaitReady: false })
        const nextBoard = new Board(next.plates, next.stop, world.folder, world.log)
        yield* nextBoard.hook("UserPromptSubmit", "s1")
        yield* nextBoard.hook("Stop", "s1", { background_tasks: [] })
        yield* nextBoard.hook("PermissionRequest", "s1", asking(bash))
        assert.deepStrictEqual([yield* nextBoard.rows, (yield* next.plates.health).ready], [[], false])
        yield* Deferred.succeed(slow, undefined)
        yield* until("the log is folded", next.plates.health, ({ ready }) => ready)
        yield* nextBoard.status("s1", "AwaitingApproval")
        assert.strictEqual((yield* nextBoard.rows).length, 1)
      })
    )
  )

  it.effect("closed plates fade after a day: they are no actors any more, and can be listed and resumed", () =>
    run((world) =>
      Effect.gen(function* () {
        const { board } = world
        for (const id of ["s1", "s2"]) yield* board.hook("SessionStart", id, { source: "startup" }, { pid: undefined })
        yield* board.settled("s2")
        yield* board.plates.stopped({ session_id: "s1" })
        yield* board.plates.stopped({ session_id: "s2" })
        yield* TestClock.adjust("25 hours")
        const again = yield* restart(world)
        assert.strictEqual((yield* again.plates.list({ closed: false })).length, 0)
        assert.strictEqual((yield* again.plates.list({ closed: true })).length, 2)
        yield* again.hook("PreToolUse", "s1", bash)
        assert.strictEqual((yield* again.settled("s1")).status, "Closed")
        yield* again.hook("SessionStart", "s1", { source: "resume" })
        yield* again.status("s1", "Idle")
        assert.strictEqual((yield* again.plates.list({ closed: true })).length, 2)
      })
    )
  )
})

describe("the list", () => {
  it.effect("has attention first and the closed last; a plate is found by a beginning that only it has", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        for (const [index, id] of ["quiet", "asks", "gone", "works"].entries()) {
          yield* board.plates.register({ plateId: `${index}x-${id}`, cwd: "/home/user/project" })
          yield* board.hook("SessionStart", id, { source: "startup" }, { plate: `${index}x-${id}` })
        }
        yield* board.hook("PermissionRequest", "asks", asking(bash))
        yield* board.hook("UserPromptSubmit", "works")
        yield* board.settled("works")
        yield* board.plates.stopped({ session_id: "gone" })
        const ids = (yield* board.rows).map(({ sessionId }) => sessionId)
        assert.deepStrictEqual([ids[0], ids[3]], ["asks", "gone"])
        assert.strictEqual((yield* board.plates.find("1x")).sessionId, "asks")
        assert.strictEqual((yield* Effect.flip(board.plates.find("")))._tag, "CommandRefused")
        yield* board.plates.register({ plateId: "1xx", cwd: "/" })
        assert.include((yield* Effect.flip(board.plates.find("1x"))).message, "2 plate ids")
      })
    )
  )
})
