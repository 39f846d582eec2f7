/**
 * EventKinds: every kind of rune that agentd knows. Each feature declares its own kinds. The log checks each rune
 * against this registry.
 */
import { Schema } from "effect"
import { accessKinds } from "../access/AccessKinds.ts"
import { agentKinds } from "../agents/machines/AgentKinds.ts"
import { alertKinds } from "../alerts/AlertKinds.ts"
import { budgetKinds } from "../budgets/BudgetKinds.ts"
import { channelKinds } from "../channels/ChannelKinds.ts"
import { configKinds } from "../domain/ConfigKinds.ts"
import { projectKinds } from "../domain/ProjectKinds.ts"
import { kind, make } from "../core/event-log/EventKinds.ts"
import { ownKinds } from "../core/event-log/OwnKinds.ts"
import { goalKinds } from "../goals/GoalKinds.ts"
import { plateKinds } from "../plates/PlateKinds.ts"
import { providerKinds } from "../providers/ProviderKinds.ts"
import { scheduleKinds } from "../schedules/ScheduleKinds.ts"

const text = Schema.String
const mayText = Schema.optional(text)

export const kinds = make({
  ...agentKinds,
  ...channelKinds,
  ...goalKinds,
  ...scheduleKinds,
  ...plateKinds,
  ...providerKinds,
  ...budgetKinds,
  ...projectKinds,
  ...configKinds,
  ...alertKinds,
  ...accessKinds,
  ...ownKinds,

  // facts about the daemon itself
  "daemon.started": kind(Schema.Struct({ pid: Schema.Int, version: text, state: mayText, socket: mayText })),
  /** `keep`: runs continue for the next daemon. */
  "daemon.stopping": kind(Schema.Struct({ reason: text, keep: Schema.optional(Schema.Boolean) })),
  "daemon.stopped": kind(Schema.Struct({ pid: Schema.Int })),
  /** Another program listens on the configured port. `uid`: the user id of that program's owner; null if unknown. */
  "http.port_taken": kind(Schema.Struct({ port: Schema.Int, uid: Schema.NullOr(Schema.Int), foreign: Schema.Boolean })),
  /** An agent attempted a decision that only a user may make. `what`: the procedure that the agent called. */
  "caller.refused": kind(Schema.Struct({ by: text, run_id: text, what: text })),
  "actor.dead_letter": kind(
    Schema.Struct({ address: mayText, reason: text, tag: mayText, message: mayText, why: mayText }),
    { visibility: "internal", lazy: true }
  )
})
