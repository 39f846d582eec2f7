/** Droid of Factory: hooks in `settings.json`, with the names of Claude Code. Tool calls have no id. */
import { alive, as, callOf, dialog, notification, type SessionSource } from "../SessionSource.ts"

const call = callOf("AskUser")

export const Droid: SessionSource = {
  id: "droid",
  name: "Droid",
  version: "0.215.0",
  file: { folder: ".factory", name: "settings.json" },
  timeUnit: 1,
  hooks: {
    SessionStart: as("SessionStart"),
    UserPromptSubmit: as("UserPromptSubmit"),
    PreToolUse: as("PreToolUse", call),
    Notification: notification({
      permission_prompt: dialog,
      elicitation_dialog: alive,
      idle_prompt: as("Notification")
    }),
    PostToolUse: as("PostToolUse", call),
    Stop: as("Stop"),
    SessionEnd: as("SessionEnd")
  },
  tells: {
    found: "process; hook SessionStart",
    work: "hooks UserPromptSubmit and Stop; after Esc, hook Notification (idle_prompt)",
    asks: "hook Notification (permission_prompt), PreToolUse of AskUser; a call that you allow counts as waiting until it ends",
    error: "no: after a failed request, the hooks are those of a turn that ended"
  }
}
