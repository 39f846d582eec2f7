/**
 * GoalConfig: a project's settings for goals. All defaults are filled in. Each setting can be overridden when a goal is
 * submitted.
 */
import { Schema } from "effect"
import { BackoffConfig } from "./AgentConfig.ts"
import { Environment, Name, optional, whole, withDefault, Word } from "./Fields.ts"
import { LimitsConfig } from "./LimitsConfig.ts"
import { Span } from "./Span.ts"

/** Maximum number of checks. For more checks, use a script. */
export const MAX_CHECKS = 32

const names = (most: number) =>
  Schema.Array(Name).check(
    Schema.makeFilter((list: ReadonlyArray<string>) => list.length > 0 && list.length <= most, {
      message: `must contain from 1 to ${most} names`
    })
  )

export const GoalConfig = Schema.Struct({
  planner: optional(Name, "The agent that writes a goal's plan. Default: plans are read from a file."),
  critic: optional(Name, "The agent that reviews the result. Default: the checks alone decide."),
  workers: optional(
    names(1000),
    "The agents that work on tasks. Default: all except the planner, the critic and sub-agents."
  ),
  checks: Schema.Array(Word)
    .check(
      Schema.makeFilter((list: ReadonlyArray<string>) => list.length <= MAX_CHECKS, {
        message: `must contain at most ${MAX_CHECKS} commands`
      })
    )
    .pipe(withDefault([], "Shell commands (sh) that must succeed before the critic's review, such as npm test.")),
  checkTimeout: Span.pipe(withDefault("10 minutes", "How long one check may take.")),
  sandbox: Schema.Literals(["required", "preferred"]).pipe(
    withDefault(
      "preferred",
      "If this machine has no sandbox. preferred: the checks run anyway. required: no check runs."
    )
  ),
  limits: LimitsConfig.pipe(
    withDefault({}, "How much of the machine's resources a check may use. A check that uses more fails.")
  ),
  network: Schema.Boolean.pipe(withDefault(false, "Whether checks in a sandbox can reach the network.")),
  env: Environment.pipe(
    withDefault(
      {},
      "Environment variables of the checks, besides the few that programs need. The checks get a key only if it is listed here."
    )
  ),
  autoStart: Schema.Boolean.pipe(withDefault(false, "Whether a plan is carried out without a user's approval.")),
  rounds: whole(1, 100).pipe(withDefault(3, "Number of failed reviews after which the plan waits for a user.")),
  target: optional(Word, "The branch that finished work is merged into. Default: the branch that is checked out."),
  planTries: whole(1, 20).pipe(withDefault(3, "How often an unusable plan or review is sent back to its agent.")),
  maxTaskErrors: whole(1, 10_000).pipe(withDefault(5, "Number of errors after which a task fails.")),
  maxErrors: whole(1, 1_000_000).pipe(withDefault(20, "Number of errors of all tasks after which no task is retried.")),
  backoff: BackoffConfig.pipe(withDefault({}, "How long a task waits after an error.")),
  taskTimeout: Span.pipe(
    withDefault("1 hour", "How long one attempt at a task may take, and one answer of the planner or the critic.")
  ),
  blockedTimeout: Span.pipe(withDefault("7 days", "How long a blocked plan waits before it stops."))
})
export type GoalConfig = typeof GoalConfig.Type
