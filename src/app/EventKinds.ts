/**
 * EventKinds: every kind of rune that agentd knows, with its payload's Schema, who may
 * read it by default, and whether it may be appended lazily.
 */
import { Schema } from "effect"
import { ChannelConfig, Order } from "../config/ChannelConfig.ts"
import * as EventKinds from "../event-log/EventKinds.ts"
import { kind } from "../event-log/EventKinds.ts"
import { ownKinds } from "../event-log/LogRules.ts"
import * as AgentMachine from "../agents/AgentMachine.ts"
import * as GoalMachine from "../goals/GoalMachine.ts"
import * as ConversationMachine from "../agents/ConversationMachine.ts"
import * as PlateMachine from "../plates/PlateMachine.ts"
import * as SeatMachine from "../channels/SeatMachine.ts"
import * as ToolMachine from "../agents/ToolMachine.ts"
import * as TurnMachine from "../agents/TurnMachine.ts"
import * as WorkerMachine from "../agents/WorkerMachine.ts"

const text = Schema.String

const settings = Schema.toType(ChannelConfig)

/** All kinds of a machine: a move is the whole event, and besides it the fields that the machine names. */
const machine = <const K extends string, E>(module: {
  readonly kinds: ReadonlyArray<K>
  readonly Event: EventKinds.Shape<E>
  readonly lazy?: ReadonlyArray<string>
}): { readonly [P in K]: EventKinds.Kind<{ readonly event: E }> } => {
  const payload = Schema.Struct({ event: module.Event })
  return Object.fromEntries(
    module.kinds.map((name) => [
      name,
      kind(payload, {
        visibility: INTERNAL.has(name) ? "internal" : "public",
        lazy: module.lazy?.includes(name) ?? false,
        seals: SEALS.has(name)
      })
    ])
  ) as { readonly [P in K]: EventKinds.Kind<{ readonly event: E }> }
}

/** Ends a conversation: its stream takes nothing more. */
const SEALS = new Set(["session.closed"])

/** Kinds of the machines that are of no use to who only watches. */
const INTERNAL = new Set(["turn.finalized", "plan.critique"])

/** Required is what a fold reads; whoever appends may say more. */
const table = {
  ...machine(WorkerMachine),
  ...machine(AgentMachine),
  ...machine(TurnMachine),
  ...machine(ToolMachine),
  ...machine(ConversationMachine),
  ...machine(GoalMachine),
  ...machine(SeatMachine),
  ...machine(PlateMachine),
  // The inbox's machine lives above this layer, and checks its own events.
  ...machine({ kinds: ["inbox.received", "inbox.delivered", "inbox.withdrawn"], Event: Schema.Struct({ _tag: text }) }),

  // What is told of an agent beside its machines' moves.
  "agent.spawned": kind(Schema.Struct({ agent_id: text })),
  "agent.usage": kind(
    Schema.Struct({
      agent_id: text,
      turn_id: text,
      tokens: Schema.Finite,
      tool_calls: Schema.Finite,
      wall_time: Schema.Finite,
      usd: Schema.Finite
    })
  ),
  "agent.reported": kind(Schema.Struct({ agent_id: text, status: text, summary: text, evidence: Schema.Array(text) })),
  "agent.answered": kind(Schema.Struct({ agent_id: text, turn_id: text, parent_id: text })),
  "agent.asked": kind(Schema.Struct({ agent_id: text, question: text })),
  "run.notice": kind(Schema.Struct({ runId: text, text }), { lazy: true }),
  "worker.started": kind(Schema.Struct({ incarnation: Schema.Int, initial: Schema.Record(text, Schema.Unknown) })),
  "run.started": kind(Schema.Struct({ runId: text })),
  "run.output": kind(Schema.Struct({ runId: text, text }), { lazy: true }),
  "worktree.kept": kind(Schema.Struct({ path: text })),
  "worktree.removed": kind(Schema.Struct({ path: text })),

  // What happens in a channel beside its seats' moves.
  "channel.created": kind(Schema.Struct({ name: text, origin: Schema.Literals(["config", "person"]), settings })),
  "channel.configured": kind(Schema.Struct({ settings })),
  "channel.assigned": kind(Schema.Struct({ agent: text })),
  "channel.unassigned": kind(Schema.Struct({ agent: text })),
  "channel.posted": kind(
    Schema.Struct({ messageId: text, by: Schema.Literals(["person", "agent"]), from: text, text })
  ),
  "channel.notice": kind(Schema.Struct({ text })),
  "channel.unsignalled": kind(Schema.Struct({ agent: text, turnId: text })),
  "channel.withheld": kind(Schema.Struct({ agent: text, turnId: text, text })),
  "channel.signalled": kind(Schema.Struct({ agent: text, signal: Schema.Struct({ _tag: text }) })),
  "channel.read": kind(Schema.Struct({ agent: text, upTo: Schema.Int })),
  "channel.stirred": kind(Schema.Struct({ agent: text, messageId: text })),
  "channel.ordered": kind(Schema.Struct({ order: Order, agents: Schema.Array(text) })),
  "channel.paused": kind(Schema.Struct({ by: text })),
  "channel.resumed": kind(Schema.Struct({ by: text })),
  "channel.closed": kind(Schema.Struct({ by: text })),

  // What is told of a plate beside its machine's moves.
  "plate.answered": kind(
    Schema.Struct({ approval: text, tool: text, behavior: Schema.Literals(["allow", "deny"]), by: text })
  ),
  "hook.refused": kind(Schema.Struct({ field: text, message: text }), { visibility: "internal", lazy: true }),

  // What is told of a plan beside its machine's moves.
  "plan.merged": kind(Schema.Struct({ plan_id: text, target: text })),

  // Facts about agentd itself.
  "daemon.started": kind(Schema.Struct({ pid: Schema.Int, version: text })),
  "daemon.stopping": kind(Schema.Struct({ reason: text })),
  "daemon.stopped": kind(Schema.Struct({ pid: Schema.Int })),
  "project.registered": kind(Schema.Struct({ config: text, name: text })),
  "project.config_changed": kind(Schema.Struct({ config: text })),
  "alert.queued": kind(Schema.Struct({ alertId: text, batch: text })),
  "alert.sent": kind(Schema.Struct({ batch: text })),
  "alert.failed": kind(Schema.Struct({ batch: text })),
  "actor.dead_letter": kind(Schema.Struct({ reason: text }), { visibility: "internal", lazy: true }),
  ...ownKinds
}

/** Every kind, with the type of its payload. */
export const kinds = EventKinds.make(table)
