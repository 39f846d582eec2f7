/**
 * ConversationMachine: the life of a conversation, from its creation to its archive. A conversation is the unit of
 * isolation, budget and log.
 *
 * Guarantees: A turn starts only while the conversation is active. A running turn may end in any state. Only the user
 * ends a suspension. An archived conversation never changes.
 */
import { Schema, Struct } from "effect"
import { define, illegal, on, postpone, stale, to } from "../../core/event-actor/StateMachine.ts"

export type State =
  /** State before the conversation is created. */
  "[*]" | "created" | "active" | "paused" | "suspended" | "closing" | "closed" | "archived"

const by = Schema.String

export const Event = Schema.Union([
  Schema.TaggedStruct("create_requested", {
    conversationId: Schema.String,
    rootAgentId: Schema.String,
    config: Schema.Unknown
  }),
  Schema.TaggedStruct("first_message", { messageId: Schema.String }),
  Schema.TaggedStruct("agent_ready", { agentId: Schema.String }),
  Schema.TaggedStruct("new_turn", { turnId: Schema.String, agentId: Schema.String }),
  Schema.TaggedStruct("turn_completed", {
    turnId: Schema.String,
    agentId: Schema.String,
    outcome: Schema.Literals(["completed", "interrupted", "error"])
  }),
  /**
   * An agent stopped permanently. `cause` is equal for agents that stopped for the same reason; absent in older logs.
   */
  Schema.TaggedStruct("agent_failed", {
    agentId: Schema.String,
    error: Schema.String,
    cause: Schema.optionalKey(Schema.String)
  }),
  Schema.TaggedStruct("pause_requested", {
    by,
    reason: Schema.String,
    inFlight: Schema.Literals(["interrupt", "complete"])
  }),
  Schema.TaggedStruct("resume_requested", { by }),
  Schema.TaggedStruct("budget_exhausted", {
    resource: Schema.Literals(["tokens", "tool_calls", "wall_time", "usd"]),
    spent: Schema.Finite,
    limit: Schema.Finite
  }),
  Schema.TaggedStruct("error_threshold", { reason: Schema.String }),
  Schema.TaggedStruct("budget_replenished", { by, config: Schema.Unknown }),
  Schema.TaggedStruct("reset", { by }),
  Schema.TaggedStruct("close_requested", { by, reason: Schema.String }),
  /** Sent when all agents are stopped and their last runes are in the log. */
  Schema.TaggedStruct("cleanup_complete", { stats: Schema.Unknown }),
  Schema.TaggedStruct("archive_requested", { by })
])
export type Event = typeof Event.Type

export type Action =
  | { readonly _tag: "InterruptTurns"; readonly turnIds: ReadonlyArray<string> }
  /** Usage before this action is no longer counted. */
  | { readonly _tag: "ResetBudget" }
  | { readonly _tag: "DrainQueues" }

export interface Limits {
  readonly maxFatalStops: number
  /**
   * Number of consecutive turn errors after which the conversation is suspended; null: it is never suspended for turn
   * errors.
   */
  readonly maxTurnErrors: number | null
}

/** Default limits for logs of older versions of agentd, which contain none. */
export const defaultLimits: Limits = { maxFatalStops: 3, maxTurnErrors: 5 }

/** Normalizes an error message: removes numbers and the agent's name, so that errors of several agents can be equal. */
export const causeOf = (agentId: string, error: string): string =>
  error.slice(0, MAX_CAUSE).replaceAll(agentId, "…").replaceAll(/\d+/g, "0")
const MAX_CAUSE = 500

/**
 * Maximum numbers of running agents in a conversation. Agents above `soft` are queued; agents above `hard` are refused.
 */
export const AGENTS = { soft: 10, hard: 20 } as const

export interface Data {
  readonly limits: Limits
  readonly conversationId: string | null
  readonly rootAgentId: string | null
  /** Ids of the turns in progress. */
  readonly turnIds: ReadonlyArray<string>
  readonly turns: number
  readonly turnErrors: number
  /** Number of permanent stops. Several stops with one cause count once, and so do several stops of one agent. */
  readonly fatalStops: number
  /** The most recent permanent stops; absent if there are none. */
  readonly stopped?: ReadonlyArray<{ readonly agentId: string; readonly cause: string }>
  /** Why the conversation is suspended; null if it is not. */
  readonly suspension: { readonly reason: string; readonly budgetInfo: unknown } | null
  /** The user who paused or closed the conversation, and the reason; null if it is neither paused nor closed. */
  readonly because: { readonly by: string; readonly reason: string } | null
}

export const initial = (limits: Limits = defaultLimits): Data => ({
  limits,
  conversationId: null,
  rootAgentId: null,
  turnIds: [],
  turns: 0,
  turnErrors: 0,
  fatalStops: 0,
  suspension: null,
  because: null
})

export const kinds = [
  "session.created",
  "session.activated",
  "session.moved",
  "session.paused",
  "session.resumed",
  "session.suspended",
  "session.unsuspended",
  "session.closing",
  "session.closed",
  "session.archived"
] as const
export type Kind = (typeof kinds)[number]

const update = on<Event, Data>()

/** Describes the error limit that was reached; undefined if none was. */
export const erringBy = (
  { fatalStops, turnErrors }: Pick<Data, "fatalStops" | "turnErrors">,
  limits: Limits
): string | undefined => {
  if (limits.maxTurnErrors !== null && turnErrors >= limits.maxTurnErrors) {
    return `${turnErrors} turns in a row ended with an error`
  }
  return fatalStops >= limits.maxFatalStops
    ? `${fatalStops} agents stopped permanently, each for a different reason`
    : undefined
}

const erring = (data: Data): boolean => erringBy(data, data.limits) !== undefined

/** Sets the reason for a suspension if a counter has reached its limit. */
const counted = (data: Data): Data => {
  const reason = erringBy(data, data.limits)
  return reason === undefined ? data : { ...data, suspension: { reason, budgetInfo: null } }
}

/** Maximum number of permanent stops whose causes are compared. */
const MAX_STOPPED = 100

const failing = (data: Data, { agentId, cause }: Extract<Event, { readonly _tag: "agent_failed" }>): Data => {
  if (cause === undefined) return { ...data, fatalStops: data.fatalStops + 1 }
  const { stopped = [] } = data
  const isKnown = stopped.some((one) => one.agentId === agentId || one.cause === cause)
  return {
    ...data,
    fatalStops: data.fatalStops + (isKnown ? 0 : 1),
    stopped: [...stopped, { agentId, cause }].slice(-MAX_STOPPED)
  }
}

const turnErrors = { completed: () => 0, interrupted: (n: number) => n, error: (n: number) => n + 1 } as const

const isCount = (value: unknown): value is number => typeof value === "number" && Number.isInteger(value) && value > 0

/**
 * Reads the limits from a config. If a limit is missing, it does not change. The rune contains the limits, so the state
 * can be rebuilt without the config.
 */
const limitsIn = (config: unknown, { limits }: Data): Limits => {
  const said: Partial<Record<keyof Limits, unknown>> =
    typeof config === "object" && config !== null && "limits" in config && typeof config.limits === "object"
      ? (config.limits ?? {})
      : {}
  return {
    maxFatalStops: isCount(said.maxFatalStops) ? said.maxFatalStops : limits.maxFatalStops,
    maxTurnErrors:
      isCount(said.maxTurnErrors) || said.maxTurnErrors === null ? said.maxTurnErrors : limits.maxTurnErrors
  }
}

const reasonOf = (event: Event): string | null => ("reason" in event ? event.reason : null)

/** Transitions of states in which a running turn can still end and an agent can still fail. */
const ending = (state: "paused" | "suspended" | "closing") => ({
  turn_completed: to(state, { set: "endTurn" }),
  agent_failed: to(state, { set: "failAgent" })
})
const close = to("closing", { set: "hold", rune: "session.closing" })
const unsuspend = to("active", { set: "reset", rune: "session.unsuspended", act: ["ResetBudget", "DrainQueues"] })

const requests = ["pause_requested", "resume_requested", "budget_replenished", "reset"] as const
const signals = ["first_message", "agent_ready", "new_turn", "budget_exhausted", "error_threshold"] as const
const endings = ["turn_completed", "agent_failed"] as const

export const Conversation = define<State, Event, Data, Action, Kind>()({
  name: "conversation",
  initial: "[*]",
  final: ["archived"],
  rune: "session.moved",
  fenced: (data, event) =>
    (event._tag === "turn_completed" && !data.turnIds.includes(event.turnId)) ||
    (event._tag === "new_turn" && data.turnIds.includes(event.turnId)),
  guards: {
    erring,
    interrupting: (_, event) => event._tag === "pause_requested" && event.inFlight === "interrupt"
  },
  updates: {
    create: update("create_requested", (data, event) => ({
      ...data,
      limits: limitsIn(event.config, data),
      conversationId: event.conversationId,
      rootAgentId: event.rootAgentId
    })),
    startTurn: update("new_turn", (data, event) => ({
      ...data,
      turnIds: [...data.turnIds, event.turnId],
      turns: data.turns + 1
    })),
    endTurn: update("turn_completed", (data, event) => ({
      ...data,
      turnIds: data.turnIds.filter((turnId) => turnId !== event.turnId),
      turnErrors: turnErrors[event.outcome](data.turnErrors)
    })),
    countTurn: update("turn_completed", (data, event) =>
      counted({
        ...data,
        turnIds: data.turnIds.filter((turnId) => turnId !== event.turnId),
        turnErrors: turnErrors[event.outcome](data.turnErrors)
      })
    ),
    failAgent: update("agent_failed", failing),
    countAgent: update("agent_failed", (data, event) => counted(failing(data, event))),
    suspend: update(["budget_exhausted", "error_threshold"], (data, event) => ({
      ...data,
      suspension:
        event._tag === "error_threshold"
          ? { reason: event.reason, budgetInfo: null }
          : {
              reason: `the budget of ${event.resource} is spent`,
              budgetInfo: { resource: event.resource, spent: event.spent, limit: event.limit }
            }
    })),
    hold: update(["pause_requested", "close_requested"], (data, { by, reason }) => ({
      ...data,
      because: { by, reason }
    })),
    reset: (data, event) => ({
      ...Struct.omit(data, ["stopped"]),
      limits: event._tag === "budget_replenished" ? limitsIn(event.config, data) : data.limits,
      turnErrors: 0,
      fatalStops: 0,
      suspension: null,
      because: null
    })
  },
  actions: {
    InterruptTurns: (data) => ({ _tag: "InterruptTurns", turnIds: data.turnIds }),
    ResetBudget: () => ({ _tag: "ResetBudget" }),
    DrainQueues: () => ({ _tag: "DrainQueues" })
  },
  timers: {},
  fields: {
    "session.created": (data, event) => ({
      conversation_id: data.conversationId,
      config: event._tag === "create_requested" ? event.config : null
    }),
    "session.activated": (data) => ({ root_agent_id: data.rootAgentId }),
    "session.paused": (_, event) => ({ reason: reasonOf(event) }),
    "session.suspended": (data) => ({
      reason: data.suspension?.reason ?? null,
      budget_info: data.suspension?.budgetInfo ?? null
    }),
    "session.closing": (_, event) => ({ reason: reasonOf(event) }),
    "session.closed": (_, event) => ({ final_stats: event._tag === "cleanup_complete" ? event.stats : null })
  },
  states: {
    "[*]": {},
    created: { enter: "StartAgents" },
    active: { enter: "AnnounceAgents" },
    paused: { enter: "AnnounceAgents" },
    suspended: { enter: "AnnounceAgents" },
    closing: { enter: "StopAgents" },
    closed: { enter: "SealStream" },
    archived: { enter: "ArchiveStream" }
  },
  table: {
    "[*]": {
      ...illegal(...requests, ...signals, ...endings, "close_requested", "cleanup_complete", "archive_requested"),
      create_requested: to("created", { set: "create", rune: "session.created" })
    },
    created: {
      ...illegal("create_requested", ...requests, "cleanup_complete", "archive_requested"),
      ...illegal("new_turn", "turn_completed", "budget_exhausted", "error_threshold"),
      ...postpone("agent_failed"),
      first_message: to("active", { rune: "session.activated" }),
      agent_ready: to("active", { rune: "session.activated" }),
      close_requested: close
    },
    active: {
      ...illegal("create_requested", "cleanup_complete", "archive_requested"),
      ...stale("first_message", "agent_ready", "resume_requested", "budget_replenished", "reset"),
      new_turn: to("active", { set: "startTurn" }),
      turn_completed: {
        set: "countTurn",
        then: [{ to: "suspended", when: "erring", rune: "session.suspended" }, { to: "active" }]
      },
      agent_failed: {
        set: "countAgent",
        then: [{ to: "suspended", when: "erring", rune: "session.suspended" }, { to: "active" }]
      },
      pause_requested: {
        set: "hold",
        then: [
          { to: "paused", when: "interrupting", rune: "session.paused", act: ["InterruptTurns"] },
          { to: "paused", rune: "session.paused" }
        ]
      },
      // an exceeded budget interrupts all turns; after errors, other agents can finish their turns
      budget_exhausted: to("suspended", { set: "suspend", rune: "session.suspended", act: ["InterruptTurns"] }),
      error_threshold: to("suspended", { set: "suspend", rune: "session.suspended" }),
      close_requested: close
    },
    paused: {
      ...ending("paused"),
      ...illegal("create_requested", "new_turn", "cleanup_complete", "archive_requested"),
      ...stale("first_message", "agent_ready", "pause_requested", "budget_replenished", "reset"),
      ...postpone("budget_exhausted", "error_threshold"),
      resume_requested: to("active", { set: "reset", rune: "session.resumed", act: ["DrainQueues"] }),
      close_requested: close
    },
    suspended: {
      ...ending("suspended"),
      ...illegal("create_requested", "new_turn", "pause_requested", "cleanup_complete", "archive_requested"),
      ...stale("first_message", "agent_ready", "budget_exhausted", "error_threshold"),
      budget_replenished: unsuspend,
      reset: unsuspend,
      resume_requested: unsuspend,
      close_requested: close
    },
    closing: {
      ...ending("closing"),
      ...illegal("create_requested", "new_turn", ...requests, "archive_requested"),
      ...stale("first_message", "agent_ready", "budget_exhausted", "error_threshold", "close_requested"),
      cleanup_complete: to("closed", { rune: "session.closed" })
    },
    closed: {
      ...illegal("create_requested", ...requests),
      ...stale(...signals, ...endings, "close_requested", "cleanup_complete"),
      archive_requested: to("archived", { rune: "session.archived" })
    },
    archived: {
      ...illegal("create_requested", ...requests),
      ...stale(...signals, ...endings, "close_requested", "cleanup_complete", "archive_requested")
    }
  }
})
