/**
 * PlateMachine: the state machine of one coding session that agentd did not start.
 *
 * Guarantees: the status is derived only from the plate's sets (`settle`), so an event of a parallel tool does not hide
 * an open question. The table alone defines the effects of the five events of `/events`. A closed plate is reopened
 * only by a start of its session.
 *
 * Claude Code's hooks add to the sets and remove from them; the five events of `/events` overwrite them. Applying an
 * event twice has the same effect as once. An outdated event changes nothing.
 */
import { Schema } from "effect"
import { define, stale, to } from "../core/event-actor/StateMachine.ts"
import {
  acting,
  agentsDone,
  answers,
  callEnded,
  callStarted,
  closedWhere,
  type Data,
  exited,
  kindOf,
  MAX,
  notified,
  opened,
  overwritten,
  type Prompt,
  quiet,
  requested,
  type Signal,
  turnEnded,
  turnStarted,
  withLast,
  withProcess
} from "./PlateState.ts"

export type State = "Starting" | "Running" | "Idle" | "AwaitingInput" | "AwaitingApproval" | "Error" | "Closed"

/** When agentd received the event, ms since the epoch. */
const at = Schema.Finite
/** The sender's time, ms since the epoch. An event older than the last one is ignored. */
const timestamp = Schema.optional(Schema.Finite)
const posted = { at, timestamp, sessionId: Schema.optional(Schema.String) }
/** `transcriptPath` and `cwd` are present only if they have changed. */
const hook = {
  at,
  sessionId: Schema.String,
  transcriptPath: Schema.optional(Schema.String),
  cwd: Schema.optional(Schema.String),
  /** The coding CLI, if it is not Claude Code. Present only in the first hook of a plate. */
  cli: Schema.optional(Schema.String),
  /** True if the session's own file reports the event, and no hook. */
  recorded: Schema.optional(Schema.Boolean)
}
/** Id of the subagent; absent for the main agent. */
const agentId = Schema.optional(Schema.String)
/** A digest of the tool's input, which distinguishes two calls of the same tool. */
const input = Schema.optional(Schema.String)
const called = { agentId, tool: Schema.String, callId: Schema.String }
/** `pidStart`: clock ticks between boot and fork. Pid and start together identify one process. */
const process = { pid: Schema.optional(Schema.Int), pidStart: Schema.optional(Schema.Int) }

export const Event = Schema.Union([
  // The events of `/events`.
  Schema.TaggedStruct("SessionStart", {
    ...posted,
    cwd: Schema.optional(Schema.String),
    transcriptPath: Schema.optional(Schema.NullOr(Schema.String)),
    gitBranch: Schema.optional(Schema.NullOr(Schema.String))
  }),
  Schema.TaggedStruct("PromptSubmit", posted),
  /** `input`: the tool's input, as `shownInput` returns it. */
  Schema.TaggedStruct("ToolStart", { ...posted, tool: Schema.String, input: Schema.optional(Schema.String) }),
  Schema.TaggedStruct("ToolCall", posted),
  Schema.TaggedStruct("Stop", { ...posted, error: Schema.optional(Schema.NullOr(Schema.String)) }),
  // Claude Code's hooks.
  Schema.TaggedStruct("HookSessionStart", {
    ...hook,
    source: Schema.String,
    ...process,
    /** True if the hook was stored while the daemon was down: `at` is when the hook fired, not when it arrived. */
    late: Schema.optional(Schema.Boolean),
    /** True if no hook reported the session's start: the session was found through the note of its process. */
    noted: Schema.optional(Schema.Boolean)
  }),
  Schema.TaggedStruct("HookSessionEnd", { ...hook, reason: Schema.String }),
  /** `endedTask`: id of the background work whose end this prompt announces. */
  Schema.TaggedStruct("HookUserPromptSubmit", { ...hook, endedTask: Schema.optional(Schema.String) }),
  Schema.TaggedStruct("HookPreToolUse", { ...hook, ...called, input }),
  /** `launched`: id of the work that continues in the background. */
  Schema.TaggedStruct("HookPostToolUse", { ...hook, ...called, launched: Schema.optional(Schema.String) }),
  Schema.TaggedStruct("HookPostToolUseFailure", { ...hook, ...called, isInterrupt: Schema.Boolean }),
  Schema.TaggedStruct("HookPostToolBatch", { ...hook, agentId }),
  Schema.TaggedStruct("HookPermissionRequest", { ...hook, agentId, tool: Schema.String, input }),
  Schema.TaggedStruct("HookPermissionDenied", {
    ...hook,
    agentId,
    tool: Schema.String,
    callId: Schema.optional(Schema.String)
  }),
  Schema.TaggedStruct("HookNotification", {
    ...hook,
    notificationType: Schema.Literals(["permission_prompt", "idle_prompt", "agent_needs_input"])
  }),
  Schema.TaggedStruct("HookStop", { ...hook, backgroundTasks: Schema.Array(Schema.String) }),
  Schema.TaggedStruct("HookStopFailure", { ...hook, error: Schema.String }),
  Schema.TaggedStruct("HookSubagentStop", { ...hook, agentId: Schema.String }),
  Schema.TaggedStruct("HookElicitation", { ...hook, server: Schema.String }),
  Schema.TaggedStruct("HookElicitationResult", { ...hook, server: Schema.String }),
  Schema.TaggedStruct("HookPreCompact", hook),
  Schema.TaggedStruct("HookPostCompact", hook),
  /** The user has answered a permission request through agentd. */
  Schema.TaggedStruct("PromptAnswered", {
    at,
    agentId,
    tool: Schema.String,
    callId: Schema.optional(Schema.String),
    behavior: Schema.Literals(["allow", "deny"])
  }),
  // Events of the health check. `asOf` is the time of the evidence: if a newer signal exists, the event is outdated.
  Schema.TaggedStruct("HealthCheckRecovery", { at, asOf: Schema.Finite }),
  /** A dialog that was open at `asOf` is over: its tool call continued, or has a result. */
  Schema.TaggedStruct("DialogEndObserved", {
    at,
    asOf: Schema.Finite,
    agentId,
    tool: Schema.String,
    callId: Schema.optional(Schema.String),
    from: Schema.Literals(["transcript", "process"])
  }),
  Schema.TaggedStruct("TurnEndObserved", {
    at,
    asOf: Schema.Finite,
    /**
     * Evidence for the end. `interrupt` and `failure`: a line in the transcript, written at `asOf`. `quiet`: the last
     * record ends a turn, and nothing was written since. `silent`: nothing was written for a long time.
     */
    why: Schema.Literals(["interrupt", "failure", "quiet", "silent"]),
    /** Kind of the failure, if a failure ended the turn. */
    error: Schema.optional(Schema.String)
  }),
  /** The status in the note of the session's process, written at `asOf`. */
  Schema.TaggedStruct("StatusNoted", {
    at,
    asOf: Schema.Finite,
    status: Schema.Literals(["idle", "busy", "permission", "question"])
  }),
  // Events of the process and of the board.
  Schema.TaggedStruct("Registered", {
    at,
    plateId: Schema.String,
    cwd: Schema.String,
    ...process,
    /** The coding CLI, if it is not Claude Code. */
    cli: Schema.optional(Schema.String),
    /** Id of the run in which a program has started the session. */
    runId: Schema.optional(Schema.String),
    /** The agent of the run, as `project/agent`. */
    agent: Schema.optional(Schema.String)
  }),
  Schema.TaggedStruct("ProcessExited", {
    at,
    pid: Schema.optional(Schema.Int),
    code: Schema.optional(Schema.NullOr(Schema.Int))
  }),
  Schema.TaggedStruct("Forgotten", { at, by: Schema.String })
])
export type Event = typeof Event.Type

export const kinds = ["plate.moved", "plate.forgotten"] as const
export type Kind = (typeof kinds)[number]

/** Interval of the health check, ms. */
export const HEALTH_CHECK_INTERVAL = 10_000
/** If the transcript is newer than the last event by more than this time, in whole seconds, an event was missed. */
export const STALENESS_SECONDS = 2
/** Maximum time, in ms, for which a plate stays in a state that needs the user once the reason for it is gone. */
export const MAX_RECOVERY = 12_000
/** Time of silence, in ms, after which a turn counts as over if the transcript says that it ended. */
export const QUIET = 30_000
/** Time of silence, in ms, after which a turn counts as over in any case. */
export const SILENT = 600_000
/** If a check is late by more than this number of intervals, the machine slept, and one round is skipped. */
export const MAX_LATE_INTERVALS = 3

/** Whether the transcript was written after the last event. Both times are in seconds since the epoch. */
export const transcriptAhead = (mtimeSeconds: number, lastEventSeconds: number): boolean =>
  Math.floor(mtimeSeconds) > Math.floor(lastEventSeconds) + STALENESS_SECONDS

/** True if the session's start event was stored while the daemon was down and is older than the newest signal. */
const isLate = (data: Data, event: Event): boolean =>
  event._tag === "HookSessionStart" && event.late === true && data.signal !== null && event.at < data.signal.at

/**
 * True if a start reopens a closed plate, because its process is alive. An earlier process may have exited unnoticed.
 */
const reopens = (data: Data, event: Event): boolean =>
  event._tag === "HookSessionStart" && data.closed && event.pidStart !== undefined

/**
 * Applies a session's start. After a compaction the turn continues; after any other start the session is idle. A late
 * start only updates ids and process.
 */
const started = (data: Data, event: Extract<Event, { readonly _tag: "HookSessionStart" }>): Data => {
  const late = isLate(data, event)
  return {
    ...withProcess(data, event),
    ...(event.source === "compact" ? { compacting: false } : late ? {} : quiet),
    closed: false,
    cwd: event.cwd ?? data.cwd,
    sessionId: event.sessionId,
    formerIds: data.formerIds.filter((id) => id !== event.sessionId)
  }
}

type Change<T extends Event["_tag"]> = (data: Data, event: Extract<Event, { _tag: T }>) => Data

const changes: { readonly [t in Event["_tag"]]: Change<t> } = {
  // The five events of `/events` overwrite the sets.
  SessionStart: (data, event) => ({
    ...overwritten(data, event.at),
    closed: false,
    formerIds: data.formerIds.filter((id) => id !== event.sessionId),
    cwd: event.cwd ?? data.cwd,
    transcriptPath: event.transcriptPath ?? data.transcriptPath,
    branch: event.gitBranch ?? data.branch
  }),
  PromptSubmit: (data, event) => overwritten(data, event.at),
  ToolCall: (data, event) => overwritten(data, event.at),
  ToolStart: (data, event) => {
    const kind = kindOf(event.tool)
    const prompt = { agentId: null, tool: event.tool, callId: null, kind, at: event.at, posted: true } as const
    return { ...overwritten(data, event.at), prompts: kind === "permission" ? [] : [prompt] }
  },
  Stop: (data, event) => ({ ...data, ...quiet, failure: event.error ?? null, failedAt: event.at }),
  // Claude Code's hooks add to the sets and remove from them.
  HookSessionStart: started,
  HookSessionEnd: (data, event) => ({
    ...(event.sessionId === data.sessionId || data.sessionId === null ? { ...data, ...quiet } : data),
    formerIds: withLast(data.formerIds, event.sessionId, MAX.formerIds)
  }),
  HookUserPromptSubmit: (data, event) => turnStarted(data, event.at, event.endedTask),
  HookPreToolUse: callStarted,
  HookPermissionRequest: requested,
  HookPostToolUse: (data, event) => {
    const agentId = event.agentId ?? null
    const after = acting(callEnded(data, agentId, event.tool, event.callId), agentId, event.at)
    return event.launched === undefined
      ? after
      : { ...after, background: withLast(after.background, event.launched, MAX.background) }
  },
  HookPostToolUseFailure: (data, event) => {
    const agentId = event.agentId ?? null
    const after = callEnded(data, agentId, event.tool, event.callId)
    return event.isInterrupt ? after : acting(after, agentId, event.at)
  },
  HookPermissionDenied: (data, event) => callEnded(data, event.agentId ?? null, event.tool, event.callId),
  // Every call of the batch has ended, including denied ones: this agent has nothing open.
  HookPostToolBatch: (data, event) => {
    const agentId = event.agentId ?? null
    const after = agentsDone(data, (agent) => agent === agentId)
    return acting(after, agentId, event.at)
  },
  HookNotification: (data, event) => notified(data, event.notificationType, event.at),
  // another CLI can report the end of a turn after its transcript has reported that the turn failed
  HookStop: (data, event) =>
    turnEnded(data, event.backgroundTasks, data.cli !== undefined && !data.turn ? data.failure : null),
  HookStopFailure: (data, event) => ({ ...turnEnded(data, data.background, event.error), failedAt: event.at }),
  HookSubagentStop: (data, event) => ({
    ...agentsDone(data, (agentId) => agentId === event.agentId),
    background: data.background.filter((id) => id !== event.agentId)
  }),
  HookElicitation: (data, event) =>
    opened(data, {
      agentId: null,
      tool: `elicitation:${event.server}`,
      callId: null,
      kind: "question",
      at: event.at
    }),
  HookElicitationResult: (data, event) => closedWhere(data, (prompt) => prompt.tool === `elicitation:${event.server}`),
  HookPreCompact: (data) => ({ ...data, compacting: true }),
  HookPostCompact: (data) => ({ ...data, compacting: false }),
  // The prompt was answered through agentd: the agent continues after either answer.
  PromptAnswered: (data, event) => {
    const agentId = event.agentId ?? null
    const after = closedWhere(data, (prompt) => answers(prompt, agentId, event.tool, event.callId))
    return acting(after, agentId, event.at)
  },
  DialogEndObserved: (data, event) => {
    const agentId = event.agentId ?? null
    const over = (prompt: Prompt) => prompt.at <= event.asOf && answers(prompt, agentId, event.tool, event.callId)
    return data.prompts.some(over) ? acting(closedWhere(data, over), agentId, event.asOf) : data
  },
  // From the transcript. An interrupt ends prompts, too; silence says nothing about an open question.
  HealthCheckRecovery: (data) => ({ ...data, ...quiet }),
  TurnEndObserved: (data, event) =>
    event.why === "failure"
      ? { ...turnEnded(data, data.background, event.error ?? "unknown"), failedAt: event.asOf }
      : event.why === "interrupt"
        ? turnEnded(data, data.background, null)
        : { ...data, turn: false, compacting: false, background: [] },
  StatusNoted: (data, { asOf, status }) => {
    if (status === "idle") return { ...turnEnded(data, data.background, null), prompts: [] }
    if (status === "busy") return acting({ ...data, prompts: [] }, null, asOf)
    // an agent that asks now has continued since an older interrupt
    const asking = { ...data, turnAt: Math.max(data.turnAt, asOf) }
    return opened(asking, { agentId: null, tool: "*", callId: null, kind: status, at: asOf, noted: true })
  },
  Registered: (data, event) => ({
    ...withProcess(data, event),
    plateId: event.plateId,
    cwd: event.cwd,
    ...(event.cli === undefined ? {} : { cli: event.cli }),
    runId: event.runId ?? data.runId,
    agent: event.agent ?? data.agent
  }),
  ProcessExited: (data, event) => exited(data, event.pid),
  Forgotten: (data) => ({ ...exited(data, undefined), forgotten: true })
}

/** The session id can change while the session runs. Paths are added if the session's start was missed. */
const underId = (data: Data, event: Event): Data => {
  if (!("sessionId" in event) || event.sessionId === undefined || event._tag === "HookSessionEnd") return data
  return {
    ...data,
    sessionId: event.sessionId,
    transcriptPath: ("transcriptPath" in event ? event.transcriptPath : undefined) ?? data.transcriptPath,
    cwd: data.cwd ?? ("cwd" in event ? event.cwd : undefined) ?? null,
    ...("cli" in event && event.cli !== undefined ? { cli: event.cli } : {})
  }
}

const signalOf = (event: Event): Signal => {
  if (event._tag === "TurnEndObserved" || event._tag === "HealthCheckRecovery") return "transcript"
  if (event._tag === "DialogEndObserved") return event.from
  if ("recorded" in event && event.recorded === true) return "session"
  if (event._tag === "StatusNoted" || (event._tag === "HookSessionStart" && event.noted === true)) return "session"
  if (event._tag === "Registered" || event._tag === "ProcessExited" || event._tag === "Forgotten") return "process"
  return "hook"
}

/**
 * The machine's only update function: it changes the plate's sets, and stores the signal from which the status comes.
 */
const applied = (data: Data, event: Event): Data => ({
  ...changes[event._tag](underId(data, event), event as never),
  // A late event does not make the status look older than it is.
  signal: isLate(data, event) && !reopens(data, event) ? data.signal : { from: signalOf(event), at: event.at },
  timestamp: "timestamp" in event && event.timestamp !== undefined ? event.timestamp : data.timestamp
})

const isOurs = (data: Data, pid: number): boolean =>
  data.processes.length > 0 ? data.processes.some((process) => process.pid === pid) : !data.formerPids.includes(pid)

const formerHook = (data: Data, event: Event): boolean =>
  event._tag.startsWith("Hook") && "sessionId" in event && data.formerIds.includes(event.sessionId ?? "")

/** Whether a time is newer than the evidence. A time in the future was recorded before the clock was set back. */
const isAfter = (stamp: number, { asOf, at }: { readonly asOf: number; readonly at: number }): boolean =>
  stamp > asOf && (stamp <= at || asOf > at)

/** Whether the note is outdated: newer signals exist about the turn or dialog whose start or end it would report. */
const notedBefore = (data: Data, event: Extract<Event, { _tag: "StatusNoted" }>): boolean => {
  const asked = data.prompts.some((prompt) => isAfter(prompt.at, event))
  const heard = isAfter(data.signal?.at ?? 0, event)
  if (event.status === "busy") return data.prompts.length > 0 ? asked : heard
  const acted = isAfter(data.turnAt, event)
  if (event.status === "idle") return data.turn || data.prompts.length > 0 ? asked || acted : heard
  return acted
}

/** True for an outdated event: older than the last one, of another process, or under a former session id. */
export const past = (data: Data, event: Event): boolean => {
  if (data.forgotten) return true
  if ("timestamp" in event && event.timestamp !== undefined) return event.timestamp < (data.timestamp ?? -Infinity)
  if (event._tag === "ProcessExited") return event.pid !== undefined && !isOurs(data, event.pid)
  // An interrupt or a failure ends the turn that was running when its line was written, even if subagents reported
  // since.
  if (event._tag === "TurnEndObserved" && (event.why === "interrupt" || event.why === "failure")) {
    return isAfter(data.turnAt, event) || (data.compacting && isAfter(data.signal?.at ?? 0, event))
  }
  if (event._tag === "StatusNoted") return notedBefore(data, event)
  if (event._tag === "HealthCheckRecovery" || event._tag === "TurnEndObserved")
    return data.signal !== null && data.signal.at > event.asOf
  if (event._tag === "HookSessionStart") return data.closed && isLate(data, event) && !reopens(data, event)
  return formerHook(data, event)
}

const settle = [
  { to: "Closed", when: "closed" },
  { to: "AwaitingInput", when: "asked" },
  { to: "AwaitingApproval", when: "askedApproval" },
  { to: "Running", when: "working" },
  { to: "Error", when: "failed" },
  { to: "Idle" }
] as const
const settled = { set: "apply", then: settle } as const

const posts = {
  SessionStart: settled,
  PromptSubmit: settled,
  ToolStart: settled,
  ToolCall: settled,
  Stop: settled
}
const reports = {
  HookSessionStart: settled,
  HookSessionEnd: settled,
  HookUserPromptSubmit: settled,
  HookPreToolUse: settled,
  HookPostToolUse: settled,
  HookPostToolUseFailure: settled,
  HookPostToolBatch: settled,
  HookPermissionRequest: settled,
  HookPermissionDenied: settled,
  HookNotification: settled,
  HookStop: settled,
  HookStopFailure: settled,
  HookSubagentStop: settled,
  HookElicitation: settled,
  HookElicitationResult: settled,
  HookPreCompact: settled,
  HookPostCompact: settled
}
const forget = to("Closed", { set: "apply", rune: "plate.forgotten" })
/** Events that are valid in every state but `Closed`. */
const open = {
  ...posts,
  ...reports,
  Registered: settled,
  ProcessExited: to("Closed", { set: "apply" }),
  Forgotten: forget
}
/** Events for the states in which a dialog is open (AwaitingInput and AwaitingApproval). */
const attention = {
  ...open,
  PromptAnswered: settled,
  HealthCheckRecovery: settled,
  DialogEndObserved: settled,
  TurnEndObserved: settled,
  StatusNoted: settled
}
const rest = {
  ...open,
  StatusNoted: settled,
  ...stale("PromptAnswered", "HealthCheckRecovery", "DialogEndObserved", "TurnEndObserved")
}

export const Plate = define<State, Event, Data, never, Kind>()({
  name: "plate",
  initial: "Starting",
  final: [],
  rune: "plate.moved",
  fenced: past,
  guards: {
    closed: (data) => data.closed,
    asked: (data) => data.prompts.some((prompt) => prompt.kind === "question"),
    askedApproval: (data) => data.prompts.length > 0,
    working: (data) => data.turn || data.compacting,
    failed: (data) => data.failure !== null
  },
  updates: { apply: applied },
  actions: {},
  timers: {},
  fields: {
    "plate.moved": (data) => ({ plateId: data.plateId, sessionId: data.sessionId, restsOn: data.signal?.from ?? null }),
    "plate.forgotten": (data, event) => ({
      plateId: data.plateId,
      sessionId: data.sessionId,
      by: event._tag === "Forgotten" ? event.by : null
    })
  },
  states: { Starting: {}, Running: {}, Idle: {}, AwaitingInput: {}, AwaitingApproval: {}, Error: {}, Closed: {} },
  table: {
    Starting: { ...rest, Registered: to("Starting", { set: "apply" }) },
    Running: { ...rest, TurnEndObserved: settled },
    Idle: { ...rest, TurnEndObserved: settled },
    AwaitingInput: attention,
    AwaitingApproval: attention,
    Error: { ...rest, HealthCheckRecovery: settled },
    Closed: {
      ...stale("PromptSubmit", "ToolStart", "ToolCall", "Stop"),
      ...(Object.fromEntries(Object.keys(reports).map((tag) => [tag, "stale"])) as {
        readonly [t in keyof typeof reports]: "stale"
      }),
      ...stale("PromptAnswered", "HealthCheckRecovery", "DialogEndObserved", "TurnEndObserved"),
      ...stale("StatusNoted", "Registered", "ProcessExited"),
      SessionStart: settled,
      HookSessionStart: settled,
      Forgotten: forget
    }
  }
})
