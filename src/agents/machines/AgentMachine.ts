/**
 * AgentMachine: the life of one agent in a conversation, from its spawn to its end.
 *
 * Guarantees: An agent has at most one turn at a time. After its budget is exceeded, an agent starts no turn. Only a
 * forced kill ends an agent in the middle of a turn.
 */
import { Schema } from "effect"
import type { Said } from "../../core/event-log/EventKinds.ts"
import { define, illegal, on, postpone, stale, to } from "../../core/event-actor/StateMachine.ts"
import { readTurn } from "./TurnKinds.ts"

export type State =
  /** Initial state, before the spawn. */
  "[*]" | "spawning" | "idle" | "running_turn" | "terminated" | "failed"

const turnId = Schema.String
const ask = { by: Schema.String, reason: Schema.String }

export const Event = Schema.Union([
  Schema.TaggedStruct("spawn_requested", {
    agentId: Schema.String,
    role: Schema.String,
    model: Schema.NullOr(Schema.String),
    /** The agent that spawned this one; null for a root agent. */
    parentId: Schema.NullOr(Schema.String)
  }),
  Schema.TaggedStruct("init_complete", {}),
  Schema.TaggedStruct("init_error", { error: Schema.String }),
  Schema.TaggedStruct("turn_assigned", { turnId }),
  Schema.TaggedStruct("turn_completed", { turnId }),
  Schema.TaggedStruct("turn_interrupted", { turnId }),
  Schema.TaggedStruct("turn_error", { turnId, message: Schema.String }),
  /** Ends the agent after its current turn. */
  Schema.TaggedStruct("kill", ask),
  /** Ends the agent at once, even during a turn. */
  Schema.TaggedStruct("kill_forced", ask),
  Schema.TaggedStruct("parent_closed", { parentId: Schema.NullOr(Schema.String) }),
  Schema.TaggedStruct("budget_exhausted", {
    resource: Schema.Literals(["tokens", "tool_calls", "wall_time", "usd"]),
    spent: Schema.Finite,
    limit: Schema.Finite
  })
])
export type Event = typeof Event.Type

/** The event that a turn's rune causes in this machine: the start or end of the turn. Undefined for other runes. */
export const joins = (any: Said): Event | undefined => {
  const rune = readTurn(any)
  switch (rune?.kind) {
    case "turn.started":
      return { _tag: "turn_assigned", turnId: rune.payload.turn_id }
    case "turn.completed":
      return { _tag: "turn_completed", turnId: rune.payload.turn_id }
    case "turn.interrupted":
      return { _tag: "turn_interrupted", turnId: rune.payload.turn_id }
    case "turn.error":
      return { _tag: "turn_error", turnId: rune.payload.turn_id, message: rune.payload.message ?? "" }
    default:
      return undefined
  }
}

export type Action =
  | { readonly _tag: "StartTurn"; readonly turnId: string | null }
  | { readonly _tag: "InterruptTurn"; readonly turnId: string | null }
  | { readonly _tag: "ForceStopTurn"; readonly turnId: string | null }

export interface Data {
  readonly agentId: string | null
  readonly role: string | null
  readonly model: string | null
  readonly parentId: string | null
  /** Id of the turn in progress; null if there is none. */
  readonly turnId: string | null
  readonly stats: Stats
  /** The resource whose budget is exceeded; null if there is none. */
  readonly spent: string | null
  /** Why the agent ended; null if it has not ended. */
  readonly reason: string | null
}

export interface Stats {
  readonly completed: number
  readonly interrupted: number
  readonly errors: number
}

export const initial = (): Data => ({
  agentId: null,
  role: null,
  model: null,
  parentId: null,
  turnId: null,
  stats: { completed: 0, interrupted: 0, errors: 0 },
  spent: null,
  reason: null
})

export const kinds = [
  "agent.spawning",
  "agent.ready",
  "agent.busy",
  "agent.idle",
  "agent.budget_exhausted",
  "agent.failed",
  "agent.terminated"
] as const
export type Kind = (typeof kinds)[number]

const update = on<Event, Data>()

/** Counts the end of a turn. If the budget was exceeded during the turn, the agent also ends for that reason. */
const ended = (data: Data, count: keyof Stats): Data => ({
  ...data,
  turnId: null,
  stats: { ...data.stats, [count]: data.stats[count] + 1 },
  reason: data.spent === null ? null : `the budget of ${data.spent} is spent`
})

const turnEnd = [
  { to: "terminated", when: "spent", rune: "agent.terminated" },
  { to: "idle", rune: "agent.idle" }
] as const
const terminate = to("terminated", { set: "end", rune: "agent.terminated" })

const init = ["init_complete", "init_error"] as const
const turns = ["turn_completed", "turn_interrupted", "turn_error"] as const
const kills = ["kill", "kill_forced", "parent_closed", "budget_exhausted"] as const
/** Transitions of an ended agent: late events are ignored, but the start of new work is an error. */
const gone = { ...illegal("spawn_requested", "turn_assigned"), ...stale(...init, ...turns, ...kills) }

export const Agent = define<State, Event, Data, Action, Kind>()({
  name: "agent",
  initial: "[*]",
  final: ["terminated", "failed"],
  rune: "agent.idle",
  fenced: (data, event) =>
    (event._tag === "turn_assigned" && event.turnId === data.turnId) ||
    // usage can continue while a turn is being ended, but the budget is reported as exceeded only once
    (event._tag === "budget_exhausted" && data.spent !== null) ||
    ((event._tag === "turn_completed" || event._tag === "turn_interrupted" || event._tag === "turn_error") &&
      event.turnId !== data.turnId),
  guards: { spent: (data) => data.spent !== null },
  updates: {
    spawn: update("spawn_requested", (data, { agentId, role, model, parentId }) => ({
      ...data,
      agentId,
      role,
      model,
      parentId
    })),
    assign: update("turn_assigned", (data, event) => ({ ...data, turnId: event.turnId })),
    complete: (data) => ended(data, "completed"),
    interrupt: (data) => ended(data, "interrupted"),
    err: (data) => ended(data, "errors"),
    spend: update("budget_exhausted", (data, event) => ({ ...data, spent: event.resource })),
    fail: update("init_error", (data, event) => ({ ...data, reason: event.error })),
    end: update([...kills], (data, event) => ({
      ...data,
      spent: event._tag === "budget_exhausted" ? event.resource : data.spent,
      reason:
        event._tag === "parent_closed"
          ? "its parent has ended"
          : event._tag === "budget_exhausted"
            ? `the budget of ${event.resource} is spent`
            : event.reason
    }))
  },
  actions: {
    StartTurn: (data) => ({ _tag: "StartTurn", turnId: data.turnId }),
    InterruptTurn: (data) => ({ _tag: "InterruptTurn", turnId: data.turnId }),
    ForceStopTurn: (data) => ({ _tag: "ForceStopTurn", turnId: data.turnId })
  },
  timers: {},
  fields: {
    "agent.spawning": (data) => ({
      agent_id: data.agentId,
      role: data.role,
      model: data.model,
      parent_id: data.parentId
    }),
    "agent.ready": (data) => ({ agent_id: data.agentId }),
    "agent.busy": (data) => ({ agent_id: data.agentId, turn_id: data.turnId }),
    "agent.idle": (data) => ({ agent_id: data.agentId }),
    "agent.budget_exhausted": (data) => ({ agent_id: data.agentId, resource: data.spent }),
    "agent.failed": (data) => ({ agent_id: data.agentId, error: data.reason }),
    "agent.terminated": (data) => ({ agent_id: data.agentId, reason: data.reason, stats: data.stats })
  },
  states: {
    "[*]": {},
    spawning: { enter: "InitAgent" },
    idle: { enter: "TakeWork" },
    running_turn: { enter: "WatchTurn" },
    terminated: { enter: "ReleaseAgent" },
    failed: { enter: "ReleaseAgent" }
  },
  table: {
    "[*]": {
      ...illegal("turn_assigned", ...init, ...turns, ...kills),
      spawn_requested: to("spawning", { set: "spawn", rune: "agent.spawning" })
    },
    spawning: {
      ...illegal("spawn_requested", "turn_assigned", ...turns),
      ...postpone("kill", "parent_closed", "budget_exhausted"),
      init_complete: to("idle", { rune: "agent.ready" }),
      init_error: to("failed", { set: "fail", rune: "agent.failed" }),
      kill_forced: terminate
    },
    idle: {
      ...illegal("spawn_requested", ...init, ...turns),
      turn_assigned: to("running_turn", { set: "assign", rune: "agent.busy", act: ["StartTurn"] }),
      kill: terminate,
      kill_forced: terminate,
      parent_closed: terminate,
      budget_exhausted: terminate
    },
    running_turn: {
      ...illegal("spawn_requested", "turn_assigned", ...init),
      ...postpone("kill", "parent_closed"),
      turn_completed: { set: "complete", then: turnEnd },
      turn_interrupted: { set: "interrupt", then: turnEnd },
      turn_error: { set: "err", then: turnEnd },
      budget_exhausted: to("running_turn", { set: "spend", rune: "agent.budget_exhausted", act: ["InterruptTurn"] }),
      kill_forced: to("terminated", { set: "end", rune: "agent.terminated", act: ["ForceStopTurn"] })
    },
    terminated: gone,
    failed: gone
  }
})
