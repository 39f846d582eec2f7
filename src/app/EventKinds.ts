/**
 * EventKinds: every kind of rune there is, with its payload's Schema, who may read it
 * by default, and whether it may be appended lazily.
 *
 * An unknown kind is refused when it is appended (somebody's bug) and tolerated
 * when it is read (a newer agentd wrote it); it is internal then.
 */
import { Cause, Exit, Schema } from "effect"
import { ChannelConfig, Order } from "../config/ChannelConfig.ts"
import type { Visibility } from "../event-log/Rune.ts"
import * as AgentMachine from "../agents/AgentMachine.ts"
import * as GoalMachine from "../goals/GoalMachine.ts"
import * as ConversationMachine from "../agents/ConversationMachine.ts"
import * as PlateMachine from "../plates/PlateMachine.ts"
import * as SeatMachine from "../channels/SeatMachine.ts"
import * as ToolMachine from "../agents/ToolMachine.ts"
import * as TurnMachine from "../agents/TurnMachine.ts"
import * as WorkerMachine from "../agents/WorkerMachine.ts"

export interface Kind {
  /** Of its JSON, as it is stored. */
  readonly payload: Schema.Codec<unknown, unknown>
  readonly visibility: Visibility
  /** Nothing that a fold reads: may be appended without waiting, and dropped under load. */
  readonly lazy: boolean
}

type Shape = Schema.Codec<unknown, unknown>

const text = Schema.String

const kind = (payload: Shape, options: { readonly visibility?: Visibility; readonly lazy?: boolean } = {}): Kind => ({
  payload,
  visibility: options.visibility ?? "public",
  lazy: options.lazy ?? false
})

const settings = Schema.toType(ChannelConfig)

/** A move of a machine: the whole event, and besides it the fields that the machine names. */
const moved = (event: Shape): Shape => Schema.Struct({ event })

/** All kinds of a machine. */
const machine = (module: {
  readonly kinds: ReadonlyArray<string>
  readonly Event: Shape
  readonly lazy?: ReadonlyArray<string>
}): { readonly [name: string]: Kind } => {
  const payload = moved(module.Event)
  return Object.fromEntries(
    module.kinds.map((name) => [
      name,
      kind(payload, {
        visibility: INTERNAL.has(name) ? "internal" : "public",
        lazy: module.lazy?.includes(name) ?? false
      })
    ])
  )
}

/** Kinds of the machines that are of no use to who only watches. */
const INTERNAL = new Set(["turn.finalized", "plan.critique"])

/** Required is what a fold reads; whoever appends may say more. */
const table: { readonly [name: string]: Kind } = {
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
  "invariant.violated": kind(
    Schema.Struct({
      rule: text,
      severity: Schema.Literals(["FATAL", "ERROR", "WARN"]),
      /** Of the rune that was refused. */
      kind: text,
      actor: text,
      stream: text,
      message: text
    })
  ),
  "runes.dropped": kind(Schema.Struct({ count: Schema.Int }), { visibility: "internal" })
}

/** By name. */
export const kinds: ReadonlyMap<string, Kind> = new Map(Object.entries(table))

/** One cheap check a kind, made when the module is loaded. */
const checks = new Map([...kinds].map(([name, { payload }]) => [name, Schema.is(payload)]))

/** Whether the payload has its kind's shape; false for an unknown kind. */
export const accepts = (name: string, payload: unknown): boolean => checks.get(name)?.(payload) ?? false

/** What is wrong with it, in words: slow, for the message of a refusal. */
export const explain = (name: string, payload: unknown): string => {
  const entry = kinds.get(name)
  if (entry === undefined) return `no kind of rune is named "${name}"`
  const decoded = Schema.decodeUnknownExit(entry.payload)(payload)
  return Exit.isFailure(decoded) ? String(Cause.squash(decoded.cause)) : "the payload does not have the kind's type"
}
