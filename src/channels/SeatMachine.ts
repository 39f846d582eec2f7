/**
 * SeatMachine: the state machine of an agent's seat in one channel, including whether it has the floor there.
 *
 * Guarantees: only an ACTIVE seat may speak. Events of an earlier turn have no effect. A turn without a sign of life,
 * and a wait without an answer, time out. Only the channel grants the floor, so that at most one seat is ACTIVE.
 */
import { Schema } from "effect"
import type { Departure } from "../domain/AgentPort.ts"
import { define, illegal, on, stale, to } from "../core/event-actor/StateMachine.ts"

export type State = "OFFLINE" | "IDLE" | "QUEUED" | "ACTIVE" | "WAITING"

const turnId = Schema.String

/**
 * The condition that ends a wait before its deadline: any message in the channel, a user's message in it, or a time (ms
 * since the epoch).
 */
export const Until = Schema.Union([
  Schema.TaggedStruct("Message", {}),
  Schema.TaggedStruct("Person", {}),
  Schema.TaggedStruct("Time", { at: Schema.Finite })
])
export type Until = typeof Until.Type

export const Event = Schema.Union([
  /** The agent is online. An agent's presence is reported to each of its seats. */
  Schema.TaggedStruct("AgentStarted", {}),
  Schema.TaggedStruct("AgentLeft", { how: Schema.Literals(["stopped", "disconnected", "crashed"]) }),
  Schema.TaggedStruct("Assigned", {}),
  Schema.TaggedStruct("Removed", { by: Schema.String }),
  Schema.TaggedStruct("TurnGranted", { turnId, at: Schema.Finite }),
  /**
   * The turn is over. `solo`: no other agent is in the turn queue. `detected`: no signal came, but the agent has been
   * silent for a while.
   */
  Schema.TaggedStruct("TURN_COMPLETE", {
    turnId,
    solo: Schema.Boolean,
    detected: Schema.optional(Schema.Boolean)
  }),
  /** The turn ends without a result: it failed, a user ended it, or no turn began with the prompt (`untold`). */
  Schema.TaggedStruct("TurnFailed", { turnId, reason: Schema.String, untold: Schema.optional(Schema.Boolean) }),
  /**
   * The turn's run has produced output, which is reported at most every few seconds. `beganAt`: new start of the time
   * limit, if a user caused part of the delay.
   */
  Schema.TaggedStruct("SignOfLife", { turnId, at: Schema.Finite, beganAt: Schema.optional(Schema.Finite) }),
  /** The turn has reached its time limit. `untold`: until then, no turn had begun with the prompt. */
  Schema.TaggedStruct("TurnTimedOut", { turnId, untold: Schema.optional(Schema.Boolean) }),
  Schema.TaggedStruct("WaitRequested", {
    turnId,
    reason: Schema.String,
    timeout: Schema.optional(Schema.Finite),
    until: Schema.optional(Until)
  }),
  Schema.TaggedStruct("WaitResolved", { turnId, floorFree: Schema.Boolean, at: Schema.Finite }),
  Schema.TaggedStruct("WaitTimedOut", { turnId }),
  Schema.TaggedStruct("HumanOverride", {
    by: Schema.String,
    to: Schema.Literals(["QUEUED", "ACTIVE"]),
    at: Schema.Finite
  }),
  /** A new post has arrived in the channel. The event does not contain its text. */
  Schema.TaggedStruct("MessageArrived", { messageId: Schema.String })
])
export type Event = typeof Event.Type

/**
 * Actions of a state change. ChannelState applies those that change the channel (registered agents, the turn queue), as
 * part of the fold. ChannelTransaction handles those that post a notice or send the agent a message.
 */
export type Action =
  /** The agent is online: its seat is registered in the channel. */
  | { readonly _tag: "RegisterSeat" }
  /** The agent has left. After a failure it is no longer assigned to the channel, unless the setting `rejoin` is on. */
  | { readonly _tag: "DeregisterSeat"; readonly how: Departure }
  /** The seat joins the queue at the end. */
  | { readonly _tag: "JoinQueue" }
  /** The seat leaves the queue. If it has the floor, it loses it. */
  | { readonly _tag: "LeaveQueue" }
  /** The seat gets the floor, and its agent is sent the unread posts. */
  | { readonly _tag: "NotifyAgent"; readonly turnId: string | null }
  /** The turn is over: the seat goes to the end of the queue, and the floor is free. */
  | { readonly _tag: "AdvanceQueue" }
  /** The wait is over, but another seat has the floor: this seat is next. */
  | { readonly _tag: "ClaimFloor"; readonly turnId: string | null }
  /** The seat keeps its position in the queue, and the floor is free. */
  | { readonly _tag: "PauseTurn"; readonly turnId: string | null }
  /** The seat gets the floor again, and its agent is sent the unread posts. */
  | { readonly _tag: "ResumeTurn"; readonly turnId: string | null }
  /** Withdraws the prompt that was sent to the agent. If the agent's turn has begun with the prompt, ends the turn. */
  | { readonly _tag: "InterruptTurn"; readonly turnId: string | null }
  /** Posts a notice in the channel, if the channel's config enables such notices. */
  | { readonly _tag: "PostNotice"; readonly text: string }

export interface Data {
  readonly agentId: string
  readonly channel: string
  readonly member: boolean
  /** Id of the current turn or of the paused one; otherwise of the last one. */
  readonly turnId: string | null
  /** Time of the turn's last sign of life, ms since the epoch. */
  readonly aliveAt: number | null
  /** Time from which the time limit for the floor counts, ms since the epoch. Undefined in runes of an older daemon. */
  readonly beganAt?: number
  readonly wait: {
    readonly reason: string
    readonly timeout: number
    readonly until: Until
    readonly resolved: boolean
  } | null
  readonly limits: Limits
}

/** Time limits, in ms. */
export interface Limits {
  /** Maximum time of a turn without a sign of life. */
  readonly turnTimeout: number
  readonly waitTimeout: number
}

export const defaultLimits: Limits = { turnTimeout: 60_000, waitTimeout: 300_000 }

export const initial = (agentId: string, channel: string, limits: Limits = defaultLimits): Data => ({
  agentId,
  channel,
  member: false,
  turnId: null,
  aliveAt: null,
  wait: null,
  limits
})

export const kinds = ["seat.moved"] as const
export type Kind = (typeof kinds)[number]

/**
 * The rights of an agent, by the state of its seat. `receives`: "yes" means that it gets posts at once; "observes",
 * that it gets them with its next turn, and that they can end its wait; "no", that it gets none. `responds`: whether
 * its answers are posted. `inQueue`: its position in the turn queue.
 */
export const properties = {
  OFFLINE: { receives: "no", responds: false, inQueue: "no" },
  IDLE: { receives: "no", responds: false, inQueue: "no" },
  QUEUED: { receives: "observes", responds: false, inQueue: "yes" },
  ACTIVE: { receives: "yes", responds: true, inQueue: "current" },
  WAITING: { receives: "observes", responds: false, inQueue: "paused" }
} as const satisfies {
  readonly [s in State]: {
    readonly receives: "no" | "observes" | "yes"
    readonly responds: boolean
    readonly inQueue: "no" | "yes" | "current" | "paused"
  }
}

/** The ways in which a user's message can affect the turn in progress. */
export const INTERRUPT_MODES = ["queue", "interrupt", "inject", "parallel"] as const
export const DEFAULT_INTERRUPT_MODE: (typeof INTERRUPT_MODES)[number] = "inject"

const SIGNAL = "TURN_COMPLETE"

/**
 * Splits an answer into its text and the signal that ends the turn. The signal is the last line, on its own:
 * `/(^|\n)\s*TURN_COMPLETE\s*$/`, matched in linear time.
 */
export const readAnswer = (text: string): { readonly complete: boolean; readonly text: string } => {
  const body = text.trimEnd()
  const before = body.slice(0, -SIGNAL.length)
  const rest = before.trimEnd()
  const isAlone = rest === "" || before.slice(rest.length).includes("\n")
  return body.endsWith(SIGNAL) && isAlone ? { complete: true, text: rest } : { complete: false, text }
}

export const logLine = (
  data: Pick<Data, "agentId" | "channel">,
  move: {
    readonly at: number
    readonly from: string | null
    readonly to: string | null
    readonly trigger: string | null
  }
) => ({
  timestamp: new Date(move.at).toISOString(),
  event: "state_transition",
  agentId: data.agentId,
  from: move.from,
  to: move.to,
  trigger: move.trigger,
  channel: data.channel
})

const update = on<Event, Data>()

const rest = { aliveAt: null, wait: null } as const
const leave = to("OFFLINE", { set: "leave", act: ["LeaveQueue", "DeregisterSeat"] })
const turnEvents = ["TURN_COMPLETE", "TurnFailed", "SignOfLife", "TurnTimedOut", "WaitRequested"] as const
const waitEvents = ["WaitResolved", "WaitTimedOut"] as const

export const Seat = define<State, Event, Data, Action, Kind>()({
  name: "seat",
  initial: "OFFLINE",
  final: [],
  rune: "seat.moved",
  fenced: (data, event) => {
    if (event._tag === "MessageArrived") return !data.member
    // a waiting seat can get the floor only after its wait is resolved
    if (event._tag === "TurnGranted") return data.wait !== null && !data.wait.resolved
    return "turnId" in event && event.turnId !== data.turnId
  },
  guards: {
    solo: (_, event) => event._tag === "TURN_COMPLETE" && event.solo,
    floorFree: (_, event) => event._tag === "WaitResolved" && event.floorFree,
    toActive: (_, event) => event._tag === "HumanOverride" && event.to === "ACTIVE",
    failed: (_, event) => event._tag === "AgentLeft" && event.how !== "stopped"
  },
  updates: {
    join: (data) => ({ ...data, member: true }),
    leave: (data) => ({ ...data, ...rest, member: false }),
    grant: update("TurnGranted", (data, event) => ({
      ...data,
      turnId: event.turnId,
      aliveAt: event.at,
      beganAt: event.at,
      wait: null
    })),
    yield: (data) => ({ ...data, ...rest }),
    live: update("SignOfLife", (data, { at, beganAt }) => ({
      ...data,
      aliveAt: at,
      ...(beganAt === undefined ? {} : { beganAt })
    })),
    wait: update("WaitRequested", (data, event) => ({
      ...data,
      wait: {
        reason: event.reason,
        timeout: event.timeout ?? data.limits.waitTimeout,
        until: event.until ?? { _tag: "Message" },
        resolved: false
      }
    })),
    resolve: update("WaitResolved", (data, event) => ({
      ...data,
      aliveAt: event.at,
      beganAt: event.at,
      wait: event.floorFree || data.wait === null ? null : { ...data.wait, resolved: true }
    })),
    override: update("HumanOverride", (data, event) =>
      event.to === "ACTIVE" ? { ...data, aliveAt: event.at, beganAt: event.at, wait: null } : { ...data, ...rest }
    )
  },
  actions: {
    RegisterSeat: () => ({ _tag: "RegisterSeat" }),
    DeregisterSeat: (_, event) => ({
      _tag: "DeregisterSeat",
      how: event._tag === "AgentLeft" ? event.how : "stopped"
    }),
    JoinQueue: () => ({ _tag: "JoinQueue" }),
    LeaveQueue: () => ({ _tag: "LeaveQueue" }),
    NotifyAgent: (data) => ({ _tag: "NotifyAgent", turnId: data.turnId }),
    AdvanceQueue: () => ({ _tag: "AdvanceQueue" }),
    ClaimFloor: (data) => ({ _tag: "ClaimFloor", turnId: data.turnId }),
    PauseTurn: (data) => ({ _tag: "PauseTurn", turnId: data.turnId }),
    ResumeTurn: (data) => ({ _tag: "ResumeTurn", turnId: data.turnId }),
    InterruptTurn: (data) => ({ _tag: "InterruptTurn", turnId: data.turnId }),
    PostNotice: (data, event) => ({
      _tag: "PostNotice",
      text:
        event._tag === "AgentLeft"
          ? `⚠ ${data.agentId} disconnected, skipping turn`
          : `⏱ ${data.agentId} turn timed out`
    })
  },
  timers: {
    turn: {
      after: (data, at) => (data.aliveAt ?? at) + data.limits.turnTimeout - at,
      fires: (data) => ({ _tag: "TurnTimedOut", turnId: data.turnId ?? "" })
    },
    wait: {
      after: (data) => (data.wait === null || data.wait.resolved ? Infinity : data.wait.timeout),
      fires: (data) => ({ _tag: "WaitTimedOut", turnId: data.turnId ?? "" })
    }
  },
  fields: { "seat.moved": (data) => ({ agentId: data.agentId, channel: data.channel }) },
  states: {
    OFFLINE: {},
    IDLE: {},
    QUEUED: {},
    ACTIVE: { timeout: "turn" },
    WAITING: { timeout: "wait" }
  },
  table: {
    OFFLINE: {
      ...illegal("Assigned", "TurnGranted", "HumanOverride"),
      ...stale(...turnEvents, ...waitEvents, "AgentLeft", "Removed", "MessageArrived"),
      AgentStarted: to("IDLE", { act: ["RegisterSeat"] })
    },
    IDLE: {
      ...illegal("TurnGranted", "HumanOverride"),
      ...stale(...turnEvents, ...waitEvents, "AgentStarted"),
      Assigned: to("QUEUED", { set: "join", act: ["JoinQueue"] }),
      MessageArrived: to("QUEUED", { act: ["JoinQueue"] }),
      Removed: to("IDLE", { set: "leave" }),
      AgentLeft: to("OFFLINE", { set: "leave", act: ["DeregisterSeat"] })
    },
    QUEUED: {
      ...illegal("HumanOverride"),
      ...stale(...turnEvents, ...waitEvents, "AgentStarted", "Assigned", "MessageArrived"),
      TurnGranted: to("ACTIVE", { set: "grant", act: ["NotifyAgent"] }),
      Removed: to("IDLE", { set: "leave", act: ["LeaveQueue"] }),
      AgentLeft: leave
    },
    ACTIVE: {
      ...illegal("TurnGranted"),
      ...stale(...waitEvents, "AgentStarted", "Assigned", "MessageArrived"),
      SignOfLife: to("ACTIVE", { set: "live" }),
      TURN_COMPLETE: {
        set: "yield",
        then: [
          { to: "IDLE", when: "solo", act: ["LeaveQueue"] },
          { to: "QUEUED", act: ["AdvanceQueue"] }
        ]
      },
      TurnFailed: to("QUEUED", { set: "yield", act: ["AdvanceQueue"] }),
      TurnTimedOut: to("QUEUED", { set: "yield", act: ["InterruptTurn", "PostNotice", "AdvanceQueue"] }),
      HumanOverride: {
        set: "override",
        then: [
          { to: "ACTIVE", when: "toActive" },
          { to: "QUEUED", act: ["InterruptTurn", "AdvanceQueue"] }
        ]
      },
      WaitRequested: to("WAITING", { set: "wait", act: ["PauseTurn"] }),
      Removed: to("IDLE", { set: "leave", act: ["InterruptTurn", "AdvanceQueue", "LeaveQueue"] }),
      AgentLeft: {
        set: "leave",
        then: [
          { to: "OFFLINE", when: "failed", act: ["AdvanceQueue", "LeaveQueue", "DeregisterSeat", "PostNotice"] },
          { to: "OFFLINE", act: ["AdvanceQueue", "LeaveQueue", "DeregisterSeat"] }
        ]
      }
    },
    WAITING: {
      ...stale(...turnEvents, "AgentStarted", "Assigned", "MessageArrived"),
      TurnGranted: to("ACTIVE", { set: "grant", act: ["ResumeTurn"] }),
      WaitResolved: {
        set: "resolve",
        then: [
          { to: "ACTIVE", when: "floorFree", act: ["ResumeTurn"] },
          { to: "WAITING", act: ["ClaimFloor"] }
        ]
      },
      WaitTimedOut: to("QUEUED", { set: "yield", act: ["InterruptTurn", "AdvanceQueue"] }),
      HumanOverride: {
        set: "override",
        then: [
          { to: "ACTIVE", when: "toActive", act: ["ResumeTurn"] },
          { to: "QUEUED", act: ["InterruptTurn", "AdvanceQueue"] }
        ]
      },
      Removed: to("IDLE", { set: "leave", act: ["InterruptTurn", "LeaveQueue"] }),
      AgentLeft: leave
    }
  }
})
