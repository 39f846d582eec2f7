/**
 * WorkerMachine: the loop that starts and watches one agent's runs. It prepares a worktree, builds a prompt, spawns a
 * run, watches the run and waits after an error. It stops permanently when its limits are reached.
 *
 * Guarantees: A failed run is counted once. Events of an older run change nothing. A run counts as started only after
 * it has reported its start.
 */
import { Schema, Struct } from "effect"
import { Outcome, type UncountedReason } from "../../runs/Outcome.ts"
import { isNear } from "../../domain/ErrorLimit.ts"
import * as Backoff from "../../core/supervision/Backoff.ts"
import type { Said } from "../../core/event-log/EventKinds.ts"
import { readTurn } from "./TurnKinds.ts"
import { define, illegal, on, postpone, stale, to } from "../../core/event-actor/StateMachine.ts"

export type State =
  | "Initializing"
  | "BuildingPrompt"
  | "Spawning"
  | "Running"
  | "Interrupting"
  | "SessionComplete"
  | "CoolingDown"
  | "Stopped"

/** Limits from the config. */
export const Terms = Schema.Struct({
  limits: Schema.Struct({ maxConsecutiveErrors: Schema.Finite, maxTotalErrors: Schema.Finite }),
  /** Waits between runs after errors; durations in ms. */
  backoff: Schema.Struct({
    base: Schema.Finite,
    factor: Schema.Finite,
    cap: Schema.Finite,
    jitter: Schema.Finite,
    by: Schema.optionalKey(Schema.Literals(["failures", "streak"]))
  }),
  maxRunsPerHour: Schema.NullOr(Schema.Finite)
})
export type Terms = typeof Terms.Type

/** A block of ports: `count` ports from `first` on. */
export const PortBlock = Schema.Struct({ first: Schema.Int, count: Schema.Int })
export type PortBlock = typeof PortBlock.Type

export const Event = Schema.Union([
  /** `ports`: the ports that only this agent has; omitted if its config asks for none. */
  Schema.TaggedStruct("WorktreeReady", {
    cwd: Schema.String,
    branch: Schema.optional(Schema.String),
    ports: Schema.optionalKey(PortBlock)
  }),
  /** The agent has other ports from now on. */
  Schema.TaggedStruct("PortsGiven", { ports: PortBlock }),
  Schema.TaggedStruct("PromptReady", {
    prompt: Schema.String,
    runId: Schema.String,
    messageIds: Schema.Array(Schema.String),
    /** When the prompt was ready, ms since the epoch. */
    at: Schema.Finite,
    /**
     * The backend of the run. Set only if this backend or the previous one is a fallback. `because`: why the backend
     * changed.
     */
    fallback: Schema.optional(
      Schema.Struct({
        index: Schema.Int,
        because: Schema.optional(Schema.String),
        /** True if the run continues the session of the previous backend. */
        keeps: Schema.optional(Schema.Boolean)
      })
    ),
    /** Limits in the current config; omitted if the worker already uses them. */
    terms: Schema.optional(Terms)
  }),
  Schema.TaggedStruct("SessionStarted", {
    runId: Schema.String,
    seq: Schema.Int,
    pid: Schema.optional(Schema.Int),
    sessionId: Schema.optional(Schema.String)
  }),
  /** `worked`: true if a turn of the run got an answer. `died`: true if its process died between two turns. */
  Schema.TaggedStruct("SessionExited", {
    runId: Schema.String,
    outcome: Outcome,
    worked: Schema.optionalKey(Schema.Boolean),
    died: Schema.optionalKey(Schema.Boolean)
  }),
  /**
   * Announces an urgent message; its text is in the inbox. `messageId` null: the user ends the run, and its messages
   * are dropped. `runId`: the run to end; omitted only in older logs.
   */
  Schema.TaggedStruct("UrgentMessage", {
    messageId: Schema.NullOr(Schema.String),
    runId: Schema.optional(Schema.String)
  }),
  Schema.TaggedStruct("GraceExceeded", { runId: Schema.String }),
  Schema.TaggedStruct("BackoffElapsed", {}),
  /** Wakes a worker that is waiting for work. */
  Schema.TaggedStruct("WorkArrived", { messageId: Schema.optional(Schema.String) }),
  Schema.TaggedStruct("OperatorStop", { by: Schema.String, reason: Schema.optional(Schema.String) }),
  Schema.TaggedStruct("FatalError", { message: Schema.String, remedy: Schema.optional(Schema.String) })
])
export type Event = typeof Event.Type

/**
 * The event that a turn's rune causes in this machine: a run starts or ends together with the turn. Undefined for other
 * runes.
 */
export const joins = (rune: Said): Event | undefined => {
  const event = readTurn(rune)?.payload.event
  if (rune.kind === "turn.started" && event?._tag === "start_turn" && event.run !== undefined) {
    return { _tag: "SessionStarted", runId: event.turnId, ...event.run }
  }
  if (rune.kind !== "turn.completed" || event?._tag !== "response_done" || event.exit === undefined) return undefined
  return { _tag: "SessionExited", runId: event.exit.runId, outcome: { _tag: "Success" }, worked: true }
}

export const seqIn = (rune: Said): number | undefined => {
  const event = readTurn(rune)?.payload.event
  if (event?._tag === "start_turn") return event.run?.seq
  return event?._tag === "response_done" ? event.exit?.seq : undefined
}

export type Action =
  | { readonly _tag: "StorePrompt"; readonly prompt: string; readonly runId: string }
  | { readonly _tag: "IncrementSession"; readonly sessionSeq: number }
  /**
   * Ends the run in this order: interrupt, grace period, SIGTERM to the process group, grace period, SIGKILL to all
   * processes.
   */
  | { readonly _tag: "CancelSession"; readonly runId: string | null }
  | { readonly _tag: "ForceStopSession"; readonly runId: string | null }
  | { readonly _tag: "LogFatal"; readonly message: string; readonly remedy: string }

export interface Data {
  /** An agent in mode `loop` always has work; an agent in mode `inbox` waits for messages. */
  readonly mode: "inbox" | "loop"
  readonly limits: Backoff.Limits
  /** `by`: which counter determines the wait: `failures` since the last answer (default), or consecutive errors. */
  readonly backoff: Terms["backoff"]
  readonly graceMillis: number
  readonly cwd: string | null
  readonly branch: string | null
  /** The ports that only this agent has; absent if it has none. */
  readonly ports?: PortBlock
  readonly sessionSeq: number
  /** Id of the run that is spawning or alive; null if there is none. */
  readonly runId: string | null
  readonly pid: number | null
  /** The backend's session id of the last run, for backends that can resume a session. */
  readonly sessionId: string | null
  /** Index of the newest run's backend. 0 or absent: the agent's own backend. */
  readonly fallback?: number
  /** Session ids of the other backends, by the backend's index. */
  readonly sessions?: { readonly [index: string]: string | null }
  /** The prompt of the run that is spawning; null if none is. */
  readonly prompt: string | null
  /**
   * Ids of the messages in the newest prompt. Kept until a run ends successfully, so that interrupted work can
   * continue.
   */
  readonly messageIds: ReadonlyArray<string>
  /** Why the newest run ended early, for the next prompt; null if the run ended successfully. */
  readonly cutShort: string | null
  /** When the newest prompt was ready, ms since the epoch. */
  readonly lastRunAt: number | null
  /** Maximum number of runs per hour; null if there is no limit. */
  readonly maxRunsPerHour: number | null
  /** Start times of runs in the last hour. Only as many are kept as the limit needs. */
  readonly recentRuns: ReadonlyArray<number>
  readonly consecutiveErrors: number
  readonly totalErrors: number
  /**
   * Number of failed runs and provider outages since a turn last got an answer. A new run does not reset the number.
   */
  readonly failures: number
  readonly lastError: string | null
  /**
   * Number of consecutive ends that are not errors by themselves. Ends caused by quotas, outages, logins and stops of
   * agentd are not included.
   */
  readonly uncounted: { readonly reason: UncountedReason | null; readonly count: number }
  /** Number of consecutive runs that were lost because agentd ended, without an answer. Absent if there are none. */
  readonly taken?: number
  /** True if the process of the last run died between two turns. */
  readonly died?: boolean
  /**
   * When the worker may continue after an end that is not an error, ms since the epoch; 0 if unknown. Null after an
   * error, and after an outage whose end is unknown.
   */
  readonly uncountedUntil: number | null
  /** Why the worker stopped permanently, and the remedy; null if it did not, or if an operator stopped it. */
  readonly fatal: { readonly message: string; readonly remedy: string } | null
  readonly stoppedBy: string | null
}

/**
 * Number of consecutive ends, none of them an error by itself, that together count as one error. Ends caused by quotas,
 * outages, logins and stops of agentd are exempt.
 */
export const UNCOUNTED_LIMIT = 5
/**
 * Number of consecutive times that agentd must end during an unanswered run of this agent before the agent is stopped,
 * because its runs might be what ends agentd.
 */
export const TAKEN_LIMIT = 20

export type Options = Partial<Pick<Data, "mode" | "limits" | "backoff" | "graceMillis" | "maxRunsPerHour">>

export const initial = (options: Options = {}): Data => ({
  mode: options.mode ?? "inbox",
  limits: options.limits ?? Backoff.defaultLimits,
  backoff: options.backoff ?? Backoff.defaultPolicy,
  graceMillis: options.graceMillis ?? 10_000,
  cwd: null,
  branch: null,
  sessionSeq: 0,
  runId: null,
  pid: null,
  sessionId: null,
  prompt: null,
  messageIds: [],
  cutShort: null,
  lastRunAt: null,
  maxRunsPerHour: options.maxRunsPerHour ?? null,
  recentRuns: [],
  consecutiveErrors: 0,
  totalErrors: 0,
  failures: 0,
  lastError: null,
  uncounted: { reason: null, count: 0 },
  uncountedUntil: null,
  fatal: null,
  stoppedBy: null
})

export const kinds = ["worker.moved"] as const
export type Kind = (typeof kinds)[number]

const update = on<Event, Data>()

const placed = (data: Data, event: Extract<Event, { readonly _tag: "WorktreeReady" }>): Data => ({
  ...Struct.omit(data, ["ports"]),
  cwd: event.cwd,
  branch: event.branch ?? null,
  ...(event.ports === undefined ? {} : { ports: event.ports })
})

const gone = (data: Data, cutShort: string | null): Data => ({
  ...data,
  runId: null,
  pid: null,
  prompt: null,
  cutShort
})

/**
 * Selects the session for a new backend: the last session of this backend, or that of the previous backend if they
 * share sessions.
 */
const movedTo = (
  data: Data,
  { index, keeps }: { readonly index: number; readonly keeps?: boolean | undefined }
): Data => {
  const { fallback = 0, sessionId, sessions = {} } = data
  if (index === fallback) return data
  if (keeps === true) return { ...data, fallback: index }
  return {
    ...data,
    fallback: index,
    sessionId: sessions[index] ?? null,
    sessions: { ...sessions, [fallback]: sessionId }
  }
}

const HOUR = 3_600_000

/** Start times of runs in the last hour, including `at`. Only as many are kept as the limit needs. */
const recent = (data: Data, at: number): ReadonlyArray<number> =>
  data.maxRunsPerHour === null
    ? []
    : [...data.recentRuns.filter((run) => run > at - HOUR), at].slice(-data.maxRunsPerHour)

/** Current limits on the starts of runs: minimum interval in ms, and maximum number per hour. */
export interface Spacing {
  readonly interval: number
  readonly maxRunsPerHour: number | null
}

/** When the next run may start, ms since the epoch. Start times in the future are ignored: the clock was set back. */
export const dueAt = ({ lastRunAt, recentRuns }: Data, { interval, maxRunsPerHour }: Spacing, now: number): number => {
  const spaced = lastRunAt === null ? 0 : lastRunAt + interval
  const first = maxRunsPerHour === null ? undefined : recentRuns.filter((at) => at <= now).at(-maxRunsPerHour)
  return first === undefined ? spaced : Math.max(spaced, first + HOUR)
}

/** Adds one failure, which makes later waits longer. */
const stumbled = (data: Data): Data => ({ ...data, failures: data.failures + 1 })

/** Resets the count of runs that were lost because agentd ended. */
const untaken: (data: Data) => Data = Struct.omit(["taken"])

/** Forgets that the process of an earlier run died. */
const alive: (data: Data) => Data = Struct.omit(["died"])

const isTaken = (event: Event): boolean =>
  event._tag === "SessionExited" && event.outcome._tag === "Uncounted" && event.outcome.reason === "taken"

/** Resets the failure counts if the run has given an answer. */
const worked = (data: Data, event: Event): Data =>
  event._tag === "SessionExited" && event.worked === true ? { ...untaken(data), failures: 0 } : data

const failed = (data: Data, detail: string): Data => {
  const counted = {
    ...data,
    consecutiveErrors: data.consecutiveErrors + 1,
    totalErrors: data.totalErrors + 1,
    lastError: detail,
    uncounted: { reason: null, count: 0 },
    uncountedUntil: null
  }
  return Backoff.exhausted(data.limits, counted) ? { ...counted, fatal: giveUp(counted) } : counted
}

const giveUp = (data: Data) => ({
  message:
    data.consecutiveErrors >= data.limits.maxConsecutiveErrors
      ? `${data.consecutiveErrors} errors in a row; the last: ${data.lastError}`
      : `${data.totalErrors} errors in total; the last: ${data.lastError}`,
  // recorded logs fold to this text
  remedy: "Fix what the last error names, then start the agent again."
})

/** The reason why the run ended; null if it ended successfully. */
const reasonOf = (outcome: Outcome): string | null => {
  switch (outcome._tag) {
    case "Success":
      return null
    case "Timeout":
      return "the run took longer than its time limit"
    case "Uncounted":
      if (outcome.reason === "unavailable") return "its provider was unavailable"
      if (outcome.reason === "auth") return "its login was refused"
      // older versions of agentd used "lost" for "taken", too
      if (outcome.reason === "lost") return "it is unknown how it ended"
      if (outcome.reason === "taken") return "agentd ended while it ran"
      return `${outcome.reason} ended it`
    default:
      return outcome.detail
  }
}

/** Counts an end that is not an error by itself. Too many of these in a row are an error. */
const uncount = (data: Data, reason: UncountedReason, until: number | undefined): Data => {
  const count = data.uncounted.count + 1
  return count >= UNCOUNTED_LIMIT
    ? failed(data, `${count} runs in a row ended without a result (${reason})`)
    : { ...data, uncounted: { reason, count }, uncountedUntil: until ?? 0 }
}

/**
 * Counts a run that was lost because agentd ended. That is no error of the agent, but the waits grow, because the run
 * itself may be what ends agentd each time.
 */
const take = (data: Data, { taken = 0 }: Data): Data => {
  const count = taken + 1
  const next = { ...data, taken: count, uncountedUntil: null }
  if (count < TAKEN_LIMIT) return next
  const message = `agentd ended ${count} times during a run of this agent, and none of those runs had answered`
  return {
    ...next,
    fatal: { message, remedy: "See agentd's own log for the reason. Then start the agent again." }
  }
}

/** Ends a run in `Spawning` or `Running`. The outcome determines which counters change. */
const counted = (before: Data, outcome: Outcome): Data => {
  const data = untaken(gone(before, reasonOf(outcome)))
  switch (outcome._tag) {
    case "Success":
      return {
        ...data,
        messageIds: [],
        consecutiveErrors: 0,
        uncounted: { reason: null, count: 0 },
        uncountedUntil: null
      }
    case "Error":
      return failed(stumbled(data), outcome.detail)
    case "Timeout":
      return failed(stumbled(data), data.cutShort ?? "")
    case "Fatal":
      return { ...data, lastError: outcome.detail, fatal: { message: outcome.detail, remedy: outcome.remedy } }
    case "Uncounted": {
      const { reason, until } = outcome
      if (reason === "quota") return { ...data, uncountedUntil: until ?? 0 }
      if (reason === "taken") return take(data, before)
      if (reason === "unavailable" || reason === "auth") return { ...stumbled(data), uncountedUntil: until ?? null }
      // a session whose context is full cannot be continued
      if (reason === "overflow") return uncount({ ...data, sessionId: null }, reason, until)
      return uncount(data, reason, until)
    }
  }
}

/**
 * Wait after a run's end, ms. Depends on the consecutive errors or on the failures, whichever are more; a start resets
 * only the errors.
 */
const cooldown = (data: Data, at: number): number => {
  const { backoff, cwd, limits, taken = 0, totalErrors, uncountedUntil } = data
  if (uncountedUntil !== null) return Math.max(backoff.base, uncountedUntil - at)
  const failures = backoff.by === "streak" ? 0 : data.failures
  const counters = { ...data, failures: Math.max(failures, taken) }
  return Backoff.delay(backoff, limits, counters, `${cwd}#${totalErrors}`) ?? 0
}

const ended = (event: Event): Outcome["_tag"] | undefined =>
  event._tag === "SessionExited" ? event.outcome._tag : undefined

const exited = {
  set: "count",
  then: [
    { to: "SessionComplete", when: "succeeded" },
    { to: "Stopped", when: "fatal", act: ["LogFatal"] },
    { to: "Stopped", when: "exhausted", act: ["LogFatal"] },
    { to: "CoolingDown" }
  ]
} as const

/** Transitions that all states except the final one have. States with a run that must be ended use `live`. */
const always = {
  OperatorStop: to("Stopped", { set: "stop" }),
  FatalError: to("Stopped", { set: "fail", act: ["LogFatal"] })
}
const live = {
  OperatorStop: to("Stopped", { set: "stop", act: ["CancelSession"] }),
  FatalError: to("Stopped", { set: "fail", act: ["LogFatal", "CancelSession"] })
}
/** Events that are ignored in these states, because the next prompt reads the inbox anyway. */
const signals = stale("UrgentMessage", "WorkArrived")
const past = stale("SessionExited", "GraceExceeded", "PortsGiven")

const errorsOf = ({ limits: { maxTotalErrors }, totalErrors }: Data) => ({ maxTotalErrors, totalErrors })

export const Worker = define<State, Event, Data, Action, Kind>()({
  name: "worker",
  initial: "Initializing",
  final: ["Stopped"],
  rune: "worker.moved",
  fenced: (data, event) => {
    switch (event._tag) {
      case "SessionStarted":
      case "SessionExited":
      case "GraceExceeded":
        return event.runId !== data.runId
      case "UrgentMessage":
        return event.runId !== undefined && event.runId !== data.runId
      default:
        return false
    }
  },
  guards: {
    succeeded: (_, event) => ended(event) === "Success",
    fatal: ({ taken = 0 }, event) => ended(event) === "Fatal" || taken >= TAKEN_LIMIT,
    exhausted: (data) => Backoff.exhausted(data.limits, data)
  },
  updates: {
    place: update("WorktreeReady", placed),
    ports: update("PortsGiven", (data, { ports }) => ({ ...data, ports })),
    increment: update("WorktreeReady", (data, event) => ({ ...placed(data, event), sessionSeq: data.sessionSeq + 1 })),
    prepare: update("PromptReady", (data, event) => ({
      ...movedTo(data, event.fallback ?? { index: 0 }),
      ...event.terms,
      runId: event.runId,
      prompt: event.prompt,
      messageIds: event.messageIds,
      lastRunAt: event.at,
      recentRuns: recent({ ...data, ...event.terms }, event.at)
    })),
    interrupt: update("UrgentMessage", (data, event) =>
      event.messageId === null ? { ...data, messageIds: [] } : data
    ),
    start: update("SessionStarted", (data, event) => ({
      ...data,
      sessionSeq: event.seq,
      prompt: null,
      pid: event.pid ?? null,
      sessionId: event.sessionId ?? null,
      consecutiveErrors: 0
    })),
    count: update("SessionExited", (data, event) => {
      const after = counted(worked(alive(data), event), event.outcome)
      return event.died === true ? { ...after, died: true } : after
    }),
    clear: (data, event) =>
      gone(
        isTaken(event) ? worked(data, event) : untaken(worked(data, event)),
        data.messageIds.length === 0 ? null : "it was interrupted by an urgent message"
      ),
    stop: update("OperatorStop", (data, event) => ({ ...data, stoppedBy: event.by })),
    fail: update("FatalError", (data, event) => ({
      ...data,
      lastError: event.message,
      fatal: { message: event.message, remedy: event.remedy ?? "Fix this error, then start the agent again." }
    }))
  },
  actions: {
    StorePrompt: (_, event) => ({
      _tag: "StorePrompt",
      prompt: event._tag === "PromptReady" ? event.prompt : "",
      runId: event._tag === "PromptReady" ? event.runId : ""
    }),
    IncrementSession: (data) => ({ _tag: "IncrementSession", sessionSeq: data.sessionSeq }),
    CancelSession: (data) => ({ _tag: "CancelSession", runId: data.runId }),
    ForceStopSession: (_, event) => ({
      _tag: "ForceStopSession",
      runId: event._tag === "GraceExceeded" ? event.runId : null
    }),
    LogFatal: (data) => ({ _tag: "LogFatal", message: data.fatal?.message ?? "", remedy: data.fatal?.remedy ?? "" })
  },
  timers: {
    grace: {
      after: (data) => data.graceMillis,
      fires: (data) => ({ _tag: "GraceExceeded", runId: data.runId ?? "" })
    },
    cooldown: { after: cooldown, fires: () => ({ _tag: "BackoffElapsed" }) }
  },
  fields: {
    "worker.moved": (data) => ({
      sessionSeq: data.sessionSeq,
      runId: data.runId,
      consecutiveErrors: data.consecutiveErrors,
      totalErrors: data.totalErrors,
      ...(isNear(errorsOf(data)) ? { maxTotalErrors: data.limits.maxTotalErrors } : {}),
      fatal: data.fatal
    })
  },
  states: {
    Initializing: { enter: "PrepareWorktree" },
    BuildingPrompt: { enter: "BuildPrompt" },
    Spawning: { enter: "SpawnRun" },
    Running: { enter: "WatchRun" },
    Interrupting: { timeout: "grace" },
    SessionComplete: { enter: "PrepareWorktree" },
    CoolingDown: { timeout: "cooldown" },
    Stopped: { enter: "ReleaseAgent" }
  },
  table: {
    Initializing: {
      ...always,
      ...signals,
      ...past,
      ...illegal("PromptReady", "SessionStarted", "BackoffElapsed"),
      WorktreeReady: to("BuildingPrompt", { set: "place" })
    },
    BuildingPrompt: {
      ...always,
      ...stale("UrgentMessage"),
      ...past,
      ...illegal("WorktreeReady", "SessionStarted", "BackoffElapsed"),
      PromptReady: to("Spawning", { set: "prepare", act: ["StorePrompt"] }),
      WorkArrived: to("BuildingPrompt", { reenter: true })
    },
    Spawning: {
      ...live,
      ...stale("WorkArrived", "GraceExceeded", "PromptReady"),
      ...postpone("UrgentMessage"),
      ...illegal("WorktreeReady", "BackoffElapsed"),
      PortsGiven: to("Spawning", { set: "ports" }),
      SessionStarted: to("Running", { set: "start" }),
      SessionExited: exited
    },
    Running: {
      ...live,
      ...stale("WorkArrived", "GraceExceeded", "PromptReady", "PortsGiven"),
      ...illegal("WorktreeReady", "SessionStarted", "BackoffElapsed"),
      SessionExited: exited,
      UrgentMessage: to("Interrupting", { set: "interrupt", act: ["CancelSession"] })
    },
    Interrupting: {
      ...live,
      ...signals,
      ...stale("PortsGiven"),
      ...illegal("WorktreeReady", "PromptReady", "SessionStarted", "BackoffElapsed"),
      SessionExited: to("BuildingPrompt", { set: "clear" }),
      GraceExceeded: to("BuildingPrompt", { set: "clear", act: ["ForceStopSession"] })
    },
    SessionComplete: {
      ...always,
      ...signals,
      ...past,
      ...illegal("PromptReady", "SessionStarted", "BackoffElapsed"),
      WorktreeReady: to("BuildingPrompt", { set: "increment", act: ["IncrementSession"] })
    },
    CoolingDown: {
      ...always,
      ...signals,
      ...past,
      ...illegal("WorktreeReady", "PromptReady", "SessionStarted"),
      BackoffElapsed: to("BuildingPrompt")
    },
    Stopped: {
      ...signals,
      ...past,
      ...stale("WorktreeReady", "PromptReady", "SessionStarted", "BackoffElapsed", "OperatorStop", "FatalError")
    }
  }
})

export const isCool = ({ at, data, state }: { readonly at: number; readonly data: Data; readonly state: State }) =>
  state === "CoolingDown" && cooldown(data, at) <= 0
