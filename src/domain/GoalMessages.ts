/** GoalMessages: shapes of goals, plans and tasks that cross a boundary: the plan file, the log, the control socket. */
import { Schema } from "effect"
import { described, matching, Name, optional, Text, whole, withDefault, Word } from "../config/Fields.ts"
import { Span } from "../config/Span.ts"
import * as Board from "./BoardMessages.ts"

/** Maximum number of tasks in a new plan or an addition, and size in bytes of a plan's file, which is parsed at once. */
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
      message: `must hold at most ${most} entries`
    })
  )

export const PlannedTask = Schema.Struct({
  id: described(TaskId, "What other tasks call it."),
  title: described(bounded(Word, MAX_TITLE), "What is to be done, in one line."),
  description: optional(bounded(Text, MAX_DESCRIPTION), "All that its agent must know, and when it is done."),
  dependsOn: list(TaskId, MAX_DEPENDENCIES).pipe(withDefault([], "Tasks that must be completed before it begins.")),
  priority: whole(-1_000_000, 1_000_000).pipe(withDefault(0, "Of those that are ready the highest goes first.")),
  owner: optional(Name, "The agent that does it. Default: any that is able to."),
  needs: list(Name, MAX_NEEDS).pipe(withDefault([], "What an agent must be able to do (its `can`) to be given it.")),
  timeout: optional(Span, "How long one try may take. Default: as the goal says."),
  commit: optional(Schema.Boolean, "Whether a try that ends without a commit has failed. Default: false.")
})
export type PlannedTask = typeof PlannedTask.Type

/** Content of a plan file, or a planner's answer. */
export const PlanDocument = Schema.Struct({
  $schema: Schema.optionalKey(Schema.String),
  tasks: described(Schema.Array(PlannedTask), `The tasks, at most ${MAX_TASKS}, in the order of their age.`)
})

/** A task as it is stored: times in ms. */
export const Task = Schema.Struct({
  id: Schema.String,
  title: Schema.String,
  description: Schema.String,
  dependsOn: Schema.Array(Schema.String),
  priority: Schema.Finite,
  owner: Schema.NullOr(Schema.String),
  needs: Schema.Array(Schema.String),
  timeout: Schema.NullOr(Schema.Finite),
  /** True if the task counts as done only with a commit. */
  commit: Schema.optionalKey(Schema.Boolean)
})
export type Task = typeof Task.Type

/** How a goal is worked on: fixed when it is submitted, and part of its first rune. */
export const GoalOptions = Schema.Struct({
  /** Null: the plan was submitted with the goal. */
  planner: Schema.NullOr(Schema.String),
  critic: Schema.NullOr(Schema.String),
  /** Null: all agents except the planner, the critic and sub-agents. */
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
  /** Folder in which the task was done; null: unknown. */
  cwd: Schema.NullOr(Schema.String),
  branch: Schema.NullOr(Schema.String),
  /** Commits before and after the task; null outside git. */
  base: Schema.NullOr(Schema.String),
  head: Schema.NullOr(Schema.String),
  /** `<hash> <subject>`, newest first, at most 100. */
  commits: Schema.Array(Schema.String),
  /** Evidence that the agent itself reported: commands with their output, paths. */
  reported: Schema.Array(Schema.String),
  /** The end of the agent's answer. */
  output: Schema.String
})
export type Evidence = typeof Evidence.Type

/** Whether a task that was done in a repository left no commit there. */
export const lacksCommit = ({ base, commits, head }: Pick<Evidence, "base" | "commits" | "head">): boolean =>
  base !== null && head !== null && commits.length === 0

/** A problem found by the gate or the critic. */
export const Finding = Schema.Struct({
  severity: Schema.Literals(["error", "warning", "info"]),
  /** The task that it is about; undefined: the whole goal. */
  task: Schema.optionalKey(Schema.String),
  message: Schema.String,
  fix: Schema.optionalKey(Schema.String),
  /** True: the plan itself is wrong. */
  needsReplan: Schema.optionalKey(Schema.Boolean),
  /** True: no agent can fix it, so no task is created for it. */
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
  /** ms since the epoch */
  submittedAt: Schema.Finite,
  /** The word for people: who acts next. */
  word: Board.Word,
  /** State of the autonomy state machine. */
  state: Schema.String,
  since: Schema.Finite,
  restsOn: Schema.Int,
  /** Plain text: what the goal does now, or why it waits. */
  detail: Schema.String,
  /** Set if an agent of the goal needs a person to continue: the agent, what it needs, and the command. */
  behind: Schema.optionalKey(Schema.String),
  /** Why the goal is blocked or stopped; null: it is neither. */
  reason: Schema.NullOr(Schema.String),
  total: Schema.Int,
  tasks: TaskCounts,
  /** Number of reviews that did not pass, and their limit. */
  rounds: Schema.Int,
  maxRounds: Schema.Int,
  /** Estimated ms until all tasks are done, based on the completed ones; null: unknown. */
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
  /** The agent that has the task or had it last; before that, the one that the plan names. */
  owner: Schema.NullOr(Schema.String),
  needs: Schema.Array(Schema.String),
  /** Number of attempts that ended with an error. */
  errors: Schema.Int,
  /** When the state was entered, ms since the epoch. */
  since: Schema.Finite,
  /** The newest error. */
  error: Schema.NullOr(Schema.String),
  /** eventId of the rune with its result; null: there is no result yet. */
  restsOn: Schema.NullOr(Schema.Int),
  head: Schema.NullOr(Schema.String),
  branch: Schema.NullOr(Schema.String),
  /** True if the task was completed in a repository without a commit. */
  noCommit: Schema.optionalKey(Schema.Boolean)
})
export type TaskInfo = typeof TaskInfo.Type

/** Maximum number of tasks in one reply, and of tasks in its `named` list. */
export const TASKS_A_PAGE = 500
export const TASKS_NAMED = 100

export const GoalPage = Schema.Struct({
  goal: GoalInfo,
  /** In the order of the plan. */
  tasks: Schema.Array(TaskInfo),
  /** For a longer plan: tasks that are under way or have failed, wherever they are in the plan; only the first ones. */
  named: Schema.Array(TaskInfo),
  /** Findings of the newest review. */
  findings: Schema.Array(Finding),
  /** Where the next page begins; null at the end. */
  next: Schema.NullOr(Schema.Int)
})
export type GoalPage = typeof GoalPage.Type

/** The plan that waits for approval, in full: everything that each agent would receive. */
export const AskedPlan = Schema.Struct({
  goalId: Schema.String,
  project: Schema.String,
  goal: Schema.String,
  options: GoalOptions,
  /** Hash of the whole plan. */
  hash: Schema.String,
  total: Schema.Int,
  /** In the order of the plan. */
  tasks: Schema.Array(Task),
  /** Where the next page begins; null at the end. */
  next: Schema.NullOr(Schema.Int)
})
export type AskedPlan = typeof AskedPlan.Type

/** A goal as it is submitted. Missing fields default to the project's config. */
export const GoalRequest = Schema.Struct({
  goal: Schema.String,
  /** Absolute path of a plan file. */
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
  /** The commit to be merged. */
  head: Schema.String,
  tasks: Schema.Array(Schema.String),
  outcome: Schema.Literals(["merged", "up-to-date", "conflict"]),
  conflicts: Schema.Array(Schema.String)
})
export type MergeResult = typeof MergeResult.Type

export const MergeReply = Schema.Struct({
  /** 0: nothing has happened yet. */
  eventId: Schema.Int,
  message: Schema.String,
  target: Schema.String,
  results: Schema.Array(MergeResult),
  /**
   * Set if the branch is checked out in `folder`: the person's own git must move it to `commit`. Then the merge is
   * requested again, as done.
   */
  toCheckout: Schema.optionalKey(Schema.Struct({ folder: Schema.String, from: Schema.String, commit: Schema.String }))
})
export type MergeReply = typeof MergeReply.Type
