/**
 * Goals: what people ask of goals, and what they are shown.
 *
 * Guarantees: what a reply reports is durable; a plan that does not hold is refused
 * before anything is written; a goal is named from within its project (`g3`), else as
 * `project/g3`.
 */
import { Context, type Effect } from "effect"
import type { GoalInfo, GoalPage, GoalRequest, MergeReply } from "../domain/GoalMessages.ts"
import type { Caller, CommandRefused, Done } from "../domain/Messages.ts"
import type { StorageError } from "../event-log/EventLog.ts"

type Command<A> = Effect.Effect<A, CommandRefused | StorageError>

export interface MergeHow {
  /** The branch; null: the goal's own, else what is checked out. */
  readonly into: string | null
  /** Though the goal is not met. */
  readonly unreviewed: boolean
  /** With what the branches hold of no task of the goal. */
  readonly all: boolean
}

export class Goals extends Context.Service<
  Goals,
  {
    readonly submit: (request: GoalRequest, caller: Caller) => Command<Done & { readonly goalId: string }>
    /** Those of the caller's project, or of all; newest first. */
    readonly list: (options: { readonly all: boolean }, caller: Caller) => Effect.Effect<ReadonlyArray<GoalInfo>>
    /** The goal with some of its tasks, in the order of the plan. */
    readonly page: (name: string, from: number, caller: Caller) => Command<GoalPage>
    /** A plan for a goal that waits for one: the absolute path of its file. */
    readonly plan: (name: string, path: string, caller: Caller) => Command<Done>
    readonly approve: (name: string, caller: Caller) => Command<Done>
    /** Back to the planner, with what to change. */
    readonly reject: (name: string, reason: string, caller: Caller) => Command<Done>
    readonly cancel: (name: string, reason: string, caller: Caller) => Command<Done>
    /** A blocked goal goes on: with one failed task, or all of them, tried again. */
    readonly retry: (name: string, task: string | null, caller: Caller) => Command<Done>
    /** Done work, into a branch. */
    readonly merge: (name: string, options: MergeHow, caller: Caller) => Command<MergeReply>
    /** Every goal of a conversation that is about to be closed is stopped. */
    readonly stopAll: (conversation: string, by: string, reason: string) => Effect.Effect<void>
    /** Waits until the log is folded at start-up; fails if it cannot be. */
    readonly recovered: Effect.Effect<void, StorageError>
  }
>()("agentd/plans/Goals") {}
