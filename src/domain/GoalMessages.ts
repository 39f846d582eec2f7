/**
 * GoalMessages: the shapes of goals, plans and tasks that cross a boundary: the
 * plan file, the log, the control socket.
 */
import { Schema } from "effect"
import { described, matching, Name, optional, Text, whole, withDefault, Word } from "../config/Fields.ts"
import { Span } from "../config/Span.ts"
import * as Board from "./BoardMessages.ts"

/** Most tasks of a new plan or of an addition to one, and bytes of its file, which is parsed in one go. */
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

/** A plan's file, or a planner's answer. */
export const PlanDocument = Schema.Struct({
  $schema: Schema.optionalKey(Schema.String),
  tasks: described(Schema.Array(PlannedTask), `The tasks, at most ${MAX_TASKS}, in the order of their age.`)
})

/** A task as it is kept: times in ms. */
export const Task = Schema.Struct({
  id: Schema.String,
  title: Schema.String,
  description: Schema.String,
  dependsOn: Schema.Array(Schema.String),
  priority: Schema.Finite,
  owner: Schema.NullOr(Schema.String),
  needs: Schema.Array(Schema.String),
  timeout: Schema.NullOr(Schema.Finite),
  /** True if the task is done only with a commit. */
  commit: Schema.optionalKey(Schema.Boolean)
})
export type Task = typeof Task.Type

/** How a goal is to be worked off: settled when it is submitted, and part of its first rune. */
export const GoalOptions = Schema.Struct({
  /** Null: the plan came with the goal. */
  planner: Schema.NullOr(Schema.String),
  critic: Schema.NullOr(Schema.String),
  /** Null: all but the planner, the critic and sub-agents. */
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
  /** Where it was done; null where that is not known. */
  cwd: Schema.NullOr(Schema.String),
  branch: Schema.NullOr(Schema.String),
  /** The commits before and after; null outside git. */
  base: Schema.NullOr(Schema.String),
  head: Schema.NullOr(Schema.String),
  /** `<hash> <subject>`, newest first, the newest hundred. */
  commits: Schema.Array(Schema.String),
  /** Evidence that the agent names itself: commands with their output, paths. */
  reported: Schema.Array(Schema.String),
  /** The end of its answer. */
  output: Schema.String
})
export type Evidence = typeof Evidence.Type

/** Whether a task that was done in a repository has left no commit there. */
export const lacksCommit = ({ base, commits, head }: Pick<Evidence, "base" | "commits" | "head">): boolean =>
  base !== null && head !== null && commits.length === 0

/** A finding of the gate or the critic. */
export const Finding = Schema.Struct({
  severity: Schema.Literals(["error", "warning", "info"]),
  /** The task that it is about; left out where it is about the whole. */
  task: Schema.optionalKey(Schema.String),
  message: Schema.String,
  fix: Schema.optionalKey(Schema.String),
  /** The plan itself is wrong. */
  needsReplan: Schema.optionalKey(Schema.Boolean),
  /** No agent can mend it: no task comes of it. */
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
  /** The autonomy machine's state. */
  state: Schema.String,
  since: Schema.Finite,
  restsOn: Schema.Int,
  /** The goal's present activity, or the reason for its wait, in plain words. */
  detail: Schema.String,
  /** An agent of it does not go on without a person: the agent, what it needs, and the command. */
  behind: Schema.optionalKey(Schema.String),
  /** Why it is blocked or stopped. */
  reason: Schema.NullOr(Schema.String),
  total: Schema.Int,
  tasks: TaskCounts,
  /** Reviews that did not pass, of those that it may have. */
  rounds: Schema.Int,
  maxRounds: Schema.Int,
  /** ms until the tasks are done, as far as the done ones tell; null where nothing is known. */
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
  /** The agent that has it or had it last, else the one that the plan names. */
  owner: Schema.NullOr(Schema.String),
  needs: Schema.Array(Schema.String),
  /** Tries that ended with an error. */
  errors: Schema.Int,
  /** When the state was entered, ms since the epoch. */
  since: Schema.Finite,
  /** The newest error. */
  error: Schema.NullOr(Schema.String),
  /** Where its result stands in the log; null before that. */
  restsOn: Schema.NullOr(Schema.Int),
  head: Schema.NullOr(Schema.String),
  branch: Schema.NullOr(Schema.String),
  /** True if the task was completed in a repository without a commit. */
  noCommit: Schema.optionalKey(Schema.Boolean)
})
export type TaskInfo = typeof TaskInfo.Type

/** So many tasks one reply holds, and so many that are named wherever they stand. */
export const TASKS_A_PAGE = 500
export const TASKS_NAMED = 100

export const GoalPage = Schema.Struct({
  goal: GoalInfo,
  /** In the order of the plan. */
  tasks: Schema.Array(TaskInfo),
  /** Of a plan that is longer: those under way and those that failed, wherever they stand; the first of them. */
  named: Schema.Array(TaskInfo),
  /** Findings of the newest review. */
  findings: Schema.Array(Finding),
  /** From where to ask for more; null at the end. */
  next: Schema.NullOr(Schema.Int)
})
export type GoalPage = typeof GoalPage.Type

/** The plan that waits for approval, whole: what each agent would be told. */
export const AskedPlan = Schema.Struct({
  goalId: Schema.String,
  project: Schema.String,
  goal: Schema.String,
  options: GoalOptions,
  /** Of all of it. */
  hash: Schema.String,
  total: Schema.Int,
  /** In the order of the plan. */
  tasks: Schema.Array(Task),
  /** From where to ask for more; null at the end. */
  next: Schema.NullOr(Schema.Int)
})
export type AskedPlan = typeof AskedPlan.Type

/** A goal as it is submitted. What is left out is as the project's config says. */
export const GoalRequest = Schema.Struct({
  goal: Schema.String,
  /** Absolute path of a plan's file. */
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
  /** The commit that was to be merged. */
  head: Schema.String,
  tasks: Schema.Array(Schema.String),
  outcome: Schema.Literals(["merged", "up-to-date", "conflict"]),
  conflicts: Schema.Array(Schema.String)
})
export type MergeResult = typeof MergeResult.Type

export const MergeReply = Schema.Struct({
  /** 0 where nothing has happened yet. */
  eventId: Schema.Int,
  message: Schema.String,
  target: Schema.String,
  results: Schema.Array(MergeResult),
  /** The branch is checked out there: the person's own git brings it to that commit, then the merge is asked for as done. */
  toCheckout: Schema.optionalKey(Schema.Struct({ folder: Schema.String, from: Schema.String, commit: Schema.String }))
})
export type MergeReply = typeof MergeReply.Type
