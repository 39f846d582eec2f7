/** The conversation's diagram and its table of rune kinds. */
import type { Seed } from "./Seed.ts"

const inFlight = "a turn in flight ends, and an agent fails, wherever the conversation is by then"
const counted = "the machine counts turn errors and fatal stops itself: reaching the threshold suspends at once"

export const conversation: Seed = {
  states: ["[*]", "created", "active", "paused", "suspended", "closing", "closed", "archived"],
  rows: [
    { from: "[*]", event: "create_requested", to: "created", rune: "session.created" },
    { from: "created", event: "first_message", to: "active", rune: "session.activated" },
    { from: "created", event: "agent_ready", to: "active", rune: "session.activated" },
    { from: "active", event: "new_turn", to: "active" },
    { from: "active", event: "turn_completed", to: "active" },
    { from: "active", event: "pause_requested", to: "paused", rune: "session.paused" },
    { from: "active", event: "budget_exhausted", to: "suspended", rune: "session.suspended" },
    { from: "active", event: "error_threshold", to: "suspended", rune: "session.suspended" },
    { from: "active", event: "close_requested", to: "closing", rune: "session.closing" },
    { from: "paused", event: "resume_requested", to: "active", rune: "session.resumed" },
    { from: "paused", event: "close_requested", to: "closing", rune: "session.closing" },
    { from: "suspended", event: "budget_replenished", to: "active", rune: "session.unsuspended" },
    { from: "suspended", event: "reset", to: "active", rune: "session.unsuspended" },
    { from: "suspended", event: "close_requested", to: "closing", rune: "session.closing" },
    { from: "closing", event: "cleanup_complete", to: "closed", rune: "session.closed" },
    { from: "closed", event: "archive_requested", to: "archived" }
  ],
  added: [
    {
      from: ["created"],
      event: ["close_requested"],
      to: "closing",
      because: "the source's table of rune kinds says that every state can be closed"
    },
    {
      from: ["suspended"],
      event: ["resume_requested"],
      to: "active",
      because: "to resume a suspended conversation is to reset it"
    },
    { from: ["paused"], event: ["turn_completed", "agent_failed"], to: "paused", because: inFlight },
    { from: ["suspended"], event: ["turn_completed", "agent_failed"], to: "suspended", because: inFlight },
    { from: ["closing"], event: ["turn_completed", "agent_failed"], to: "closing", because: inFlight },
    { from: ["active"], event: ["agent_failed"], to: "active", because: counted },
    { from: ["active"], event: ["turn_completed", "agent_failed"], to: "suspended", because: counted }
  ],
  payloads: {
    "session.created": ["conversation_id", "config"],
    "session.activated": ["root_agent_id"],
    "session.paused": ["reason"],
    "session.suspended": ["reason", "budget_info"],
    "session.closing": ["reason"],
    "session.closed": ["final_stats"]
  }
}
