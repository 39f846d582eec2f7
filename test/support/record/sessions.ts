/** sessions: records sessions that hooks report to a real daemon, in each state and by each hook. */
import { Effect } from "effect"
import { join } from "node:path"
import { post as hookTo } from "../../../src/api/http/Client.ts"
import { captured } from "../../world/plates/World.ts"
import * as Stage from "../Stage.ts"
import { lenient } from "./parts.ts"
import type { Keep } from "./Recorder.ts"

export const plates = Effect.fnUntraced(function* (keep: Keep) {
  const stage = yield* Stage.make
  const config = { agents: stage.trio("a") }
  const shop = stage.home(config)
  yield* stage.up
  yield* shop.register
  const socket = join(stage.box.state, "http.sock")
  const to = (path: string, body: object) => hookTo(socket, path, body, "5 seconds")
  const at = Date.now()
  const hook = (name: string, session: string, more: object = {}) =>
    to("/hooks/claude", {
      session_id: session,
      transcript_path: join(stage.box.folder, `${session}.jsonl`),
      cwd: shop.root,
      hook_event_name: name,
      ...more
    })
  const bash = (id: string) => ({ tool_name: "Bash", tool_input: { command: "npm test" }, tool_use_id: id })
  const rows = stage.rpc((client) => client.Plates({ all: true }))
  const all = (...kinds: ReadonlyArray<string>) => stage.box.runes(...kinds)
  const is = (session: string, status: string) =>
    shop.until(`${session} is ${status}`, rows, (all) =>
      all.some((row) => row.sessionId === session && row.status === status)
    )
  const asks = (session: string, id: string) =>
    Effect.gen(function* () {
      yield* hook("SessionStart", session, { source: "startup" })
      yield* hook("UserPromptSubmit", session, { prompt: "go" })
      yield* hook("PreToolUse", session, bash(id))
      const { tool_name, tool_input } = bash(id)
      const waiting = yield* Effect.forkScoped(
        lenient(
          hookTo(
            socket,
            "/hooks/claude/permission",
            {
              session_id: session,
              transcript_path: join(stage.box.folder, `${session}.jsonl`),
              cwd: shop.root,
              hook_event_name: "PermissionRequest",
              tool_name,
              tool_input
            },
            "10 minutes"
          )
        )
      )
      const [row] = yield* Effect.map(
        shop.until(`${session} asks`, rows, (all) =>
          all.some((one) => one.sessionId === session && one.approval !== null)
        ),
        (all) => all.filter((one) => one.sessionId === session)
      )
      return { row: row!, waiting }
    })
  for (const decision of ["allow", "deny"] as const) {
    const { row } = yield* asks(`s-${decision}`, `c-${decision}`)
    yield* shop.answer(row.approval!, decision, "so it is")
    yield* hook(decision === "allow" ? "PostToolUse" : "PostToolUseFailure", `s-${decision}`, bash(`c-${decision}`))
    yield* hook("Stop", `s-${decision}`)
  }
  yield* is("s-allow", "Idle")
  yield* hook("SessionEnd", "s-deny", { reason: "exit" })
  yield* is("s-deny", "Closed")
  yield* hook("SessionStart", "s-gone", { source: "startup" })
  yield* is("s-gone", "Idle").pipe(Effect.ignore)
  yield* stage.rpc((client) => client.ForgetPlate({ name: "s-gone", caller: shop.caller }))
  yield* hook("UserPromptSubmit", "s-run", { prompt: "work on it" })
  yield* hook("PreToolUse", "s-run", bash("c-run"))
  yield* is("s-run", "Running")
  yield* hook("UserPromptSubmit", "s-fail", { prompt: "fail" })
  yield* hook("StopFailure", "s-fail", { error: "rate_limit" })
  yield* is("s-fail", "Error").pipe(Effect.ignore)
  yield* hook("UserPromptSubmit", "s-input", { prompt: "choose" })
  yield* hook("PreToolUse", "s-input", {
    tool_name: "AskUserQuestion",
    tool_use_id: "c-q",
    tool_input: { questions: [{ question: "Which?", header: "Which", options: [{ label: "a" }, { label: "b" }] }] }
  })
  yield* is("s-input", "AwaitingInput").pipe(Effect.ignore)
  yield* to("/plates/register", { plate_id: "by-hand", cwd: shop.root })
  const event = (event_type: string, more: object = {}) =>
    to("/events", { event_type, session_id: "s-event", cwd: shop.root, plate_id: "by-hand", timestamp: at, ...more })
  yield* event("session_start")
  yield* event("prompt_submit")
  yield* event("tool_start", { tool_name: "Bash" })
  yield* event("tool_call", { tool_name: "Bash" })
  yield* event("stop", { error: "boom" })
  yield* to("/plates/register", { plate_id: "starting", cwd: shop.root })
  yield* to("/events", { event_type: "no_such_thing", session_id: "s", cwd: "/" })
  yield* to("/hooks/claude", { hook_event_name: "Stop" })
  // runs of the daemon's own agents have plates too
  yield* shop.tell("a-claude", { ask: "echo run > asked" }, { say: "done" })
  yield* shop.answer((yield* shop.asked("a-claude")).callId, "allow")
  yield* shop.answers("a-claude", 1)
  yield* asks("s-asks", "c-asks")
  yield* is("s-asks", "AwaitingApproval")
  yield* shop.until("both refusals are written", all("hook.refused"), (runes) => runes.length === 2)
  yield* keep("plates", stage, { shop: config })
})

/** Sends every captured hook, and every event that can be posted, to a session in each state. */
export const sessions = Effect.fnUntraced(function* (keep: Keep) {
  const stage = yield* Stage.make
  const shop = stage.home({ agents: {} })
  yield* stage.up
  yield* shop.register
  const socket = join(stage.box.state, "http.sock")
  const to = (path: string, body: object) => hookTo(socket, path, body, "5 seconds")
  const question = { questions: [{ question: "Which?", header: "Which", options: [{ label: "a" }, { label: "b" }] }] }
  const bash = { tool_name: "Bash", tool_input: { command: "npm test" } }
  const hook = (session: string, name: string, more: object = {}) =>
    to("/hooks/claude", {
      ...more,
      session_id: session,
      transcript_path: join(stage.box.folder, `${session}.jsonl`),
      cwd: shop.root,
      hook_event_name: name
    })
  const prompted = (session: string) => hook(session, "UserPromptSubmit", { prompt: "go" })
  const into: { readonly [state: string]: (session: string) => Effect.Effect<unknown, unknown> } = {
    Starting: () => Effect.void,
    Idle: (session) => hook(session, "SessionStart", { source: "startup" }),
    Running: prompted,
    AwaitingInput: (session) =>
      Effect.andThen(
        prompted(session),
        hook(session, "PreToolUse", { tool_name: "AskUserQuestion", tool_use_id: "q", tool_input: question })
      ),
    AwaitingApproval: (session) =>
      Effect.andThen(
        Effect.andThen(prompted(session), hook(session, "PreToolUse", { ...bash, tool_use_id: "c" })),
        hook(session, "PermissionRequest", bash)
      ),
    Error: (session) => Effect.andThen(prompted(session), hook(session, "StopFailure", { error: "rate_limit" })),
    Closed: (session) => Effect.andThen(prompted(session), to("/plates/stopped", { session_id: session }))
  }
  const hooks = [...captured].flatMap(([what, body]) => {
    const name = String(body["hook_event_name"])
    return [[what, (session: string) => hook(session, name, body)] as const]
  })
  const posted = ["session_start", "prompt_submit", "tool_start", "tool_call", "stop"].map((event_type) => {
    const event = { event_type, cwd: shop.root, tool_name: "Bash" }
    return [event_type, (session: string) => to("/events", { ...event, session_id: session })] as const
  })
  for (const [state, enter] of Object.entries(into)) {
    for (const [what, tell] of [...hooks, ...posted]) {
      const session = `${state}-${what}`
      yield* enter(session)
      yield* tell(session)
    }
  }
  const rows = stage.rpc((client) => client.Plates({ all: true }))
  yield* shop.until("all are there", rows, (all) => all.length >= Object.keys(into).length * hooks.length)
  for (const state of Object.keys(into)) {
    const name = `${state}-forgotten`
    yield* into[state]!(name)
    yield* lenient(
      Effect.andThen(
        shop.until("it is there", rows, (all) => all.some(({ sessionId }) => sessionId === name)),
        stage.rpc((client) => client.ForgetPlate({ name, caller: shop.caller }))
      )
    ).pipe(Effect.timeoutOption("2 seconds"))
  }
  yield* keep("sessions", stage, { shop: {} })
})
