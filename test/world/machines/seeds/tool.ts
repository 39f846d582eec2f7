/** The tool call's diagram and its table of rune kinds. */
import type { Seed } from "./Seed.ts"

export const tool: Seed = {
  states: [
    "[*]",
    "pending_call",
    "awaiting_approval",
    "executing",
    "denied",
    "completed_result",
    "error_result",
    "timeout_result",
    "cancelled_result"
  ],
  rows: [
    { from: "[*]", event: "call_requested", to: "pending_call", rune: "tool.call" },
    { from: "pending_call", event: "requires_approval", to: "awaiting_approval", rune: "tool.approval_requested" },
    { from: "pending_call", event: "auto_approved", to: "executing" },
    { from: "pending_call", event: "no_approval_needed", to: "executing" },
    { from: "awaiting_approval", event: "approved", to: "executing", rune: "tool.approved" },
    { from: "awaiting_approval", event: "denied", to: "denied", rune: "tool.denied" },
    { from: "awaiting_approval", event: "approval_timeout", to: "timeout_result", rune: "tool.result" },
    { from: "executing", event: "progress_update", to: "executing", rune: "tool.progress" },
    { from: "executing", event: "success", to: "completed_result", rune: "tool.result" },
    { from: "executing", event: "execution_error", to: "error_result", rune: "tool.result" },
    { from: "executing", event: "execution_timeout", to: "timeout_result", rune: "tool.result" },
    { from: "executing", event: "cancelled", to: "cancelled_result", rune: "tool.result" }
  ],
  added: [
    {
      from: ["pending_call", "awaiting_approval"],
      event: ["cancelled"],
      to: "cancelled_result",
      because: "an interrupt must be able to end a call that does not run yet"
    },
    {
      from: ["awaiting_approval"],
      event: ["withdrawn"],
      to: "pending_call",
      because: "an agent may take its question back: nobody is asked, and the call goes on or ends as the agent has it"
    },
    {
      from: ["denied"],
      event: ["denial_reported"],
      to: "denied",
      because: "a denied call gets its one tool.result, too, and a move appends one rune"
    }
  ],
  payloads: {
    "tool.call": ["call_id", "tool_name", "arguments"],
    "tool.approval_requested": ["call_id", "policy_reason"],
    "tool.approved": ["call_id", "approver"],
    "tool.denied": ["call_id", "reason"],
    "tool.progress": ["call_id", "stream", "chunk"],
    "tool.result": ["call_id", "status", "output", "error"]
  }
}
