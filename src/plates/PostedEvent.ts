/**
 * PostedEvent: parses the bodies of `POST /events`, `/plates/register` and `/plates/stopped`, for clients other than
 * Claude Code.
 *
 * Guarantees: pure; an unknown event type is rejected. `stopped` must name one plate or session, never a whole folder.
 */
import type { Result } from "effect"
import type * as PlateMachine from "./PlateMachine.ts"
import { type EventRefused, JsonReader, MAX_PATH } from "./JsonReader.ts"
import type { Heard } from "./HookEvent.ts"
import * as PlateId from "./PlateId.ts"

interface Base {
  readonly at: number
  readonly sessionId: string
  readonly timestamp?: number
}

const events: { readonly [type: string]: (body: JsonReader, base: Base) => PlateMachine.Event } = {
  session_start: (body, base) => {
    const cwd = body.maybe(["cwd", "project_path"], MAX_PATH)
    const transcriptPath = body.maybe("transcript_path", MAX_PATH)
    const gitBranch = body.maybe("git_branch")
    return {
      _tag: "SessionStart",
      ...base,
      ...(cwd === undefined ? {} : { cwd }),
      ...(transcriptPath === undefined ? {} : { transcriptPath }),
      ...(gitBranch === undefined ? {} : { gitBranch })
    }
  },
  prompt_submit: (_, base) => ({ _tag: "PromptSubmit", ...base }),
  tool_start: (body, base) => ({ _tag: "ToolStart", ...base, tool: body.text("tool_name") }),
  tool_call: (_, base) => ({ _tag: "ToolCall", ...base }),
  // these two add a question and remove it, as a hook and an answer do
  permission_request: (body, { at, sessionId }) => ({
    _tag: "HookPermissionRequest",
    at,
    sessionId,
    tool: body.text("tool_name")
  }),
  permission_answered: (body, { at }) => ({
    _tag: "PromptAnswered",
    at,
    tool: body.text("tool_name"),
    behavior: body.json["decision"] === "deny" ? "deny" : "allow"
  }),
  stop: (body, base) => {
    const error = body.json["error"] ?? ""
    if (typeof error !== "string")
      body.refuse("error", "error is not a text.", "Give it as a text, null, or leave it out.")
    return { _tag: "Stop", ...base, error: body.words("error") ?? null }
  }
}

/** An event, and the plate id that its sender gave. */
export interface Posted extends Heard {
  readonly plate: string | undefined
}

const PLATE = ["plate_id", "plateId"]

export const parse = (raw: unknown, at: number): Result.Result<Posted, EventRefused> =>
  JsonReader.read(raw, (body) => {
    const type = body.text("event_type")
    const timestamp = body.time("timestamp")
    const base = { at, sessionId: body.text("session_id"), ...(timestamp === undefined ? {} : { timestamp }) }
    const read = Object.hasOwn(events, type) ? events[type] : undefined
    if (read === undefined) {
      body.refuse(
        "event_type",
        `There is no event of type ${JSON.stringify(type.slice(0, 64))}.`,
        `The types are: ${Object.keys(events).join(", ")}.`
      )
    }
    return {
      name: type,
      sessionId: base.sessionId,
      cwd: body.text(["cwd", "project_path"], MAX_PATH),
      transcriptPath: body.maybe("transcript_path", MAX_PATH),
      event: read?.(body, base),
      plate: body.maybe(PLATE),
      ...(type === "tool_start" && body.json["tool_input"] !== undefined
        ? { input: JSON.stringify(body.json["tool_input"]) }
        : {})
    }
  })

export interface Registration {
  readonly plateId: string | undefined
  readonly cwd: string
  readonly pid: number | undefined
}

export const register = (raw: unknown): Result.Result<Registration, EventRefused> =>
  JsonReader.read(raw, (body) => {
    const plateId = body.maybe(PLATE)
    if (plateId !== undefined && !PlateId.isValid(plateId)) {
      body.refuse("plate_id", `${JSON.stringify(plateId.slice(0, 80))} cannot be the id of a plate.`, PlateId.FORM)
    }
    return { plateId, cwd: body.text(["cwd", "project_path"], MAX_PATH), pid: body.count("pid") }
  })

export interface Stopped {
  readonly plateId: string | undefined
  readonly sessionId: string | undefined
  readonly pid: number | undefined
}

export const stopped = (raw: unknown): Result.Result<Stopped, EventRefused> =>
  JsonReader.read(raw, (body) => {
    const plateId = body.maybe(PLATE)
    const sessionId = body.maybe("session_id")
    if (plateId === undefined && sessionId === undefined) {
      body.refuse(
        "plate_id",
        "Both plate_id and session_id are missing.",
        "Specify the plate: a folder can have several sessions, and only one has ended."
      )
    }
    return { plateId, sessionId, pid: body.count("pid") }
  })
