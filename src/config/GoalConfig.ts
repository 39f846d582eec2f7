/**
 * GoalConfig: a project's settings for goals. Each can be overridden when a goal is submitted.
 * Every default is filled in.
 */
import { Schema } from "effect"
import { BackoffConfig } from "./AgentConfig.ts"
import { Environment, Name, optional, whole, withDefault, Word } from "./Fields.ts"
import { LimitsConfig } from "./LimitsConfig.ts"
import { Span } from "./Span.ts"

/** Maximum number of check commands; use a script for more. */
export const MAX_CHECKS = 32

const names = (most: number) =>
  Schema.Array(Name).check(
    Schema.makeFilter((list: ReadonlyArray<string>) => list.length > 0 && list.length <= most, {
      message: `must hold from 1 to ${most} names`
    })
  )

export const GoalConfig = Schema.Struct({
  planner: optional(Name, "The agent that makes a goal's plan. Default: a plan comes from a file."),
  critic: optional(Name, "The agent that reviews the result. Default: the checks alone decide."),
  workers: optional(
    names(1000),
    "The agents that work off tasks. Default: all but the planner, the critic and sub-agents."
  ),
  checks: Schema.Array(Word)
    .check(
      Schema.makeFilter((list: ReadonlyArray<string>) => list.length <= MAX_CHECKS, {
        message: `must hold at most ${MAX_CHECKS} commands`
      })
    )
    .pipe(withDefault([], "Commands that must succeed before the critic looks, such as npm test; run by sh.")),
  checkTimeout: Span.pipe(withDefault("10 minutes", "How long one of them may take.")),
  sandbox: Schema.Literals(["required", "preferred"]).pipe(
    withDefault("preferred", "Without a sandbox on this machine: run the checks all the same, or (required) run none.")
  ),
  limits: LimitsConfig.pipe(withDefault({}, "What a check may take of the machine; one that takes more has failed.")),
  network: Schema.Boolean.pipe(withDefault(false, "Whether the checks reach the network, where a sandbox holds them.")),
  env: Environment.pipe(
    withDefault(
      {},
      "Variables that the checks see besides the few that programs need; keys only where they stand here."
    )
  ),
  autoStart: Schema.Boolean.pipe(withDefault(false, "Whether a plan is carried out without a person's approval.")),
  rounds: whole(1, 100).pipe(withDefault(3, "So many reviews that did not pass, and the plan waits for a person.")),
  target: optional(Word, "The branch that done work is merged into. Default: the one that is checked out."),
  planTries: whole(1, 20).pipe(withDefault(3, "How often a plan or a review that cannot be used is handed back.")),
  maxTaskErrors: whole(1, 10_000).pipe(withDefault(5, "So many errors of one task, and it has failed.")),
  maxErrors: whole(1, 1_000_000).pipe(withDefault(20, "So many errors of all tasks, and no task is tried again.")),
  backoff: BackoffConfig.pipe(withDefault({}, "How long a task waits after an error.")),
  taskTimeout: Span.pipe(withDefault("1 hour", "How long one try of a task may take, and the planner or the critic.")),
  blockedTimeout: Span.pipe(
    withDefault("7 days", "How long a plan waits for what keeps it from going on, before it stops.")
  )
})
export type GoalConfig = typeof GoalConfig.Type
