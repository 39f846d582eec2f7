/** GoalMessages: schemas of goals, plans and tasks, used in plan files, in the log and on the control socket. */
import { Schema } from "effect"
import { described, matching, Name, optional, Text, whole, withDefault, Word } from "../config/Fields.ts"
import { Span } from "../config/Span.ts"
import * as Board from "./BoardMessages.ts"

/**
 * Limits of a plan. `MAX_TASKS`: number of tasks in a plan, or in one addition to it. `MAX_PLAN_BYTES`: size of its
 * file in bytes, limited because agentd parses the whole file in one step.
 */
export const MAX_TASKS = 2_000
export const MAX_PLAN_BYTES = 4 * 1024 * 1024
export const MAX_TITLE = 500
export const MAX_DESCRIPTION = 65_536
export const MAX_DEPENDENCIES = 10_000
export const MAX_NEEDS = 16

const TASK_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/u
export const TaskId = Schema.String.check(
  matching(TASK_ID, "must be letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 100")
)

const bounded = <S extends Schema.Codec<string>>(schema: S, most: number) =>
  schema.check(Schema.isMaxLength(most, { message: `must have at most ${most} characters` }))
const list = <S extends Schema.Top>(item: S, most: number) =>
  Schema.Array(item).check(
    Schema.makeFilter((all: ReadonlyArray<unknown>) => all.length <= most, {
      message: `must have at most ${most} entries`
    })
  )

export const PlannedTask = Schema.Struct({
  id: described(TaskId, "Id by which other tasks refer to this task."),
  title: described(bounded(Word, MAX_TITLE), "What to do, in one line."),
  description: optional(
    bounded(Text, MAX_DESCRIPTION),
    "Everything that the agent must know, and when the task is done."
  ),
  dependsOn: list(TaskId, MAX_DEPENDENCIES).pipe(
    withDefault([], "Ids of tasks that must be completed before this task begins.")
  ),
  priority: whole(-1_000_000, 1_000_000).pipe(
    withDefault(0, "Of the tasks that are ready, the one with the highest priority goes first.")
  ),
  owner: optional(Name, "The agent that does the task. Default: any agent with the needed abilities."),
  needs: list(Name, MAX_NEEDS).pipe(withDefault([], "Abilities (`can`) that an agent must have to get the task.")),
  timeout: optional(Span, "Maximum duration of one attempt. Default: the goal's limit."),
  commit: optional(Schema.Boolean, "Whether an attempt that ends without a commit has failed. Default: false.")
})
export type PlannedTask = typeof PlannedTask.Type

/** Content of a plan file, or of the answer of a planner agent. */
export const PlanDocument = Schema.Struct({
  $schema: Schema.optionalKey(Schema.String),
  tasks: described(Schema.Array(PlannedTask), `The tasks, at most ${MAX_TASKS}, oldest first.`)
})

/** A task as it is stored in the log. All times are in ms. */
export const Task = Schema.Struct({
  id: Schema.String,
  title: Schema.String,
  description: Schema.String,
  dependsOn: Schema.Array(Schema.String),
  priority: Schema.Finite,
  owner: Schema.NullOr(Schema.String),
  needs: Schema.Array(Schema.String),
  timeout: Schema.NullOr(Schema.Finite),
  /** True: the task counts as completed only if the agent made a commit. */
  commit: Schema.optionalKey(Schema.Boolean)
})
export type Task = typeof Task.Type

/** Settings of a goal. They never change after the goal is submitted, and are stored in its first rune. */
export const GoalOptions = Schema.Struct({
  /** Name of the agent that writes the plan; null: the user submitted a plan with the goal. */
  planner: Schema.NullOr(Schema.String),
  critic: Schema.NullOr(Schema.String),
  /** Names of the agents that work on the tasks; null: all agents except the planner, the critic and sub-agents. */
  workers: Schema.NullOr(Schema.Array(Schema.String)),
  checks: Schema.Array(Schema.String),
  checkTimeout: Schema.Finite,
  autoStart: Schema.Boolean,
  rounds: Schema.Int,
  target: Schema.NullOr(Schema.String),
  planTries: Schema.Int,
  maxTaskErrors: Schema.Int,
  maxErrors: Schema.Int,
  backoff: Schema.Struct({ base: Schema.Finite, cap: Schema.Finite, jitter: Schema.Finite }),
  taskTimeout: Schema.Finite,
  blockedTimeout: Schema.Finite
})
export type GoalOptions = typeof GoalOptions.Type

export const Evidence = Schema.Struct({
  /** Folder in which the agent worked on the task; null: unknown. */
  cwd: Schema.NullOr(Schema.String),
  branch: Schema.NullOr(Schema.String),
  /** Commit of the branch before (`base`) and after (`head`) the task; null: the folder is not in a git repository. */
  base: Schema.NullOr(Schema.String),
  head: Schema.NullOr(Schema.String),
  /** Commits that the task made, as `<hash> <subject>`, newest first, at most 100. */
  commits: Schema.Array(Schema.String),
  /** Evidence that the agent reported: commands with their output, and paths. */
  reported: Schema.Array(Schema.String),
  /** The last part of the agent's answer. */
  output: Schema.String
})
export type Evidence = typeof Evidence.Type

/** Returns true if a task was done in a git repository but no commit was made. */
export const lacksCommit = ({ base, commits, head }: Pick<Evidence, "base" | "commits" | "head">): boolean =>
  base !== null && head !== null && commits.length === 0

/** A problem that a review of the goal has found. */
export const Finding = Schema.Struct({
  severity: Schema.Literals(["error", "warning", "info"]),
  /** Id of the task that has the problem; undefined: the problem concerns the whole goal. */
  task: Schema.optionalKey(Schema.String),
  message: Schema.String,
  fix: Schema.optionalKey(Schema.String),
  /** True: the plan itself is wrong and must be changed. */
  needsReplan: Schema.optionalKey(Schema.Boolean),
  /** True: only the user can fix the problem, so no task is created for it. */
  forPerson: Schema.optionalKey(Schema.Boolean)
})
export type Finding = typeof Finding.Type

export const TASK_STATES = ["pending", "assigned", "running", "completed", "failed", "blocked", "cancelled"] as const
export type TaskState = (typeof TASK_STATES)[number]

export const TaskCounts = Schema.Struct({
  pending: Schema.Int,
  assigned: Schema.Int,
  running: Schema.Int,
  completed: Schema.Int,
  failed: Schema.Int,
  blocked: Schema.Int,
  cancelled: Schema.Int
})
export type TaskCounts = typeof TaskCounts.Type

export const GoalInfo = Schema.Struct({
  goalId: Schema.String,
  conversation: Schema.String,
  project: Schema.String,
  goal: Schema.String,
  by: Schema.String,
  /** When the goal was submitted, in ms since the epoch. */
  submittedAt: Schema.Finite,
  word: Board.Word,
  /** State of the goal in the autonomy state machine. */
  state: Schema.String,
  since: Schema.Finite,
  restsOn: Schema.Int,
  /** Plain text: what is being done for the goal now, or why the goal waits. */
  detail: Schema.String,
  /** Set if an agent of the goal cannot continue without the user: the agent's name, what it needs, and the command. */
  behind: Schema.optionalKey(Schema.String),
  /** The reason why the goal is blocked or stopped; null: the goal is neither blocked nor stopped. */
  reason: Schema.NullOr(Schema.String),
  total: Schema.Int,
  tasks: TaskCounts,
  /** Number of failed reviews of the goal; `maxRounds` is the limit. */
  rounds: Schema.Int,
  maxRounds: Schema.Int,
  /** Estimated time in ms until all tasks are done, based on the completed tasks; null: unknown. */
  estimate: Schema.NullOr(Schema.Finite),
  options: GoalOptions
})
export type GoalInfo = typeof GoalInfo.Type

export const TaskInfo = Schema.Struct({
  id: Schema.String,
  title: Schema.String,
  state: Schema.Literals(TASK_STATES),
  dependsOn: Schema.Array(Schema.String),
  priority: Schema.Finite,
  /** The agent that has or last had the task. Before the first assignment: the agent named in the plan; null: none. */
  owner: Schema.NullOr(Schema.String),
  needs: Schema.Array(Schema.String),
  /** Number of attempts to complete the task that ended with an error. */
  errors: Schema.Int,
  /** When the task entered its state, in ms since the epoch. */
  since: Schema.Finite,
  /** Error message of the newest failed attempt; null: no attempt has failed. */
  error: Schema.NullOr(Schema.String),
  /** eventId of the rune with the task's result; null: there is no result yet. */
  restsOn: Schema.NullOr(Schema.Int),
  head: Schema.NullOr(Schema.String),
  branch: Schema.NullOr(Schema.String),
  /** True: the task was completed in a git repository, but the agent made no commit. */
  noCommit: Schema.optionalKey(Schema.Boolean)
})
export type TaskInfo = typeof TaskInfo.Type

/** Maximum number of tasks on one page of the list (`TASKS_A_PAGE`), and in a page's field `named` (`TASKS_NAMED`). */
export const TASKS_A_PAGE = 500
export const TASKS_NAMED = 100

export const GoalPage = Schema.Struct({
  goal: GoalInfo,
  /** The tasks of this page, in the order of the plan. */
  tasks: Schema.Array(TaskInfo),
  /** If the plan has several pages: the tasks, on any page, that are in progress or have failed; at most 100. */
  named: Schema.Array(TaskInfo),
  /** Problems found by the newest review. */
  findings: Schema.Array(Finding),
  /** Index of the first task of the next page; null: this is the last page. */
  next: Schema.NullOr(Schema.Int)
})
export type GoalPage = typeof GoalPage.Type

/** The complete plan that waits for the user's approval, with everything that the agents would receive. */
export const AskedPlan = Schema.Struct({
  goalId: Schema.String,
  project: Schema.String,
  goal: Schema.String,
  options: GoalOptions,
  /** Hash of the whole plan; the user's approval must name it. */
  hash: Schema.String,
  total: Schema.Int,
  /** The tasks of this page, in the order of the plan. */
  tasks: Schema.Array(Task),
  /** Index of the first task of the next page; null: this is the last page. */
  next: Schema.NullOr(Schema.Int)
})
export type AskedPlan = typeof AskedPlan.Type

/** A request to create a goal. For missing fields, the values in the project's config are used. */
export const GoalRequest = Schema.Struct({
  goal: Schema.String,
  /** Absolute path of the plan file; null: a planner agent writes the plan. */
  plan: Schema.NullOr(Schema.String),
  planner: Schema.optionalKey(Schema.String),
  critic: Schema.optionalKey(Schema.String),
  checks: Schema.optionalKey(Schema.Array(Schema.String)),
  autoStart: Schema.optionalKey(Schema.Boolean),
  rounds: Schema.optionalKey(Schema.Int),
  target: Schema.optionalKey(Schema.String)
})
export type GoalRequest = typeof GoalRequest.Type

export const MergeResult = Schema.Struct({
  branch: Schema.String,
  /** Hash of the commit to be merged. */
  head: Schema.String,
  tasks: Schema.Array(Schema.String),
  outcome: Schema.Literals(["merged", "up-to-date", "conflict"]),
  conflicts: Schema.Array(Schema.String)
})
export type MergeResult = typeof MergeResult.Type

export const MergeReply = Schema.Struct({
  /** eventId of the rune that records the merge; 0: nothing has been merged yet. */
  eventId: Schema.Int,
  message: Schema.String,
  target: Schema.String,
  results: Schema.Array(MergeResult),
  /**
   * Set if the target branch is checked out in `folder`. The client must then use the user's git to move the branch to
   * `commit`, and report the move in a second merge request.
   */
  toCheckout: Schema.optionalKey(Schema.Struct({ folder: Schema.String, from: Schema.String, commit: Schema.String }))
})
export type MergeReply = typeof MergeReply.Type
