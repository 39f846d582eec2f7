/**
 * GoalMachine: the state machine of one goal: make a plan, run the tasks, review the result, until the goal is met or
 * the plan stops.
 *
 * Guarantees: the review begins only when every task is terminal. Success always requires a passed review. The number
 * of review rounds is limited. The dependency graph is in the plan; the machine only counts tasks and knows those in
 * progress.
 */
import { Schema } from "effect"
import { Evidence, Finding, GoalOptions, Task } from "../domain/GoalMessages.ts"
import { define, illegal, on, stale, to } from "../core/event-actor/StateMachine.ts"

export type State =
  /** The state before the goal is submitted. */
  "[*]" | "goal_received" | "planning" | "executing" | "reviewing" | "blocked" | "goal_met" | "stopped"

const tasks = Schema.Array(Task)
const taskId = Schema.String
const planId = Schema.String

export const Event = Schema.Union([
  Schema.TaggedStruct("goal_submitted", {
    planId,
    goal: Schema.String,
    by: Schema.String,
    /** The schedule and the due time. Present only if a schedule submitted the goal. */
    key: Schema.optionalKey(Schema.String),
    options: Schema.optionalKey(GoalOptions)
  }),
  /** The plan's first tasks, at most `FIRST_TASKS`; the rest follow as `plan_updated`. */
  Schema.TaggedStruct("decompose_goal", {
    tasks,
    /** Number of tasks that the plan has once all its pieces have been added. */
    total: Schema.optionalKey(Schema.Int)
  }),
  Schema.TaggedStruct("plan_updated", {
    added: tasks,
    cancelled: Schema.Array(taskId),
    /** Number of tasks that the plan has once all pieces of the change have been added. */
    total: Schema.optionalKey(Schema.Int)
  }),
  Schema.TaggedStruct("plan_approved", { by: Schema.String }),
  Schema.TaggedStruct("auto_start", {}),
  /** The user rejects the plan, which goes back to the planner. */
  Schema.TaggedStruct("plan_rejected", { by: Schema.String, reason: Schema.String }),
  Schema.TaggedStruct("task_assigned", {
    taskId,
    agentId: Schema.String,
    /** Id of the message that assigns the task. It stays the same after a crash. */
    messageId: Schema.optionalKey(Schema.String),
    /** The current commit of the agent's folder; null if it is not known yet. */
    base: Schema.optionalKey(Schema.NullOr(Schema.String))
  }),
  Schema.TaggedStruct("task_started", { taskId, base: Schema.optionalKey(Schema.NullOr(Schema.String)) }),
  /** An attempt at the task has ended; the task can be assigned again. */
  Schema.TaggedStruct("task_retried", {
    taskId,
    error: Schema.String,
    /** False if something other than the task caused the error. */
    counts: Schema.Boolean,
    /** Earliest time of the next attempt, ms since the epoch. */
    until: Schema.Finite
  }),
  Schema.TaggedStruct("task_completed", { taskId, result: Schema.Unknown, evidence: Schema.NullOr(Evidence) }),
  Schema.TaggedStruct("task_failed", { taskId, error: Schema.String }),
  Schema.TaggedStruct("all_tasks_terminal", {}),
  Schema.TaggedStruct("all_runnable_blocked", { reason: Schema.String }),
  Schema.TaggedStruct("dependency_resolved", {
    reason: Schema.String,
    /** Failed tasks to retry. */
    tasks: Schema.optionalKey(Schema.Array(taskId))
  }),
  /** A blocked plan was not resumed in time, or the planner returned no usable plan. */
  Schema.TaggedStruct("unresolvable", { reason: Schema.String }),
  /** Findings of the automatic checks and the critic. The verdict is a separate event, sent later. */
  Schema.TaggedStruct("critique", { findings: Schema.Array(Finding) }),
  Schema.TaggedStruct("critique_passed", { summary: Schema.String }),
  /** `tasks` are the follow-up tasks for the errors that the review found. */
  Schema.TaggedStruct("critique_found_issues", { tasks }),
  Schema.TaggedStruct("needs_replan", { reason: Schema.String }),
  /** Every agent that could continue (a worker, the planner, the critic) has exceeded its budget. */
  Schema.TaggedStruct("budget_exhausted", { reason: Schema.String }),
  Schema.TaggedStruct("user_cancel", { by: Schema.String, reason: Schema.String })
])
export type Event = typeof Event.Type

export type Action = { readonly _tag: "CancelTasks"; readonly taskIds: ReadonlyArray<string> }

export interface Data {
  readonly planId: string | null
  readonly goal: string | null
  /** Total number of tasks in the plan, and numbers of completed, failed and cancelled ones. */
  readonly tasks: number
  readonly terminal: number
  /** Assigned or running tasks by id; at most one per agent. */
  readonly inFlight: { readonly [taskId: string]: "assigned" | "running" }
  /** Number of failed reviews since the goal started. Reset to 0 when a plan that used up its rounds is resumed. */
  readonly rounds: number
  readonly maxRounds: number
  /** Why the goal is blocked or stopped; null in other states. */
  readonly reason: string | null
  readonly cancelledBy?: string
}

/** Maximum number of tasks in one rune of a plan. */
export const FIRST_TASKS = 200

export const initial = (options: { readonly maxRounds?: number } = {}): Data => ({
  planId: null,
  goal: null,
  tasks: 0,
  terminal: 0,
  inFlight: {},
  rounds: 0,
  maxRounds: options.maxRounds ?? 3,
  reason: null
})

export const kinds = [
  "plan.goal_received",
  "plan.created",
  "plan.updated",
  "plan.approved",
  "plan.rejected",
  "plan.task_assigned",
  "plan.task_started",
  "plan.task_completed",
  "plan.task_failed",
  "plan.task_retried",
  "plan.reviewing",
  "plan.critique",
  "plan.retrying",
  "plan.replanning",
  "plan.blocked",
  "plan.unblocked",
  "plan.goal_met",
  "plan.stopped"
] as const
export type Kind = (typeof kinds)[number]

const update = on<Event, Data>()

const busy = (data: Data): boolean => Object.keys(data.inFlight).length > 0

/** True for an outdated event: the task is not in the state that the event requires, or the counts have changed. */
const past = (data: Data, event: Event): boolean => {
  switch (event._tag) {
    case "task_assigned":
      return Object.hasOwn(data.inFlight, event.taskId)
    case "task_started":
      return data.inFlight[event.taskId] !== "assigned"
    case "task_completed":
    case "task_failed":
    case "task_retried":
      return !Object.hasOwn(data.inFlight, event.taskId)
    case "all_tasks_terminal":
      return data.terminal < data.tasks || busy(data)
    case "all_runnable_blocked":
      return busy(data)
    default:
      return false
  }
}

const without = (inFlight: Data["inFlight"], taskId: string): Data["inFlight"] =>
  Object.fromEntries(Object.entries(inFlight).filter(([id]) => id !== taskId))

const taskOf = (event: Event): string | null => ("taskId" in event ? event.taskId : null)

const plan = ["decompose_goal", "plan_updated", "plan_approved", "auto_start", "plan_rejected"] as const
const work = ["task_assigned", "task_started", "task_completed", "task_failed", "task_retried"] as const
const findings = ["all_tasks_terminal", "all_runnable_blocked"] as const
const unblocking = ["dependency_resolved", "unresolvable"] as const
const verdicts = ["critique", "critique_passed", "critique_found_issues", "needs_replan"] as const
const limits = ["budget_exhausted", "user_cancel"] as const

const stop = to("stopped", { set: "stop", rune: "plan.stopped", act: ["CancelTasks"] })
const approve = to("executing", { rune: "plan.approved" })
const over = {
  ...illegal("goal_submitted"),
  ...stale(...plan, ...work, ...findings, ...unblocking, ...verdicts, ...limits)
}

export const Autonomy = define<State, Event, Data, Action, Kind>()({
  name: "autonomy",
  initial: "[*]",
  final: ["goal_met", "stopped"],
  rune: "plan.updated",
  fenced: past,
  guards: { roundsSpent: (data) => data.rounds >= data.maxRounds },
  updates: {
    receive: update("goal_submitted", (data, event) => ({
      ...data,
      planId: event.planId,
      goal: event.goal,
      maxRounds: Math.max(1, event.options?.rounds ?? data.maxRounds)
    })),
    plan: update("decompose_goal", (data, event) => ({
      ...data,
      tasks: event.tasks.length,
      terminal: 0,
      inFlight: {}
    })),
    revise: update("plan_updated", (data, event) => ({
      ...data,
      tasks: data.tasks + event.added.length,
      terminal: data.terminal + event.cancelled.length
    })),
    assign: update("task_assigned", (data, event) => ({
      ...data,
      inFlight: { ...data.inFlight, [event.taskId]: "assigned" }
    })),
    start: update("task_started", (data, event) => ({
      ...data,
      inFlight: { ...data.inFlight, [event.taskId]: "running" }
    })),
    finish: update(["task_completed", "task_failed"], (data, event) => ({
      ...data,
      terminal: data.terminal + 1,
      inFlight: without(data.inFlight, event.taskId)
    })),
    release: update("task_retried", (data, event) => ({ ...data, inFlight: without(data.inFlight, event.taskId) })),
    follow: update("critique_found_issues", (data, event) => ({
      ...data,
      tasks: data.tasks + event.tasks.length,
      rounds: data.rounds + 1,
      reason: data.rounds + 1 >= data.maxRounds ? `${data.rounds + 1} reviews did not pass` : null
    })),
    replan: update("needs_replan", (data, event) => ({
      ...data,
      rounds: data.rounds + 1,
      reason: data.rounds + 1 >= data.maxRounds ? `${data.rounds + 1} reviews did not pass` : event.reason
    })),
    block: update("all_runnable_blocked", (data, event) => ({ ...data, reason: event.reason })),
    unblock: update("dependency_resolved", (data, event) => ({
      ...data,
      terminal: data.terminal - (event.tasks?.length ?? 0),
      reason: null,
      rounds: data.rounds >= data.maxRounds ? 0 : data.rounds
    })),
    stop: update(["budget_exhausted", "user_cancel", "unresolvable"], (data, event) => ({
      ...data,
      reason: event.reason,
      ...(event._tag === "user_cancel" ? { cancelledBy: event.by } : {})
    }))
  },
  actions: { CancelTasks: (data) => ({ _tag: "CancelTasks", taskIds: Object.keys(data.inFlight) }) },
  timers: {},
  fields: {
    "plan.goal_received": (data) => ({ plan_id: data.planId, goal_description: data.goal }),
    "plan.created": (data, event) => ({
      plan_id: data.planId,
      tasks: event._tag === "decompose_goal" ? event.tasks : []
    }),
    "plan.updated": (data, event) => ({
      plan_id: data.planId,
      changes: event._tag === "plan_updated" ? { added: event.added, cancelled: event.cancelled } : null
    }),
    "plan.task_assigned": (_, event) => ({
      task_id: taskOf(event),
      agent_id: event._tag === "task_assigned" ? event.agentId : null
    }),
    "plan.task_started": (_, event) => ({ task_id: taskOf(event) }),
    "plan.task_completed": (_, event) => ({
      task_id: taskOf(event),
      ...(event._tag === "task_completed" ? { result: event.result, evidence: event.evidence } : {})
    }),
    "plan.task_failed": (_, event) => ({
      task_id: taskOf(event),
      error: event._tag === "task_failed" ? event.error : null
    }),
    "plan.task_retried": (_, event) => ({
      task_id: taskOf(event),
      error: event._tag === "task_retried" ? event.error : null
    }),
    "plan.critique": (data, event) => ({
      plan_id: data.planId,
      findings: event._tag === "critique" ? event.findings : []
    }),
    "plan.blocked": (data) => ({ plan_id: data.planId, reason: data.reason }),
    "plan.goal_met": (data, event) => ({
      plan_id: data.planId,
      summary: event._tag === "critique_passed" ? event.summary : null
    }),
    "plan.stopped": (data) => ({ plan_id: data.planId, reason: data.reason })
  },
  states: {
    "[*]": {},
    goal_received: { enter: "DecomposeGoal" },
    planning: { enter: "RefinePlan" },
    executing: { enter: "ScheduleTasks" },
    reviewing: { enter: "ReviewPlan" },
    blocked: { enter: "WatchDependencies" },
    goal_met: {},
    stopped: {}
  },
  table: {
    "[*]": {
      ...illegal(...plan, ...work, ...findings, ...unblocking, ...verdicts, ...limits),
      goal_submitted: to("goal_received", { set: "receive", rune: "plan.goal_received" })
    },
    goal_received: {
      ...illegal("goal_submitted", "plan_updated", "plan_approved", "auto_start", "plan_rejected"),
      ...illegal(...work, ...findings, "dependency_resolved", ...verdicts),
      decompose_goal: to("planning", { set: "plan", rune: "plan.created" }),
      unresolvable: stop,
      budget_exhausted: stop,
      user_cancel: stop
    },
    planning: {
      ...illegal("goal_submitted", "decompose_goal", ...work, ...findings, "dependency_resolved", ...verdicts),
      plan_updated: to("planning", { set: "revise", rune: "plan.updated" }),
      plan_approved: approve,
      auto_start: approve,
      plan_rejected: to("goal_received", { rune: "plan.rejected" }),
      unresolvable: stop,
      budget_exhausted: stop,
      user_cancel: stop
    },
    executing: {
      ...illegal("goal_submitted", "decompose_goal", "plan_updated", "plan_rejected", ...verdicts),
      ...stale("plan_approved", "auto_start", ...unblocking),
      task_assigned: to("executing", { set: "assign", rune: "plan.task_assigned" }),
      task_started: to("executing", { set: "start", rune: "plan.task_started" }),
      task_completed: to("executing", { set: "finish", rune: "plan.task_completed" }),
      task_failed: to("executing", { set: "finish", rune: "plan.task_failed" }),
      task_retried: to("executing", { set: "release", rune: "plan.task_retried" }),
      all_tasks_terminal: to("reviewing", { rune: "plan.reviewing" }),
      all_runnable_blocked: to("blocked", { set: "block", rune: "plan.blocked" }),
      budget_exhausted: stop,
      user_cancel: stop
    },
    reviewing: {
      ...illegal("goal_submitted", ...plan, "task_assigned", "task_started", ...unblocking),
      ...stale("task_completed", "task_failed", "task_retried", ...findings),
      critique: to("reviewing", { rune: "plan.critique" }),
      critique_passed: to("goal_met", { rune: "plan.goal_met" }),
      critique_found_issues: {
        set: "follow",
        then: [
          { to: "blocked", when: "roundsSpent", rune: "plan.blocked" },
          { to: "executing", rune: "plan.retrying" }
        ]
      },
      needs_replan: {
        set: "replan",
        then: [
          { to: "blocked", when: "roundsSpent", rune: "plan.blocked" },
          { to: "planning", rune: "plan.replanning" }
        ]
      },
      budget_exhausted: stop,
      user_cancel: stop
    },
    blocked: {
      ...illegal("goal_submitted", ...plan, ...verdicts),
      ...stale(...work, ...findings),
      dependency_resolved: to("executing", { set: "unblock", rune: "plan.unblocked" }),
      unresolvable: stop,
      budget_exhausted: stop,
      user_cancel: stop
    },
    goal_met: over,
    stopped: over
  }
})
