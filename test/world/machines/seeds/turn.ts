/** The turn's diagram and its table of rune kinds. */
import type { Seed } from "./Seed.ts"

export const turn: Seed = {
  states: ["idle", "streaming", "tool_executing", "completed", "interrupted", "error"],
  rows: [
    { from: "idle", event: "start_turn", to: "streaming", rune: "turn.started" },
    { from: "streaming", event: "assistant_delta", to: "streaming", rune: "turn.assistant_delta" },
    { from: "streaming", event: "tool_calls_received", to: "tool_executing", rune: "turn.tool_calls_received" },
    { from: "streaming", event: "response_done", to: "completed", rune: "turn.completed" },
    { from: "streaming", event: "interrupt", to: "interrupted", rune: "turn.interrupted" },
    { from: "streaming", event: "steer", to: "interrupted", rune: "turn.interrupted" },
    { from: "streaming", event: "stream_error", to: "error", rune: "turn.error" },
    { from: "tool_executing", event: "tools_finished", to: "streaming", rune: "turn.tools_finished" },
    { from: "tool_executing", event: "tools_finished", to: "completed" },
    { from: "tool_executing", event: "interrupt", to: "interrupted" },
    { from: "tool_executing", event: "tool_crash", to: "error" },
    { from: "interrupted", event: "turn_finalized", to: "idle" },
    { from: "completed", event: "turn_finalized", to: "idle" },
    { from: "error", event: "turn_finalized", to: "idle" }
  ],
  added: [
    {
      from: ["tool_executing"],
      event: ["tool_calls_received"],
      to: "tool_executing",
      because: "agents that run their tools themselves tell of calls one by one: one may come while another runs"
    },
    {
      from: ["idle"],
      event: ["steer"],
      to: "streaming",
      because: "a steer that was postponed, or came too late, is the input of a turn of its own: no text is lost"
    }
  ],
  payloads: {
    "turn.started": ["turn_id", "agent_id", "input"],
    "turn.assistant_delta": ["content"],
    "turn.tool_calls_received": ["call_ids"],
    "turn.completed": ["final_output", "usage"],
    "turn.interrupted": ["reason", "partial_output"],
    "turn.error": ["error_type", "message"],
    "turn.tools_finished": ["results"]
  }
}
