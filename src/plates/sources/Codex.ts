/** Codex: hooks in `hooks.json`, which run once the user has trusted them. */
import { isReadonlyObject as isObject } from "effect/Predicate"
import { as, callOf, failed, interrupted, type SessionSource } from "../SessionSource.ts"

const call = callOf("request_user_input")

export const Codex: SessionSource = {
  id: "codex",
  name: "Codex",
  version: "0.171.0",
  file: { variable: "CODEX_HOME", folder: ".codex", name: "hooks.json" },
  timeUnit: 1,
  hooks: {
    SessionStart: as("SessionStart"),
    UserPromptSubmit: as("UserPromptSubmit"),
    PreToolUse: as("PreToolUse", call),
    // its input has another field than that of the call, so only the tool's name joins the two
    PermissionRequest: as("PermissionRequest", (body) => ({ ...call(body), tool_input: undefined })),
    PostToolUse: as("PostToolUse", call),
    PreCompact: as("PreCompact"),
    PostCompact: as("PostCompact"),
    Stop: as("Stop"),
    Interrupt: as("Stop"),
    SessionEnd: as("SessionEnd")
  },
  then: 'Codex asks once whether you trust the hooks: open it and choose "Trust all". Until then it runs none of them.',
  record: ({ payload: said, timestamp, type }) => {
    if (type !== "event_msg" || !isObject(said)) return undefined
    if (said["type"] === "turn_aborted") return interrupted(timestamp)
    const { error, type: kind } = said
    return kind === "task_complete" && isObject(error) ? failed(timestamp, error["message"]) : undefined
  },
  tells: {
    found: "process; hook SessionStart",
    work: "hooks UserPromptSubmit and Stop; after Esc, hook Interrupt and session file",
    asks: "hook PermissionRequest; a call that you allow counts as waiting until it ends",
    error: "session file"
  }
}
