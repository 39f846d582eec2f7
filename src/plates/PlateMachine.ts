/**
 * PlateMachine: what is known of one coding session, ours or a person's own.
 *
 * Guarantees: the status follows from the plate's sets alone (`settle`), so no
 * parallel tool's event hides an open question; fed the five events of `/events`
 * it does what their table says; the dead do not rise.
 */
import { Schema } from "effect"
import { define, stale, to } from "../event-actor/StateMachine.ts"
import { applied, past } from "./PlateChange.ts"
import type { Data } from "./PlateData.ts"

export type State = "Starting" | "Running" | "Idle" | "AwaitingInput" | "AwaitingApproval" | "Error" | "Closed"

export type { Data } from "./PlateData.ts"
export { initial } from "./PlateData.ts"

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
const run = { at, runId: Schema.String, agentId }

export const Event = Schema.Union([
  // The vocabulary of `/events`.
  Schema.TaggedStruct("SessionStart", {
    ...posted,
    cwd: Schema.optional(Schema.String),
    transcriptPath: Schema.optional(Schema.NullOr(Schema.String)),
    gitBranch: Schema.optional(Schema.NullOr(Schema.String))
  }),
  Schema.TaggedStruct("PromptSubmit", posted),
  Schema.TaggedStruct("ToolStart", { ...posted, tool: Schema.String }),
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
  // A managed run's events.
  Schema.TaggedStruct("RunTurnStarted", run),
  Schema.TaggedStruct("RunToolCalled", { ...run, ...called }),
  Schema.TaggedStruct("RunApprovalRequested", { ...run, ...called }),
  Schema.TaggedStruct("RunToolEnded", { ...run, ...called }),
  Schema.TaggedStruct("RunTurnEnded", { ...run, error: Schema.optional(Schema.String) }),
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
    /** An interrupt's line in the transcript (`asOf` is the line's time); a last record that ends a turn, and silence; silence alone. */
    why: Schema.Literals(["interrupt", "quiet", "silent"])
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
    /** Of a run of ours. */
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
  HookPostCompact: settled,
  RunTurnStarted: settled,
  RunToolCalled: settled,
  RunApprovalRequested: settled,
  RunToolEnded: settled,
  RunTurnEnded: settled
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
