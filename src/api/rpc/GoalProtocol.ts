/** GoalProtocol: procedures for goals, their plans and tasks. */
import { Schema } from "effect"
import { Rpc } from "effect/rpc"
import { AskedPlan, GoalInfo, GoalPage, GoalRequest, MergeReply } from "../../domain/GoalMessages.ts"
import { Done } from "../../domain/Messages.ts"
import { MAX_CHECKS } from "../../config/GoalConfig.ts"
import * as Bounds from "../../board/Bounds.ts"
import { Limits } from "../../board/Limits.ts"
import { command, error, input, procedure, Speaks } from "./Procedure.ts"

const goalRequest = Schema.Struct({
  ...GoalRequest.fields,
  goal: Bounds.text(Limits.goal, "Put the long part into a file, and name it."),
  plan: Schema.NullOr(Bounds.path),
  planner: Schema.optionalKey(Bounds.name),
  critic: Schema.optionalKey(Bounds.name),
  target: Schema.optionalKey(Bounds.name),
  checks: Schema.optionalKey(
    Bounds.list(Bounds.text(Limits.check, "Put it into a script."), MAX_CHECKS, "Put them into a script.")
  ),
  rounds: Schema.optionalKey(Bounds.between(1, Limits.rounds, "Leave it out for the default."))
})

export const goals = [
  procedure(
    Rpc.make("GoalSubmit", {
      payload: input({ request: goalRequest, caller: Bounds.caller }),
      success: Schema.Struct({ ...Done.fields, goalId: Schema.String }),
      error
    }).annotate(Speaks, "acts"),
    ({ goals }, { caller, request }) => goals.submit(request, caller)
  ),
  /** Lists the goals of the caller's project, or of all projects, newest first. */
  procedure(
    Rpc.make("Goals", {
      payload: input({ all: Schema.Boolean, caller: Bounds.caller }),
      success: Schema.Array(GoalInfo),
      error
    }),
    ({ goals }, { all, caller }) => goals.list({ all }, caller)
  ),
  /** A goal with its tasks from index `from` on, as many as fit into a reply. */
  procedure(
    Rpc.make("Goal", { payload: input({ ...Bounds.named, from: Schema.Int }), success: GoalPage, error }),
    ({ goals }, { caller, from, name }) => goals.page(name, Math.max(0, from), caller)
  ),
  /** Submits a changed plan for a goal. `path`: absolute path of the plan's file. */
  procedure(command("GoalPlan", { path: Bounds.path }, "acts"), ({ goals }, { caller, name, path }) =>
    goals.plan(name, path, caller)
  ),
  /** The whole plan that waits for approval, from task index `from` on. */
  procedure(
    Rpc.make("GoalAsked", { payload: input({ ...Bounds.named, from: Schema.Int }), success: AskedPlan, error }),
    ({ goals }, { caller, from, name }) => goals.asked(name, Math.max(0, from), caller)
  ),
  procedure(
    command(
      "GoalApprove",
      {
        /**
         * Hash of the plan that the user has seen. Approval requires it, and is refused if the plan has changed since.
         */
        hash: Schema.optionalKey(Bounds.name)
      },
      "decides"
    ),
    ({ goals }, { caller, hash, name }) => goals.approve(name, hash, caller)
  ),
  procedure(command("GoalReject", { reason: Bounds.reason }, "decides"), ({ goals }, { caller, name, reason }) =>
    goals.reject(name, reason, caller)
  ),
  procedure(command("GoalCancel", { reason: Bounds.reason }, "acts"), ({ goals }, { caller, name, reason }) =>
    goals.cancel(name, reason, caller)
  ),
  /** Retries a failed task; with `task` null, all failed tasks. */
  procedure(command("GoalRetry", { task: Schema.NullOr(Bounds.name) }, "acts"), ({ goals }, { caller, name, task }) =>
    goals.retry(name, task, caller)
  ),
  procedure(
    Rpc.make("GoalMerge", {
      payload: input({
        ...Bounds.named,
        into: Schema.NullOr(Bounds.name),
        unreviewed: Schema.Boolean,
        all: Schema.Boolean,
        /** The merge that the user's own git has made in the checkout of the branch. */
        done: Schema.optionalKey(Schema.Struct({ from: Bounds.name, commit: Bounds.name }))
      }),
      success: MergeReply,
      error
    }).annotate(Speaks, "acts"),
    ({ goals }, { all, caller, done, into, name, unreviewed }) =>
      goals.merge(name, { into, unreviewed, all, done }, caller)
  )
] as const
