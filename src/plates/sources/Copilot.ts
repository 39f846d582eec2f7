/**
 * Copilot: GitHub's Copilot CLI, which writes the records of each session to `events.jsonl`. Its hooks tell less: none
 * fires after Esc, after a failed request, or when a dialog has closed.
 */
import { alive, as, type Body, callOf, type Source, type Translate } from "../SessionSource.ts"

const call = callOf("ask_user")

/** Translates a record of the main agent; one of a subagent says nothing about the turn. */
const ofMain =
  (name: string, change?: (body: Body) => Body): Translate =>
  (body) =>
    "agent_id" in body ? alive(body) : as(name, change)(body)

const stops = ofMain("Stop")

export const Copilot: Source = {
  id: "copilot",
  name: "Copilot CLI",
  version: "1.0.102",
  recorded: true,
  hooks: {
    "user.message": ofMain("UserPromptSubmit"),
    "assistant.turn_start": ofMain("PostToolBatch"),
    "tool.execution_start": as("PreToolUse", call),
    "permission.requested": as("PermissionRequest", call),
    // the dialog of the call is over
    "permission.completed": as("PermissionDenied", call),
    "tool.execution_complete": as("PostToolUse", call),
    // an answer without calls ends the turn
    "assistant.message": (body) => (body["calls"] === 0 ? stops(body) : alive(body)),
    abort: stops,
    "session.error": ofMain("StopFailure"),
    "session.shutdown": as("SessionEnd", (body) => ({ ...body, reason: "other" }))
  },
  tells: {
    found: "its own record of open sessions; a resumed one at its next prompt",
    work: "records user.message, assistant.turn_start and the last assistant.message; after Esc, abort",
    asks: "records permission.requested and permission.completed, tool.execution_start of ask_user",
    error: "record session.error"
  }
}
