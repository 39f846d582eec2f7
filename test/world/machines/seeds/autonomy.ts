/** The autonomy loop's diagram and its table of rune kinds. */
import type { Seed } from "./Seed.ts"

export const autonomy: Seed = {
  states: ["[*]", "goal_received", "planning", "executing", "reviewing", "blocked", "goal_met", "stopped"],
  rows: [
    { from: "[*]", event: "goal_submitted", to: "goal_received", rune: "plan.goal_received" },
    { from: "goal_received", event: "decompose_goal", to: "planning", rune: "plan.created" },
    { from: "planning", event: "plan_approved", to: "executing" },
    { from: "planning", event: "auto_start", to: "executing" },
    { from: "planning", event: "plan_rejected", to: "goal_received" },
    { from: "planning", event: "user_cancel", to: "stopped", rune: "plan.stopped" },
    { from: "executing", event: "all_tasks_terminal", to: "reviewing" },
    { from: "executing", event: "task_completed", to: "executing", rune: "plan.task_completed" },
    { from: "executing", event: "all_runnable_blocked", to: "blocked" },
    { from: "executing", event: "budget_exhausted", to: "stopped", rune: "plan.stopped" },
    { from: "executing", event: "user_cancel", to: "stopped", rune: "plan.stopped" },
    { from: "reviewing", event: "critique_found_issues", to: "executing" },
    { from: "reviewing", event: "critique_passed", to: "goal_met", rune: "plan.goal_met" },
    { from: "reviewing", event: "needs_replan", to: "planning" },
    { from: "blocked", event: "dependency_resolved", to: "executing" },
    { from: "blocked", event: "unresolvable", to: "stopped", rune: "plan.stopped" },
    { from: "blocked", event: "user_cancel", to: "stopped", rune: "plan.stopped" },
    // Only the table of rune kinds has these.
    { from: "planning", event: "plan_updated", to: "planning", rune: "plan.updated" },
    { from: "executing", event: "task_assigned", to: "executing", rune: "plan.task_assigned" },
    { from: "executing", event: "task_started", to: "executing", rune: "plan.task_started" },
    { from: "reviewing", event: "critique", to: "reviewing", rune: "plan.critique" }
  ],
  added: [
    {
      from: ["reviewing"],
      event: ["critique_found_issues", "needs_replan"],
      to: "blocked",
      because: "the rounds of review are limited; then a person is needed"
    },
    {
      from: ["goal_received", "reviewing"],
      event: ["user_cancel"],
      to: "stopped",
      because: "a person can stop a plan that has not ended in any state"
    },
    {
      from: ["goal_received", "planning", "reviewing", "blocked"],
      event: ["budget_exhausted"],
      to: "stopped",
      because: "the planner and the critic cost, too, and who is blocked may have spent what is left"
    },
    {
      from: ["goal_received", "planning"],
      event: ["unresolvable"],
      to: "stopped",
      because: "a planner that gives no plan is no person's cancel"
    },
    {
      from: ["executing"],
      event: ["task_failed"],
      to: "executing",
      because: "a task that failed is terminal like one that is completed"
    },
    {
      from: ["executing"],
      event: ["task_retried"],
      to: "executing",
      because: "a try that failed is not the task's end: it is given out again"
    }
  ],
  payloads: {
    "plan.goal_received": ["goal_description"],
    "plan.created": ["plan_id", "tasks"],
    "plan.updated": ["plan_id", "changes"],
    "plan.task_assigned": ["task_id", "agent_id"],
    "plan.task_started": ["task_id"],
    "plan.task_completed": ["task_id", "result", "evidence"],
    "plan.critique": ["plan_id", "findings"],
    "plan.goal_met": ["plan_id", "summary"],
    "plan.stopped": ["reason"]
  }
}
