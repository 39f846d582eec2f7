/** The board through sessions of coding CLIs other than Claude Code, with the hooks as they were captured. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { PlateInfo } from "../../../src/domain/Messages.ts"
import type { SessionSource } from "../../../src/plates/SessionSource.ts"
import { SESSION_SOURCES } from "../../../src/plates/SessionSources.ts"
import { child, nobody, payload, run } from "./World.ts"

type Fields = { readonly [field: string]: unknown }
type Story = ReadonlyArray<readonly [hook: string, status: PlateInfo["status"], says?: string]>

const capturedOf = (id: string): ReadonlyMap<string, Fields> =>
  new Map(
    readFileSync(join(import.meta.dirname, `../../fixtures/hooks/${id}.jsonl`), "utf8")
      .trim()
      .split("\n")
      .map((line) => {
        const { case: name, payload } = JSON.parse(line) as { readonly case: string; readonly payload: Fields }
        return [name, payload] as const
      })
  )

/** opencode and Kilo: the bodies that the plugin sent for the programs' events. */
const plugins = (name: string): Story => [
  ["agentd.shown", "Idle"],
  ["chat.message", "Running"],
  ["session.status / busy", "Running", `${name}: works`],
  ["tool.running / bash", "Running", `${name}: runs bash`],
  ["permission.asked / bash", "AwaitingApproval", `${name}: asks to use bash`],
  ["permission.replied / bash", "Running", `${name}: works`],
  ["tool.running / bash", "Running", `${name}: runs bash`],
  ["tool.completed / bash", "Running", `${name}: works`],
  ["session.status / idle", "Idle"],
  ["session.idle", "Idle"],
  ["session.status / busy", "Running"],
  ["tool.running / question", "Running"],
  ["question.asked", "AwaitingInput", `${name}: asks a question`],
  // after Esc
  ["session.idle", "Idle"],
  ["chat.message", "Running"],
  ["tool.running / task", "Running"],
  ["subagent: session.status / busy", "Running"],
  ["subagent: tool.running / bash", "Running", `${name}: runs task, bash`],
  ["subagent: permission.asked / bash", "AwaitingApproval", `${name}: a subagent asks to use bash`],
  ["subagent: permission.replied / bash", "Running"],
  ["subagent: session.idle", "Running"],
  ["tool.completed / task", "Running", `${name}: works`],
  // it says so twice
  ["session.error / APIError 401", "Error", `${name}: APIError 401`],
  ["session.status / idle", "Error"],
  ["session.idle", "Error"],
  ["chat.message", "Running"]
]

const stories: { readonly [id: string]: Story } = {
  gemini: [
    ["SessionStart / startup", "Idle"],
    ["BeforeAgent", "Running"],
    ["BeforeTool / run_shell_command", "Running", "Gemini CLI: runs run_shell_command"],
    ["Notification / ToolPermission", "AwaitingApproval", "Gemini CLI: asks for permission"],
    ["AfterTool / run_shell_command", "Running", "Gemini CLI: works"],
    // the same command again
    ["BeforeTool / run_shell_command", "Running", "Gemini CLI: runs run_shell_command"],
    ["Notification / ToolPermission", "AwaitingApproval"],
    ["AfterTool / run_shell_command", "Running", "Gemini CLI: works"],
    ["PreCompress", "Running"],
    ["AfterAgent", "Idle", "Gemini CLI: waits for a prompt"]
  ],
  qwen: [
    ["SessionStart", "Idle"],
    ["UserPromptSubmit", "Running"],
    ["PermissionRequest / run_shell_command", "AwaitingApproval", "Qwen Code: asks to use run_shell_command"],
    ["Notification / permission_prompt", "AwaitingApproval"],
    ["PreToolUse / run_shell_command", "Running"],
    ["PostToolUse / run_shell_command", "Running"],
    ["PostToolBatch", "Running"],
    ["Stop", "Idle"],
    ["UserPromptSubmit", "Running"],
    ["PermissionRequest / ask_user_question", "AwaitingInput", "Qwen Code: asks a question"],
    ["PreToolUse / ask_user_question", "Running"],
    ["PostToolUse / ask_user_question", "Running"],
    // after Esc
    ["Notification / idle_prompt", "Idle"],
    ["UserPromptSubmit", "Running"],
    ["Notification / idle_prompt", "Idle"],
    ["StopFailure", "Error", "Qwen Code: authentication_failed"],
    ["UserPromptSubmit", "Running"]
  ],
  droid: [
    ["SessionStart", "Idle"],
    ["UserPromptSubmit", "Running"],
    ["PreToolUse / Execute", "Running", "Droid: runs Execute"],
    ["Notification / permission_prompt", "AwaitingApproval", "Droid: asks for permission"],
    ["PostToolUse / Execute", "Running"],
    ["PreToolUse / AskUser", "AwaitingInput", "Droid: asks a question"],
    ["Notification / elicitation_dialog", "AwaitingInput"],
    ["PostToolUse / AskUser", "Running"],
    ["Stop", "Idle"],
    ["UserPromptSubmit", "Running"],
    ["Notification / idle_prompt", "Idle"]
  ],
  cline: [
    ["TaskStart", "Running", "Cline: works"],
    ["PreToolUse / run_commands", "Running", "Cline: runs run_commands, or asks to"],
    ["PostToolUse / run_commands", "Running", "Cline: works"],
    ["TaskComplete", "Idle", "Cline: waits for a prompt"],
    ["TaskStart", "Running"],
    ["PreToolUse / ask_question", "AwaitingInput", "Cline: asks a question"],
    ["PostToolUse / ask_question", "Running"],
    ["PreToolUse / spawn_agent", "Running"],
    ["TaskStart / subagent", "Running"],
    ["TaskComplete / subagent", "Running", "Cline: runs spawn_agent, or asks to"],
    // after Esc
    ["SessionShutdown", "Idle"],
    ["TaskStart", "Running"],
    ["TaskError", "Error", "Cline: Incorrect API key provided: dummy."],
    ["TaskStart", "Running"]
  ],
  opencode: [
    ...plugins("opencode"),
    ["tool.running / question", "Running"],
    ["question.asked", "AwaitingInput"],
    ["question.replied", "Running"],
    ["session.error / MessageAbortedError", "Running"],
    ["session.idle", "Idle"]
  ],
  kilo: plugins("Kilo"),
  codex: [
    ["SessionStart / startup", "Idle"],
    ["UserPromptSubmit", "Running"],
    ["PreToolUse / Bash", "Running", "Codex: runs Bash"],
    ["PermissionRequest / Bash", "AwaitingApproval", "Codex: asks to use Bash"],
    ["PostToolUse / Bash", "Running"],
    ["Stop", "Idle"],
    ["UserPromptSubmit", "Running"],
    ["Interrupt", "Idle"]
  ]
}

/** Ids of the session and of its only call: the hooks were captured in several sessions. */
const joined = ({ id, plugin }: SessionSource, payload: Fields): Fields => ({
  ...payload,
  ...("sessionContext" in payload ? { sessionContext: { rootSessionId: `of-${id}` } } : { session_id: `of-${id}` }),
  ...("tool_use_id" in payload && !plugin ? { tool_use_id: "c1" } : {})
})

describe("the hooks of another CLI", () => {
  for (const source of SESSION_SOURCES) {
    const { id } = source
    it.effect(`${id}: each hook, and the status after it`, () =>
      run(({ board }) =>
        Effect.gen(function* () {
          const captured = capturedOf(id)
          const send = (name: string) =>
            board.plates.hook(joined(source, captured.get(name) ?? assert.fail(name)), nobody, source)
          for (const [name, status, says] of stories[id]!) {
            yield* send(name)
            const row = yield* board.settled(`of-${id}`)
            assert.strictEqual(row.status, status, name)
            if (says !== undefined) assert.strictEqual(row.detail, says, name)
            assert.strictEqual(row.watchable, source.record !== undefined, "whether its transcript is read")
          }
        })
      )
    )

    it.effect(`${id}: a session whose start was missed is found by its next hook`, () =>
      run(({ board }) =>
        Effect.gen(function* () {
          const [first] = stories[id]!.filter(([, status]) => status === "Running")
          yield* board.plates.hook(joined(source, capturedOf(id).get(first![0])!), nobody, source)
          const row = yield* board.settled(`of-${id}`)
          assert.strictEqual(row.status, "Running")
          assert.match(row.detail, new RegExp(`^${source.name}: `))
        })
      )
    )

    it.effect(`${id}: an unknown hook changes nothing; one without a name is refused`, () =>
      run(({ board }) =>
        Effect.gen(function* () {
          yield* board.plates.hook(
            { hook_event_name: "OfNextYear", hookName: "of_next_year", session_id: "s", cwd: "/" },
            nobody,
            source
          )
          assert.lengthOf(yield* board.rows, 0)
          const refused = yield* Effect.flip(board.plates.hook({ session_id: "s", cwd: "/" }, nobody, source))
          assert.strictEqual(refused.field, "hook_event_name")
        })
      )
    )
  }

  it.effect("a process that opens and at once begins a session has one row", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        const opencode = SESSION_SOURCES.find(({ id }) => id === "opencode")!
        const origin = { ...nobody, pid: process.pid }
        const shown = { hook_event_name: "agentd.shown", cwd: "/home/user/project" }
        yield* board.plates.hook({ ...shown, session_id: "open-1" }, origin, opencode)
        yield* board.plates.hook({ ...shown, session_id: "ses_1" }, origin, opencode)
        yield* board.settled("ses_1")
        const rows = yield* board.rows
        assert.deepStrictEqual(
          rows.map(({ sessionId }) => sessionId),
          ["ses_1"]
        )
      })
    )
  )
})

describe("the hooks of Cline", () => {
  it.effect(
    "a new session of a process continues its row: no hook tells of /clear; another process has another row",
    () =>
      run(({ board }) =>
        Effect.gen(function* () {
          const source = SESSION_SOURCES.find(({ id }) => id === "cline")!
          const start = capturedOf("cline").get("TaskStart")!
          const send = (session: string, pid: number) =>
            board.plates.hook({ ...start, sessionContext: { rootSessionId: session } }, { ...nobody, pid }, source)
          const [mine, other] = [yield* child, yield* child]
          yield* send("a", mine)
          yield* board.settled("a")
          yield* send("b", mine)
          assert.strictEqual((yield* board.settled("b")).pid, mine)
          yield* send("c", other)
          yield* board.settled("c")
          assert.deepStrictEqual((yield* board.rows).map(({ sessionId }) => sessionId).toSorted(), ["b", "c"])
        })
      )
  )
})

describe("what the hooks of another CLI do not tell", () => {
  const told = {
    gemini: {
      begins: ["BeforeAgent"],
      failed: { type: "error", content: "[API Error: the key is not valid]" },
      ends: ["AfterAgent"],
      interrupted: { type: "info", content: "Request cancelled." }
    },
    codex: {
      begins: ["UserPromptSubmit"],
      failed: {
        type: "event_msg",
        payload: { type: "task_complete", error: { message: "[API Error: the key is not valid]" } }
      },
      ends: [],
      interrupted: { type: "event_msg", payload: { type: "turn_aborted", reason: "interrupted" } }
    }
  }
  for (const [id, { begins, ends, failed, interrupted }] of Object.entries(told)) {
    const source = SESSION_SOURCES.find((one) => one.id === id)!

    it.effect(`${id}: a failed request is an error, until the next prompt`, () =>
      run(({ board }) =>
        Effect.gen(function* () {
          const hook = (name: string, more: Fields = {}) =>
            board.plates.hook(payload(name, id, { transcript_path: board.transcript(id), ...more }), nobody, source)
          yield* hook("SessionStart", { source: "startup" })
          for (const name of [...begins, ...ends]) yield* hook(name)
          yield* board.settled(id)
          yield* board.write(id, failed)
          yield* board.check()
          // the end of the turn can be reported after the failure
          for (const name of ends) yield* hook(name)
          const row = yield* board.status(id, "Error")
          assert.include(row.detail, "the key is not valid")
          yield* hook("SessionStart", { source: "clear" })
          yield* board.check()
          yield* board.status(id, "Idle")
          for (const name of begins) yield* hook(name)
          yield* board.check()
          yield* board.status(id, "Running")
        })
      )
    )

    it.effect(`${id}: after Esc in a dialog the session is idle`, () =>
      run(({ board }) =>
        Effect.gen(function* () {
          const captured = capturedOf(id)
          const hook = (name: string) =>
            board.plates.hook(
              { ...joined(source, captured.get(name)!), transcript_path: board.transcript(id) },
              nobody,
              source
            )
          const asking = stories[id]!.findIndex(([, status]) => status === "AwaitingApproval")
          for (const [name] of stories[id]!.slice(0, asking + 1)) yield* hook(name)
          assert.strictEqual((yield* board.settled(`of-${id}`)).status, "AwaitingApproval")
          yield* board.write(id, interrupted)
          yield* board.check()
          yield* board.status(`of-${id}`, "Idle")
        })
      )
    )
  }
})
