/**
 * HookEvent: parses what Claude Code's hooks report about a session.
 *
 * Guarantees: pure; every hook of Claude Code is known, and an unknown one is rejected by name. An event contains only
 * what the board needs: no prompt, and no input or output of a tool. The input of a permission request is returned
 * separately.
 */
import { createHash } from "node:crypto"
import { Result } from "effect"
import { isReadonlyObject as isObject } from "effect/Predicate"
import { inner } from "../runs/claude/ClaudeRecord.ts"
import { isPlanFile, questionsOf } from "../runs/claude/ClaudeTools.ts"
import type { Question } from "../runs/Question.ts"
import type * as PlateMachine from "./PlateMachine.ts"
import { type EventRefused, JsonReader, MAX_PATH } from "./JsonReader.ts"
import type { Source } from "./SessionSource.ts"

/** A parsed hook of Claude Code, or a parsed event of `/events`. */
export interface Heard {
  /** The hook's name, or the event's type. */
  readonly name: string
  /** The name of the coding CLI; undefined: Claude Code, or unknown. */
  readonly cli?: string
  /** True if the CLI reports no session's start: a new session of a process continues the row of the one before. */
  readonly startless?: true
  /** True if the session's own file reports the event. */
  readonly recorded?: true
  readonly sessionId: string
  readonly cwd: string | undefined
  readonly transcriptPath: string | undefined
  /** The event for the plate. Undefined if the hook says nothing about the session's state. */
  readonly event: PlateMachine.Event | undefined
  /** The beginning of the user's prompt. */
  readonly prompt?: string
  readonly questions?: ReadonlyArray<Question>
  /** The input of the tool that asks for permission, or that `/events` reports: unredacted JSON. */
  readonly input?: string
  /** The tool call that writes a plan. The permission request that follows does not contain the plan's text. */
  readonly plan?: { readonly tool: string; readonly input: unknown }
}

/** Maximum number of background tasks in one Stop hook. */
const MAX_TASKS = 256
/** Number of characters of a prompt that are searched for the id of an ended task. */
const PROMPT_HEAD = 2_000
const PROMPT_KEPT = 200

interface Base {
  readonly at: number
  readonly sessionId: string
}
type Read = (body: JsonReader, base: Base) => PlateMachine.Event | undefined

const agentOf = (body: JsonReader) => {
  const agentId = body.maybe("agent_id")
  return agentId === undefined ? {} : { agentId }
}

const call = (body: JsonReader) => ({
  ...agentOf(body),
  tool: body.text("tool_name"),
  callId: body.text("tool_use_id")
})

/** A digest that distinguishes two calls of the same tool. The input itself is not stored. */
const inputOf = (body: JsonReader) => {
  const input = body.json["tool_input"]
  if (input === undefined) return {}
  return { input: createHash("sha256").update(JSON.stringify(input)).digest("hex").slice(0, 16) }
}

/** Id of the work that continues in the background after the call: an agent, or a command. */
const launched = (body: JsonReader) => {
  const { agentId, backgroundTaskId, isAsync } = body.within("tool_response")
  const id = isAsync === true ? agentId : backgroundTaskId
  return typeof id === "string" && id !== "" ? { launched: id.slice(0, MAX_PATH) } : {}
}

const running = (body: JsonReader): ReadonlyArray<string> =>
  body
    .list("background_tasks")
    .slice(0, MAX_TASKS)
    .flatMap((task) =>
      typeof task === "object" && task !== null && "id" in task && typeof task.id === "string"
        ? [task.id.slice(0, MAX_PATH)]
        : []
    )

const ENDED_TASK = /^\s*<task-notification>[^]*?<task-id>([^<]{1,200})<\/task-id>/

const endedTask = (body: JsonReader) => {
  const found = ENDED_TASK.exec((body.words("prompt") ?? "").slice(0, PROMPT_HEAD))
  return found === null ? {} : { endedTask: found[1]! }
}

const notification = (body: JsonReader, base: Base): PlateMachine.Event | undefined => {
  const type = body.text("notification_type")
  return type === "permission_prompt" || type === "idle_prompt" || type === "agent_needs_input"
    ? { _tag: "HookNotification", ...base, notificationType: type }
    : undefined
}

/** Returns no event: the hook does not change the state, but shows that the session is alive. */
const nothing: Read = () => undefined

const hooks: { readonly [name: string]: Read } = {
  SessionStart: (body, base) => ({ _tag: "HookSessionStart", ...base, source: body.text("source") }),
  SessionEnd: (body, base) => ({ _tag: "HookSessionEnd", ...base, reason: body.text("reason") }),
  UserPromptSubmit: (body, base) => ({ _tag: "HookUserPromptSubmit", ...base, ...endedTask(body) }),
  PreToolUse: (body, base) => ({ _tag: "HookPreToolUse", ...base, ...call(body), ...inputOf(body) }),
  PostToolUse: (body, base) => ({ _tag: "HookPostToolUse", ...base, ...call(body), ...launched(body) }),
  PostToolUseFailure: (body, base) => ({
    _tag: "HookPostToolUseFailure",
    ...base,
    ...call(body),
    isInterrupt: body.json["is_interrupt"] === true
  }),
  PostToolBatch: (body, base) => ({ _tag: "HookPostToolBatch", ...base, ...agentOf(body) }),
  PermissionRequest: (body, base) => ({
    _tag: "HookPermissionRequest",
    ...base,
    ...agentOf(body),
    tool: body.text("tool_name"),
    ...inputOf(body)
  }),
  PermissionDenied: (body, base) => {
    const callId = body.maybe("tool_use_id")
    return {
      _tag: "HookPermissionDenied",
      ...base,
      ...agentOf(body),
      tool: body.text("tool_name"),
      ...(callId === undefined ? {} : { callId })
    }
  },
  Notification: notification,
  Stop: (body, base) => ({ _tag: "HookStop", ...base, backgroundTasks: running(body) }),
  StopFailure: (body, base) => ({ _tag: "HookStopFailure", ...base, error: body.words("error") ?? "unknown" }),
  SubagentStop: (body, base) => ({ _tag: "HookSubagentStop", ...base, agentId: body.text("agent_id") }),
  Elicitation: (body, base) => ({ _tag: "HookElicitation", ...base, server: body.text("mcp_server_name") }),
  ElicitationResult: (body, base) => ({ _tag: "HookElicitationResult", ...base, server: body.text("mcp_server_name") }),
  PreCompact: (_, base) => ({ _tag: "HookPreCompact", ...base }),
  PostCompact: (_, base) => ({ _tag: "HookPostCompact", ...base }),
  UserPromptExpansion: nothing,
  SubagentStart: nothing,
  PreModelSwitch: nothing,
  PostModelSwitch: nothing,
  Setup: nothing,
  TeammateIdle: nothing,
  TaskCreated: nothing,
  TaskCompleted: nothing,
  ConfigChange: nothing,
  WorktreeCreate: nothing,
  WorktreeRemove: nothing,
  InstructionsLoaded: nothing,
  CwdChanged: nothing,
  FileChanged: nothing,
  DirectoryAdded: nothing,
  MessageDisplay: nothing
}

export const names: ReadonlyArray<string> = Object.keys(hooks)

/** The beginning of the prompt that the user typed. Empty for other hooks, and for text that a program inserted. */
const promptOf = (name: string, body: JsonReader) => {
  const prompt = name === "UserPromptSubmit" ? body.words("prompt")?.trim() : undefined
  return prompt === undefined || prompt === "" || prompt.startsWith("<") ? {} : { prompt: prompt.slice(0, PROMPT_KEPT) }
}

/** The tool call, if it writes the session's plan file; otherwise empty. */
const planOf = (name: string, body: JsonReader) => {
  if (name !== "PreToolUse") return {}
  const [tool, input] = [body.text("tool_name"), body.json["tool_input"]]
  const isPlan = (tool === "Write" || tool === "Edit") && isPlanFile(inner(body.json, "tool_input")["file_path"])
  return isPlan ? { plan: { tool, input } } : {}
}

/** Parses a hook. `at` is when the hook arrived, ms since the epoch. */
export const parse = (raw: unknown, at: number): Result.Result<Heard, EventRefused> =>
  JsonReader.read(raw, (body) => {
    const name = body.text("hook_event_name")
    const sessionId = body.text("session_id")
    const read = Object.hasOwn(hooks, name) ? hooks[name] : undefined
    if (read === undefined) {
      body.refuse(
        "hook_event_name",
        `There is no hook named ${JSON.stringify(name.slice(0, 64))}.`,
        "Send Claude Code's hook unchanged; a newer hook can require a newer agentd."
      )
    }
    return {
      name,
      sessionId,
      cwd: body.maybe("cwd", MAX_PATH),
      transcriptPath: body.maybe("transcript_path", MAX_PATH),
      event: read?.(body, { at, sessionId }),
      ...promptOf(name, body),
      ...planOf(name, body),
      ...(name === "PermissionRequest"
        ? {
            questions: questionsOf(body.text("tool_name"), inner(body.json, "tool_input")),
            input: JSON.stringify(body.json["tool_input"] ?? null)
          }
        : {})
    }
  })

/**
 * Parses a hook of another coding CLI. Undefined if it is one that says nothing about the session's state, or an unknown
 * one: the CLI is newer than this table.
 */
export const parseOf = (source: Source, hook: unknown, at: number): Result.Result<Heard | undefined, EventRefused> => {
  const raw = isObject(hook) && source.shape !== undefined ? source.shape(hook) : hook
  const name = isObject(raw) ? raw["hook_event_name"] : undefined
  const translate = typeof name === "string" && Object.hasOwn(source.hooks, name) ? source.hooks[name] : undefined
  if (translate === undefined && typeof name === "string") return Result.succeed(undefined)
  // without a name, the hook is refused as one of Claude Code
  const body = isObject(raw)
    ? { ...raw, ...translate?.(raw), ...(source.record === undefined ? { transcript_path: undefined } : {}) }
    : raw
  return Result.map(parse(body, at), (heard) => ({
    ...heard,
    cli: source.name,
    ...(source.startless === undefined ? {} : { startless: true as const }),
    ...(source.recorded === undefined ? {} : { recorded: true as const })
  }))
}
