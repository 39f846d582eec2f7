/**
 * GoalKinds: the kinds of runes of a goal and its plan.
 */
import { Schema } from "effect"
import { Evidence } from "../domain/GoalMessages.ts"
import { machineKinds } from "../event-actor/MachineKinds.ts"
import { kind, reader } from "../event-log/EventKinds.ts"
import * as GoalMachine from "./GoalMachine.ts"

const text = Schema.String
const because = { reason: Schema.optional(Schema.NullOr(text)) }
const ofTask = { task_id: text }

/** The moves of a goal. */
export const moveKinds = machineKinds(GoalMachine, {
  "plan.task_assigned": { fields: { ...ofTask, agent_id: text } },
  "plan.task_started": { fields: ofTask },
  "plan.task_completed": { fields: { ...ofTask, evidence: Schema.optional(Schema.NullOr(Evidence)) } },
  "plan.task_failed": { fields: ofTask },
  "plan.task_retried": { fields: ofTask },
  "plan.critique": { visibility: "internal" },
  "plan.blocked": { fields: because },
  "plan.stopped": { fields: because }
})

export const goalKinds = {
  ...moveKinds,
  "plan.merged": kind(Schema.Struct({ plan_id: text, target: text }))
}

export const readMove = reader(moveKinds)
