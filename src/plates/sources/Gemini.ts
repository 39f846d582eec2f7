/** Gemini CLI: hooks in `settings.json`. Tool calls have no id. A failed request looks like the end of a turn. */
import { alive, as, callOf, dialog, failed, interrupted, notification, type SessionSource } from "../SessionSource.ts"

const call = callOf("ask_user")

export const Gemini: SessionSource = {
  id: "gemini",
  name: "Gemini CLI",
  version: "0.61.0",
  file: { folder: ".gemini", name: "settings.json" },
  comments: true,
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
  record: ({ content, timestamp, type }) => {
    if (type === "error") return failed(timestamp, content)
    // the result of a call that Esc ends comes after the record of the Esc
    const isCut = type === "user" && JSON.stringify(content).includes('"error":"[Operation Cancelled]')
    return (type === "info" && content === "Request cancelled.") || isCut ? interrupted(timestamp) : undefined
  },
  shell: { tool: "run_shell_command", mark: "/gemini-shell-" },
  tells: {
    found: "process; hook SessionStart",
    work: "hooks BeforeAgent and AfterAgent; after Esc, the session file",
    asks: "hook Notification (ToolPermission); its end by the process of the command; another call that you allow counts as waiting until it ends",
    error: "session file"
  }
}
