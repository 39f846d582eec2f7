/** Qwen Code: hooks in `settings.json`, with the names of Claude Code. The permission request comes before the call. */
import { as, callOf, notification, type SessionSource } from "../SessionSource.ts"

const call = callOf("ask_user_question")

export const Qwen: SessionSource = {
  id: "qwen",
  name: "Qwen Code",
  version: "0.24.4",
  file: { folder: ".qwen", name: "settings.json" },
  comments: true,
  timeUnit: 1,
  hooks: {
    SessionStart: as("SessionStart"),
    UserPromptSubmit: as("UserPromptSubmit"),
    PermissionRequest: as("PermissionRequest", call),
    // the dialog of the call is over
    PreToolUse: as("PermissionDenied", call),
    PostToolUse: as("PostToolUse", call),
    PostToolUseFailure: as("PostToolUseFailure", call),
    Notification: notification({ idle_prompt: as("Notification") }),
    Stop: as("Stop"),
    StopFailure: as("StopFailure"),
    SessionEnd: as("SessionEnd")
  },
  tells: {
    found: "process; hook SessionStart",
    work: "hooks UserPromptSubmit and Stop; after Esc, hook Notification (idle_prompt)",
    asks: "hook PermissionRequest",
    error: "hook StopFailure"
  }
}
