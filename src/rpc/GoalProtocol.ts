/**
 * GoalProtocol: the procedures on goals, their plans and tasks.
 */
import { Schema } from "effect"
import { Rpc, RpcGroup } from "effect/rpc"
import { GoalInfo, GoalPage, GoalRequest, MergeReply } from "../domain/GoalMessages.ts"
import { Caller, Done } from "../domain/Messages.ts"
import { error, named } from "./Procedure.ts"

export const group = RpcGroup.make(
  Rpc.make("GoalSubmit", {
    payload: { request: GoalRequest, caller: Caller },
    success: Schema.Struct({ ...Done.fields, goalId: Schema.String }),
    error
  }),
  /** Of the caller's project, or of all; newest first. */
  Rpc.make("Goals", { payload: { all: Schema.Boolean, caller: Caller }, success: Schema.Array(GoalInfo), error }),
  /** With its tasks from that place on, as many as a reply holds. */
  Rpc.make("Goal", { payload: { ...named, from: Schema.Int }, success: GoalPage, error }),
  /** `path`: of a plan's file, absolute. */
  Rpc.make("GoalPlan", { payload: { ...named, path: Schema.String }, success: Done, error }),
  Rpc.make("GoalApprove", { payload: named, success: Done, error }),
  Rpc.make("GoalReject", { payload: { ...named, reason: Schema.String }, success: Done, error }),
  Rpc.make("GoalCancel", { payload: { ...named, reason: Schema.String }, success: Done, error }),
  /** `task`: null for all that failed. */
  Rpc.make("GoalRetry", { payload: { ...named, task: Schema.NullOr(Schema.String) }, success: Done, error }),
  Rpc.make("GoalMerge", {
    payload: { ...named, into: Schema.NullOr(Schema.String), unreviewed: Schema.Boolean, all: Schema.Boolean },
    success: MergeReply,
    error
  })
)
