/**
 * GoalKinds: the kinds of runes of a goal and its plan.
 */
import { Schema } from "effect"
import { Evidence } from "../domain/GoalMessages.ts"
import { machineKinds } from "../core/event-actor/MachineKinds.ts"
import { kind, reader } from "../core/event-log/EventKinds.ts"
import * as GoalMachine from "./GoalMachine.ts"

const text = Schema.String
const mayText = Schema.optional(Schema.NullOr(text))
const mayAny = Schema.optional(Schema.Unknown)
const ofPlan = { plan_id: mayText }
const because = { ...ofPlan, reason: mayText }
const ofTask = { task_id: text }
const failed = { ...ofTask, error: mayText }

export const moveKinds = machineKinds(GoalMachine, {
  "plan.goal_received": { fields: { ...ofPlan, goal_description: mayText } },
  "plan.created": { fields: { ...ofPlan, tasks: mayAny } },
  "plan.updated": { fields: { ...ofPlan, changes: mayAny } },
  "plan.task_assigned": { fields: { ...ofTask, agent_id: text } },
  "plan.task_started": { fields: ofTask },
  "plan.task_completed": { fields: { ...ofTask, result: mayAny, evidence: Schema.optional(Schema.NullOr(Evidence)) } },
  "plan.task_failed": { fields: failed },
  "plan.task_retried": { fields: failed },
  "plan.critique": { fields: { ...ofPlan, findings: mayAny }, visibility: "internal" },
  "plan.goal_met": { fields: { ...ofPlan, summary: mayText } },
  "plan.blocked": { fields: because },
  "plan.stopped": { fields: because }
})

export const goalKinds = {
  ...moveKinds,
  "plan.merged": kind(Schema.Struct({ plan_id: text, target: text, by: mayText, results: mayAny }))
}

export const readMove = reader(moveKinds)
