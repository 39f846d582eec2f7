/**
 * Opencode: opencode and its fork Kilo. A plugin passes their events on, under the names of the events; `agentd.…` are
 * the plugin's own.
 */
import { MADE } from "../PlateState.ts"
import { alive, as, type Body, type SessionSource, type Translate } from "../SessionSource.ts"

/** A tool call. The id of the call, not its input, joins the permission request with it. */
const call = (body: Body): Body => {
  const id = MADE + String(body["tool_use_id"])
  return { ...body, tool_use_id: id, tool_input: { id } }
}

/** Events of a subagent's session change the row in another way than those of the session itself. */
const ofAgent =
  (own: Translate, agents: Translate): Translate =>
  (body) =>
    body["agent_id"] === undefined ? own(body) : agents(body)

// also follows an error, and does not end it
const idle = ofAgent(
  as("Notification", (body) => ({ ...body, notification_type: "idle_prompt" })),
  as("SubagentStop")
)
const prompted = ofAgent(as("UserPromptSubmit"), alive)
const question = (name: string) => as(name, (body) => ({ ...body, mcp_server_name: body["request"] }))

const hooks: SessionSource["hooks"] = {
  "agentd.shown": as("SessionStart", (body) => ({ ...body, source: "startup" })),
  "agentd.alive": alive,
  "chat.message": prompted,
  "session.status": (body) => (body["status"] === "idle" ? idle(body) : prompted(body)),
  "session.idle": idle,
  // the session stops by itself after the user's Esc
  "session.error": ofAgent(
    (body) => (body["error"] === "MessageAbortedError" ? alive(body) : as("StopFailure")(body)),
    alive
  ),
  "tool.running": as("PreToolUse", call),
  "tool.completed": as("PostToolUse", call),
  "tool.error": as("PostToolUseFailure", call),
  "permission.asked": as("PermissionRequest", call),
  "permission.replied": as("PermissionDenied", call),
  "question.asked": question("Elicitation"),
  "question.replied": question("ElicitationResult"),
  "question.rejected": question("ElicitationResult")
}

const of = (id: string, name: string, version: string): SessionSource => ({
  id,
  name,
  version,
  file: { variable: "XDG_CONFIG_HOME", folder: ".config", name: `${id}/plugin/agentd.js` },
  plugin: true,
  timeUnit: 1,
  hooks,
  then: `The next start of ${name} can wait until it has fetched its own package for plugins. Without a network it waits for a minute or longer.`,
  tells: {
    found: "process; plugin: the program opens; in a server, the first prompt of a session",
    work: "plugin: event session.status; a retry counts as working",
    asks: "plugin: events permission.asked, question.asked, and their replies",
    error: "plugin: event session.error"
  }
})

export const Opencode = of("opencode", "opencode", "1.18.33")
export const Kilo = of("kilo", "Kilo", "7.7.7")
