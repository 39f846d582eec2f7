/** Gemini CLI: hooks in `settings.json`. Tool calls have no id. A failed request looks like the end of a turn. */
import { alive, as, callOf, dialog, notification, type SessionSource } from "../SessionSource.ts"

const call = callOf("ask_user")

export const Gemini: SessionSource = {
  id: "gemini",
  name: "Gemini CLI",
  version: "0.61.0",
  file: { folder: ".gemini", name: "settings.json" },
  timeUnit: 1000,
  hooks: {
    SessionStart: as("SessionStart"),
    BeforeAgent: as("UserPromptSubmit"),
    BeforeTool: as("PreToolUse", call),
    Notification: notification({ ToolPermission: dialog }),
    AfterTool: as("PostToolUse", call),
    PreCompress: alive,
    AfterAgent: as("Stop"),
    SessionEnd: as("SessionEnd")
  },
  tells: {
    found: "hook SessionStart",
    work: "hooks BeforeAgent and AfterAgent",
    asks: "hook Notification (ToolPermission); a call that you allow counts as waiting until it ends",
    error: "no: after a failed request, the hooks are those of a turn that ended"
  }
}
