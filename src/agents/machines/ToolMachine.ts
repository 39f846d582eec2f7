/**
 * ToolMachine: one tool invocation inside a turn, from the call to its one result.
 *
 * Guarantees: every `tool.call` gets exactly one `tool.result`; what needs
 * approval is not run before it; a call ends within its time limit.
 */
import { Schema } from "effect"
import { Question } from "../../runs/Question.ts"
import { define, illegal, on, stale, to } from "../../core/event-actor/StateMachine.ts"

export type State =
  /** Before the call. */
  | "[*]"
  | "pending_call"
  | "awaiting_approval"
  | "executing"
  | "denied"
  | "completed_result"
  | "error_result"
  | "timeout_result"
  | "cancelled_result"

const callId = Schema.String
/** To its questions. */
const chosen = Schema.optional(Schema.Array(Schema.String))

export const Event = Schema.Union([
  Schema.TaggedStruct("call_requested", {
    callId,
    turnId: Schema.String,
    toolName: Schema.String,
    arguments: Schema.Unknown,
    /** Of tool and arguments as they were before anything was cut or redacted: the same for the same call. */
    digest: Schema.optional(Schema.String),
    /** ms; the default where left out, the longest allowed where it is above that */
    timeout: Schema.optional(Schema.Finite),
    /** ms that a question waits; left out: for as long as it takes */
    approvalTimeout: Schema.optional(Schema.Finite)
  }),
  /** `questions`: it asks a person to choose, and not for leave. */
  Schema.TaggedStruct("requires_approval", {
    callId,
    policyReason: Schema.String,
    questions: Schema.optional(Schema.Array(Question)),
    /** Of the whole call: what an approval names. */
    hash: Schema.optional(Schema.String)
  }),
  /** The agent's approval mode lets it run, or an answer that came when its run was over. */
  Schema.TaggedStruct("auto_approved", { callId, policyReason: Schema.String, answers: chosen }),
  /** The tool itself never asks. */
  Schema.TaggedStruct("no_approval_needed", { callId }),
  /** `hash`: of what the approver was shown. */
  Schema.TaggedStruct("approved", {
    callId,
    approver: Schema.String,
    answers: chosen,
    hash: Schema.optional(Schema.String)
  }),
  Schema.TaggedStruct("denied", { callId, approver: Schema.String, reason: Schema.String }),
  /** The denial has been handed to the turn as the call's result. */
  Schema.TaggedStruct("denial_reported", { callId }),
  Schema.TaggedStruct("approval_timeout", { callId }),
  /** The agent has taken its question back: the call was decided elsewhere, and may go on. */
  Schema.TaggedStruct("withdrawn", { callId }),
  Schema.TaggedStruct("progress_update", {
    callId,
    stream: Schema.Literals(["stdout", "stderr"]),
    chunk: Schema.String
  }),
  Schema.TaggedStruct("success", { callId, output: Schema.Unknown }),
  /** `unknown`: a crash hid the outcome. */
  Schema.TaggedStruct("execution_error", {
    callId,
    status: Schema.Literals(["error", "unknown", "sandbox_violation"]),
    error: Schema.String,
    /** The person who approved it when its run was over already: the next call that is the same may run, once. */
    grant: Schema.optional(Schema.String)
  }),
  Schema.TaggedStruct("execution_timeout", { callId }),
  Schema.TaggedStruct("cancelled", { callId, reason: Schema.String })
])
export type Event = typeof Event.Type

/** How a call ended, as its result says. */
export const Status = Schema.Literals([
  "success",
  "error",
  "unknown",
  "sandbox_violation",
  "timeout",
  "cancelled",
  "denied"
])
export type Status = typeof Status.Type

export type Action =
  /** End what the call runs, with all its processes. */
  | { readonly _tag: "StopTool"; readonly callId: string | null }
  | { readonly _tag: "ReportResult"; readonly callId: string | null; readonly status: Status }

export interface Data {
  readonly callId: string | null
  readonly turnId: string | null
  readonly toolName: string | null
  /** Why it was denied; null unless it was. */
  readonly denial: string | null
  /** To its questions; null where it has none, or none yet. */
  readonly answers: ReadonlyArray<string> | null
  readonly reported: boolean
  /** ms from the start of the execution */
  readonly timeout: number
  readonly limits: Limits
}

/** All in ms. */
export interface Limits {
  readonly toolTimeout: number
  readonly maxToolTimeout: number
  /** Null: a question waits until it is answered. */
  readonly approvalTimeout: number | null
}

/** A call that nobody asks about for so long runs, ms: not every agent says when one begins, and a person's hook may come before the question. */
export const UNASKED = 10_000

export const defaultLimits: Limits = {
  toolTimeout: 2 * 60_000,
  maxToolTimeout: 30 * 60_000,
  approvalTimeout: null
}

export const initial = (limits: Limits = defaultLimits): Data => ({
  callId: null,
  turnId: null,
  toolName: null,
  denial: null,
  answers: null,
  reported: false,
  timeout: limits.toolTimeout,
  limits
})

export const kinds = [
  "tool.call",
  "tool.approval_requested",
  "tool.approved",
  "tool.denied",
  "tool.approval_withdrawn",
  "tool.started",
  "tool.progress",
  "tool.result"
] as const
export type Kind = (typeof kinds)[number]

/** Kinds that no fold reads: their moves change neither state nor data. */
export const lazy: ReadonlyArray<Kind> = ["tool.progress"]

const update = on<Event, Data>()

const statusOf = (event: Event): Status => {
  switch (event._tag) {
    case "success":
      return "success"
    case "execution_error":
      return event.status
    case "approval_timeout":
    case "execution_timeout":
      return "timeout"
    case "denial_reported":
      return "denied"
    default:
      return "cancelled"
  }
}

const result = (data: Data, event: Event) => ({
  call_id: data.callId,
  status: statusOf(event),
  ...(event._tag === "success" ? { output: event.output } : {}),
  ...(event._tag === "execution_error" ? { error: event.error } : {}),
  ...(event._tag === "denial_reported" ? { reason: data.denial } : {}),
  ...(event._tag === "cancelled" ? { reason: event.reason } : {})
})

const ends = { rune: "tool.result", act: ["ReportResult"] } as const
const stops = { rune: "tool.result", act: ["StopTool", "ReportResult"] } as const

const policy = ["requires_approval", "auto_approved", "no_approval_needed"] as const
const answers = ["approved", "denied", "approval_timeout", "withdrawn"] as const
const outcomes = ["progress_update", "success", "execution_error", "execution_timeout"] as const
/** The row of a call that has its result: a late event lost a race. */
const ended = {
  ...illegal("call_requested"),
  ...stale(...policy, ...answers, ...outcomes, "denial_reported", "cancelled")
}

export const Tool = define<State, Event, Data, Action, Kind>()({
  name: "tool",
  initial: "[*]",
  final: ["denied", "completed_result", "error_result", "timeout_result", "cancelled_result"],
  rune: "tool.result",
  fenced: (data, event) =>
    (event._tag !== "call_requested" && event.callId !== data.callId) ||
    (event._tag === "denial_reported" && data.reported),
  guards: {},
  updates: {
    call: update("call_requested", (data, event) => ({
      ...data,
      callId: event.callId,
      turnId: event.turnId,
      toolName: event.toolName,
      timeout: Math.min(event.timeout ?? data.limits.toolTimeout, data.limits.maxToolTimeout),
      limits: { ...data.limits, approvalTimeout: event.approvalTimeout ?? data.limits.approvalTimeout }
    })),
    answer: (data, event) => ({ ...data, answers: ("answers" in event ? event.answers : undefined) ?? null }),
    deny: update("denied", (data, event) => ({ ...data, denial: event.reason })),
    report: (data) => ({ ...data, reported: true })
  },
  actions: {
    StopTool: (data) => ({ _tag: "StopTool", callId: data.callId }),
    ReportResult: (data, event) => ({ _tag: "ReportResult", callId: data.callId, status: statusOf(event) })
  },
  timers: {
    unasked: {
      after: ({ timeout }) => Math.min(UNASKED, timeout),
      fires: (data) => ({ _tag: "no_approval_needed", callId: data.callId ?? "" })
    },
    approval: {
      after: (data) => data.limits.approvalTimeout ?? Infinity,
      fires: (data) => ({ _tag: "approval_timeout", callId: data.callId ?? "" })
    },
    execution: {
      after: (data) => data.timeout,
      fires: (data) => ({ _tag: "execution_timeout", callId: data.callId ?? "" })
    }
  },
  fields: {
    "tool.call": (data, event) => ({
      call_id: data.callId,
      tool_name: data.toolName,
      arguments: event._tag === "call_requested" ? event.arguments : null
    }),
    "tool.approval_requested": (data, event) => ({
      call_id: data.callId,
      policy_reason: event._tag === "requires_approval" ? event.policyReason : null
    }),
    "tool.approved": (data, event) => ({
      call_id: data.callId,
      approver: event._tag === "approved" ? event.approver : null
    }),
    "tool.denied": (data) => ({ call_id: data.callId, reason: data.denial }),
    "tool.approval_withdrawn": (data) => ({ call_id: data.callId }),
    "tool.started": (data) => ({ call_id: data.callId }),
    "tool.progress": (data, event) => ({
      call_id: data.callId,
      stream: event._tag === "progress_update" ? event.stream : null,
      chunk: event._tag === "progress_update" ? event.chunk : null
    }),
    "tool.result": result
  },
  states: {
    "[*]": {},
    pending_call: { enter: "DecideApproval", timeout: "unasked" },
    awaiting_approval: { enter: "AskApproval", timeout: "approval" },
    executing: { enter: "RunTool", timeout: "execution" },
    denied: { enter: "ReportDenial" },
    completed_result: {},
    error_result: {},
    timeout_result: {},
    cancelled_result: {}
  },
  table: {
    "[*]": {
      ...illegal(...policy, ...answers, ...outcomes, "denial_reported", "cancelled"),
      call_requested: to("pending_call", { set: "call", rune: "tool.call" })
    },
    pending_call: {
      ...illegal("call_requested", "approved", "denied", "approval_timeout", ...outcomes, "denial_reported"),
      ...stale("withdrawn"),
      requires_approval: to("awaiting_approval", { rune: "tool.approval_requested" }),
      auto_approved: to("executing", { set: "answer", rune: "tool.started" }),
      no_approval_needed: to("executing", { rune: "tool.started" }),
      cancelled: to("cancelled_result", ends)
    },
    awaiting_approval: {
      ...stale(...policy),
      ...illegal("call_requested", ...outcomes, "denial_reported"),
      approved: to("executing", { set: "answer", rune: "tool.approved" }),
      denied: to("denied", { set: "deny", rune: "tool.denied" }),
      approval_timeout: to("timeout_result", ends),
      withdrawn: to("pending_call", { rune: "tool.approval_withdrawn" }),
      cancelled: to("cancelled_result", ends)
    },
    executing: {
      ...stale(...policy, ...answers),
      ...illegal("call_requested", "denial_reported"),
      progress_update: to("executing", { rune: "tool.progress" }),
      success: to("completed_result", ends),
      execution_error: to("error_result", ends),
      execution_timeout: to("timeout_result", stops),
      cancelled: to("cancelled_result", stops)
    },
    denied: { ...ended, denial_reported: to("denied", { set: "report", ...ends }) },
    completed_result: ended,
    error_result: ended,
    timeout_result: ended,
    cancelled_result: ended
  }
})
