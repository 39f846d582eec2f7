/**
 * PlateMachine: what is known of one coding session that agentd did not start.
 *
 * Guarantees: the status follows from the plate's sets alone (`settle`), so no
 * parallel tool's event hides an open question; fed the five events of `/events`
 * it does what their table says; the dead do not rise.
 *
 * Claude Code's hooks add to the sets and take from them; the five events of
 * `/events` overwrite them. Applying an event twice changes nothing
 * more; an event of the past changes nothing at all.
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

/** ms since the epoch: when it reached us. */
const at = Schema.Finite
/** ms since the epoch, as the sender has it; an older one than the last is stale. */
const timestamp = Schema.optional(Schema.Finite)
const posted = { at, timestamp, sessionId: Schema.optional(Schema.String) }
/** `transcriptPath` and `cwd`: where they are news. */
const hook = {
  at,
  sessionId: Schema.String,
  transcriptPath: Schema.optional(Schema.String),
  cwd: Schema.optional(Schema.String)
}
/** Left out for the main agent. */
const agentId = Schema.optional(Schema.String)
/** A digest of what a tool is called with: it tells two calls of one tool apart. */
const input = Schema.optional(Schema.String)
const called = { agentId, tool: Schema.String, callId: Schema.String }
/** `pidStart`: clock ticks between boot and its fork; the two together name one process. */
const process = { pid: Schema.optional(Schema.Int), pidStart: Schema.optional(Schema.Int) }

export const Event = Schema.Union([
  // The vocabulary of `/events`.
  Schema.TaggedStruct("SessionStart", {
    ...posted,
    cwd: Schema.optional(Schema.String),
    transcriptPath: Schema.optional(Schema.NullOr(Schema.String)),
    gitBranch: Schema.optional(Schema.NullOr(Schema.String))
  }),
  Schema.TaggedStruct("PromptSubmit", posted),
  /** `input`: what it is called with, as `shownInput` has it. */
  Schema.TaggedStruct("ToolStart", { ...posted, tool: Schema.String, input: Schema.optional(Schema.String) }),
  Schema.TaggedStruct("ToolCall", posted),
  Schema.TaggedStruct("Stop", { ...posted, error: Schema.optional(Schema.NullOr(Schema.String)) }),
  // Claude Code's own hooks.
  Schema.TaggedStruct("HookSessionStart", {
    ...hook,
    source: Schema.String,
    ...process,
    /** `at` is when it was said, not when it reached us: it was kept while we were down. */
    late: Schema.optional(Schema.Boolean),
    /** No hook told it: its process has noted itself. */
    noted: Schema.optional(Schema.Boolean)
  }),
  Schema.TaggedStruct("HookSessionEnd", { ...hook, reason: Schema.String }),
  /** `endedTask`: the background work whose end this prompt announces. */
  Schema.TaggedStruct("HookUserPromptSubmit", { ...hook, endedTask: Schema.optional(Schema.String) }),
  Schema.TaggedStruct("HookPreToolUse", { ...hook, ...called, input }),
  /** `launched`: what goes on in the background from here. */
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
  /** A person has answered a permission request through agentd. */
  Schema.TaggedStruct("PromptAnswered", {
    at,
    agentId,
    tool: Schema.String,
    callId: Schema.optional(Schema.String),
    behavior: Schema.Literals(["allow", "deny"])
  }),
  // The health check; `asOf` is the time of the signal that it looked at: a newer one wins.
  Schema.TaggedStruct("HealthCheckRecovery", { at, asOf: Schema.Finite }),
  /** A dialog that was open at `asOf` is over: its call went on, or has its result. */
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
     * An interrupt's line in the transcript, or a failure's (`asOf` is the line's time); a last record that ends a
     * turn, and silence; silence alone.
     */
    why: Schema.Literals(["interrupt", "failure", "quiet", "silent"]),
    /** The failure's kind. */
    error: Schema.optional(Schema.String)
  }),
  /** The session's process has noted itself, at `asOf`, what it is about. */
  Schema.TaggedStruct("StatusNoted", {
    at,
    asOf: Schema.Finite,
    status: Schema.Literals(["idle", "busy", "permission", "question"])
  }),
  // The process, and the board.
  Schema.TaggedStruct("Registered", {
    at,
    plateId: Schema.String,
    cwd: Schema.String,
    ...process,
    /** The run in which a program has started the session. */
    runId: Schema.optional(Schema.String),
    /** `project/agent` */
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

/** How often the transcripts are looked at, ms. */
export const HEALTH_CHECK_INTERVAL = 10_000
/** A transcript is ahead of the events when it is newer by more than this, in whole seconds. */
export const STALENESS_SECONDS = 2
/** An attention state that is over is left within this, ms. */
export const MAX_RECOVERY = 12_000
/** A turn whose transcript says that it ended is over after this silence, ms. */
export const QUIET = 30_000
/** Any turn is over after this silence, ms. */
export const SILENT = 600_000
/** A check that is late by more intervals than this waits one round: the machine slept. */
export const MAX_LATE_INTERVALS = 3

/** Whether the transcript has moved on without an event; both in seconds since the epoch. */
export const transcriptAhead = (mtimeSeconds: number, lastEventSeconds: number): boolean =>
  Math.floor(mtimeSeconds) > Math.floor(lastEventSeconds) + STALENESS_SECONDS

// --- how each event changes what a plate holds

/** A start that was kept somewhere until we were up, and is older than what we have heard since. */
const isLate = (data: Data, event: Event): boolean =>
  event._tag === "HookSessionStart" && event.late === true && data.signal !== null && event.at < data.signal.at

/** True where an event opens the plate again: its process lives, whatever was noticed late of the one before. */
const reopens = (data: Data, event: Event): boolean =>
  event._tag === "HookSessionStart" && data.closed && event.pidStart !== undefined

/** A compaction goes on within its turn; every other start shows an idle screen. One that is told late only says whose it is. */
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
  // The five of `/events` overwrite.
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
  // Claude Code's hooks add and take.
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
  // Every call of the batch has ended, the refused ones, too: nothing of this agent's is open.
  HookPostToolBatch: (data, event) => {
    const agentId = event.agentId ?? null
    const after = agentsDone(data, (agent) => agent === agentId)
    return acting(after, agentId, event.at)
  },
  HookNotification: (data, event) => notified(data, event.notificationType, event.at),
  HookStop: (data, event) => turnEnded(data, event.backgroundTasks, null),
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
  // What was asked was answered here: either way the agent goes on.
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
  // The transcript: an interrupt ends prompts, too; silence says nothing of a question that is open.
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
    // who asks has gone on since an interrupt that is older
    const asking = { ...data, turnAt: Math.max(data.turnAt, asOf) }
    return opened(asking, { agentId: null, tool: "*", callId: null, kind: status, at: asOf, noted: true })
  },
  Registered: (data, event) => ({
    ...withProcess(data, event),
    plateId: event.plateId,
    cwd: event.cwd,
    runId: event.runId ?? data.runId,
    agent: event.agent ?? data.agent
  }),
  ProcessExited: (data, event) => exited(data, event.pid),
  Forgotten: (data) => ({ ...exited(data, undefined), forgotten: true })
}

/** The session's id may change under way; what comes under a former one is fenced. Its paths are news where we missed its start. */
const underId = (data: Data, event: Event): Data => {
  if (!("sessionId" in event) || event.sessionId === undefined || event._tag === "HookSessionEnd") return data
  return {
    ...data,
    sessionId: event.sessionId,
    transcriptPath: ("transcriptPath" in event ? event.transcriptPath : undefined) ?? data.transcriptPath,
    cwd: data.cwd ?? ("cwd" in event ? event.cwd : undefined) ?? null
  }
}

const signalOf = (event: Event): Signal => {
  if (event._tag === "TurnEndObserved" || event._tag === "HealthCheckRecovery") return "transcript"
  if (event._tag === "DialogEndObserved") return event.from
  if (event._tag === "StatusNoted" || (event._tag === "HookSessionStart" && event.noted === true)) return "session"
  if (event._tag === "Registered" || event._tag === "ProcessExited" || event._tag === "Forgotten") return "process"
  return "hook"
}

/** The one update of a plate: the sets, and what the status now rests on. */
const applied = (data: Data, event: Event): Data => ({
  ...changes[event._tag](underId(data, event), event as never),
  // What is told late does not make the status look older than it is.
  signal: isLate(data, event) && !reopens(data, event) ? data.signal : { from: signalOf(event), at: event.at },
  timestamp: "timestamp" in event && event.timestamp !== undefined ? event.timestamp : data.timestamp
})

const isOurs = (data: Data, pid: number): boolean =>
  data.processes.length > 0 ? data.processes.some((process) => process.pid === pid) : !data.formerPids.includes(pid)

const formerHook = (data: Data, event: Event): boolean =>
  event._tag.startsWith("Hook") && "sessionId" in event && data.formerIds.includes(event.sessionId ?? "")

/** Whether we have heard something after what was seen. A stamp in the future is of before the clock was set back. */
const isAfter = (stamp: number, { asOf, at }: { readonly asOf: number; readonly at: number }): boolean =>
  stamp > asOf && (stamp <= at || asOf > at)

/** Noted before what we have heard since of that which it would end or begin. */
const notedBefore = (data: Data, event: Extract<Event, { _tag: "StatusNoted" }>): boolean => {
  const asked = data.prompts.some((prompt) => isAfter(prompt.at, event))
  const heard = isAfter(data.signal?.at ?? 0, event)
  if (event.status === "busy") return data.prompts.length > 0 ? asked : heard
  const acted = isAfter(data.turnAt, event)
  if (event.status === "idle") return data.turn || data.prompts.length > 0 ? asked || acted : heard
  return acted
}

/** True for an event of the past: older than the last one, of another process, under an id that the session has lost. */
export const past = (data: Data, event: Event): boolean => {
  if (data.forgotten) return true
  if ("timestamp" in event && event.timestamp !== undefined) return event.timestamp < (data.timestamp ?? -Infinity)
  if (event._tag === "ProcessExited") return event.pid !== undefined && !isOurs(data, event.pid)
  // An interrupt or a failure ends the turn that was on when its line was written, whatever subagents have told since.
  if (event._tag === "TurnEndObserved" && (event.why === "interrupt" || event.why === "failure")) {
    return isAfter(data.turnAt, event) || (data.compacting && isAfter(data.signal?.at ?? 0, event))
  }
  if (event._tag === "StatusNoted") return notedBefore(data, event)
  if (event._tag === "HealthCheckRecovery" || event._tag === "TurnEndObserved")
    return data.signal !== null && data.signal.at > event.asOf
  if (event._tag === "HookSessionStart") return data.closed && isLate(data, event) && !reopens(data, event)
  return formerHook(data, event)
}

// --- the table

/** Where a plate stands, from its sets alone. */
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
/** Valid in every state but `Closed`. */
const open = {
  ...posts,
  ...reports,
  Registered: settled,
  ProcessExited: to("Closed", { set: "apply" }),
  Forgotten: forget
}
/** A recovery moves the three states that ask for attention, and no other; a dialog is open in two of them. */
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
    Idle: rest,
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
