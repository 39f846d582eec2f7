/** Cline: executables in `~/.cline/hooks`. Its hooks fire before the dialog of a call opens, and after it has closed. */
import { as, type Body, callOf, type SessionSource } from "../SessionSource.ts"

const call = callOf("ask_question")

const isObject = (value: unknown): value is Body => typeof value === "object" && value !== null
const within = (value: unknown): Body => (isObject(value) ? value : {})

/** The names in the hooks, and those of their files. */
const EVENTS: ReadonlyMap<unknown, string> = new Map([
  ["agent_start", "TaskStart"],
  ["agent_resume", "TaskResume"],
  ["tool_call", "PreToolUse"],
  ["tool_result", "PostToolUse"],
  ["agent_end", "TaskComplete"],
  ["agent_error", "TaskError"],
  ["agent_abort", "TaskCancel"],
  ["session_shutdown", "SessionShutdown"]
])

const shape = (body: Body): Body => {
  const { id, input, name } = within(body["tool_call"] ?? body["tool_result"])
  const roots = body["workspaceRoots"]
  return {
    hook_event_name: EVENTS.get(body["hookName"]) ?? body["hookName"],
    session_id: within(body["sessionContext"])["rootSessionId"],
    cwd: Array.isArray(roots) ? roots[0] : undefined,
    // of a subagent, because its parent is named
    ...(typeof body["parent_agent_id"] === "string" ? { agent_id: body["agent_id"] } : {}),
    ...(name === undefined ? {} : { tool_name: name, tool_use_id: id, tool_input: input }),
    ...(isObject(body["error"]) ? { error: body["error"]["message"] } : {})
  }
}

/** Translates a hook of the main agent; one of a subagent says nothing about the turn. */
const ofMain = (name: string) => (body: Body) => as("agent_id" in body ? "FileChanged" : name)(body)

export const Cline: SessionSource = {
  id: "cline",
  name: "Cline",
  version: "3.0.65",
  file: { folder: ".cline", name: "hooks", ending: ".sh" },
  timeUnit: 1,
  shape,
  startless: true,
  hooks: {
    TaskStart: ofMain("UserPromptSubmit"),
    TaskResume: ofMain("UserPromptSubmit"),
    PreToolUse: as("PreToolUse", call),
    PostToolUse: as("PostToolUse", call),
    TaskComplete: ofMain("Stop"),
    TaskError: ofMain("StopFailure"),
    TaskCancel: ofMain("Stop"),
    SessionShutdown: ofMain("Stop")
  },
  tells: {
    found: "process; hook TaskStart at the first prompt",
    work: "hooks TaskStart and TaskComplete; after Esc, hook SessionShutdown",
    asks: "no: a call fires the same hooks whether it asks or runs; only a question is told, by hook PreToolUse of ask_question",
    error: "hook TaskError"
  }
}
