/** The agent's diagram and its table of rune kinds. */
import type { Seed } from "./Seed.ts"

const oneRune =
  "one move, one rune, one machine: the turn writes turn.started and turn.completed, the agent its own kinds"

export const agent: Seed = {
  states: ["[*]", "spawning", "idle", "running_turn", "terminated", "failed"],
  rows: [
    { from: "[*]", event: "spawn_requested", to: "spawning", rune: "agent.spawning" },
    { from: "spawning", event: "init_complete", to: "idle", rune: "agent.ready" },
    { from: "spawning", event: "init_error", to: "failed", rune: "agent.failed" },
    { from: "idle", event: "turn_assigned", to: "running_turn", rune: "turn.started" },
    { from: "idle", event: "kill", to: "terminated", rune: "agent.terminated" },
    { from: "idle", event: "parent_closed", to: "terminated", rune: "agent.terminated" },
    { from: "idle", event: "budget_exhausted", to: "terminated", rune: "agent.terminated" },
    { from: "running_turn", event: "turn_completed", to: "idle", rune: "turn.completed" },
    { from: "running_turn", event: "turn_interrupted", to: "idle" },
    { from: "running_turn", event: "turn_error", to: "idle" },
    { from: "running_turn", event: "kill_forced", to: "terminated", rune: "agent.terminated" }
  ],
  added: [
    { from: ["idle"], event: ["turn_assigned"], to: "running_turn", because: oneRune },
    { from: ["running_turn"], event: ["turn_completed"], to: "idle", because: oneRune },
    {
      from: ["spawning", "idle"],
      event: ["kill_forced"],
      to: "terminated",
      because:
        "force ends an agent in any state; the source's table of rune kinds says that every state can be terminated"
    },
    {
      from: ["running_turn"],
      event: ["budget_exhausted"],
      to: "running_turn",
      because: "a budget that is spent in the middle of a turn interrupts the turn first"
    },
    {
      from: ["running_turn"],
      event: ["turn_completed", "turn_interrupted", "turn_error"],
      to: "terminated",
      because: "once its budget is spent an agent takes no further turn: it is idle for no time"
    }
  ],
  dropped: [
    { from: ["idle"], event: ["turn_assigned"], to: "running_turn", because: oneRune },
    { from: ["running_turn"], event: ["turn_completed"], to: "idle", because: oneRune }
  ],
  payloads: {
    "agent.spawning": ["agent_id", "role", "model", "parent_id"],
    "agent.ready": ["agent_id"],
    "agent.failed": ["agent_id", "error"],
    "agent.terminated": ["agent_id", "reason", "stats"]
  }
}
