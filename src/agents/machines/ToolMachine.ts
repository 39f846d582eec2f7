/**
 * ToolMachine: one tool call of a turn, from the call to its result.
 *
 * Guarantees: Every `tool.call` gets exactly one `tool.result`. A call that needs approval does not run before it is
 * approved. A call ends within its time limit.
 */
import { Schema } from "effect"
import { ANSWER_SCOPES } from "../../approvals/AnswerScope.ts"
import { Question } from "../../runs/Question.ts"
import { define, illegal, on, stale, to } from "../../core/event-actor/StateMachine.ts"

export type State =
  /** State before the call is made. */
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
/** The user's answers to the questions of the call. */
const chosen = Schema.optional(Schema.Array(Schema.String))

/** The subject of a rule, as in `RuleSubject`. */
const Subject = Schema.Union([
  Schema.Struct({ command: Schema.String }),
  Schema.Struct({ write: Schema.String }),
  Schema.Struct({ read: Schema.String }),
  Schema.Struct({ url: Schema.String }),
  Schema.Struct({
    tool: Schema.String,
    argument: Schema.optionalKey(Schema.Record(Schema.String, Schema.String))
  })
])

export const Event = Schema.Union([
  Schema.TaggedStruct("call_requested", {
    callId,
    turnId: Schema.String,
    toolName: Schema.String,
    arguments: Schema.Unknown,
    /**
     * Hash of the tool name and the arguments, before they are shortened and redacted. Equal calls have equal hashes.
     */
    digest: Schema.optional(Schema.String),
    /** Timeout of the execution, ms. If omitted, the default applies. Larger values are reduced to the maximum. */
    timeout: Schema.optional(Schema.Finite),
    /** Maximum time that the call waits for the user, ms. If omitted, there is no limit. */
    approvalTimeout: Schema.optional(Schema.Finite)
  }),
  /** `questions`: present if the call asks the user to choose an answer, not to approve. */
  Schema.TaggedStruct("requires_approval", {
    callId,
    policyReason: Schema.String,
    questions: Schema.optional(Schema.Array(Question)),
    /** Hash of the complete call. An approval must contain this hash. */
    hash: Schema.optional(Schema.String)
  }),
  /**
   * The call may run without asking: the approval mode allows it, or the user has already approved an equal call in a
   * late answer.
   */
  Schema.TaggedStruct("auto_approved", { callId, policyReason: Schema.String, answers: chosen }),
  /** Calls of this tool never need approval. */
  Schema.TaggedStruct("no_approval_needed", { callId }),
  /** `hash`: hash of the call as it was shown to the approver. */
  Schema.TaggedStruct("approved", {
    callId,
    approver: Schema.String,
    answers: chosen,
    hash: Schema.optional(Schema.String),
    /** How far the approval reaches; undefined: for this call alone. */
    scope: Schema.optional(Schema.Literals(ANSWER_SCOPES)),
    /** The rules that the approver added for the scope. */
    rules: Schema.optional(Schema.Array(Subject)),
    /** The run for which the rules hold, if the scope is `run`. */
    run: Schema.optional(Schema.String),
    /** Set if nobody answered, but rules that were added while the call waited allow it: the decision's reason. */
    policyReason: Schema.optional(Schema.String)
  }),
  Schema.TaggedStruct("denied", { callId, approver: Schema.String, reason: Schema.String }),
  /** The turn has received the denial as the call's result. */
  Schema.TaggedStruct("denial_reported", { callId }),
  Schema.TaggedStruct("approval_timeout", { callId }),
  /** The agent withdrew its request for approval: the call was decided elsewhere, and may run. */
  Schema.TaggedStruct("withdrawn", { callId }),
  Schema.TaggedStruct("progress_update", {
    callId,
    stream: Schema.Literals(["stdout", "stderr"]),
    chunk: Schema.String
  }),
  Schema.TaggedStruct("success", { callId, output: Schema.Unknown }),
  /** `unknown`: the outcome is not known because of a crash. */
  Schema.TaggedStruct("execution_error", {
    callId,
    status: Schema.Literals(["error", "unknown", "sandbox_violation"]),
    error: Schema.String,
    /** The user who approved the call after its run had ended. The next equal call may run once without a question. */
    grant: Schema.optional(Schema.String)
  }),
  Schema.TaggedStruct("execution_timeout", { callId }),
  Schema.TaggedStruct("cancelled", { callId, reason: Schema.String })
])
export type Event = typeof Event.Type

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
  /** Ends all processes that the call started. */
  | { readonly _tag: "StopTool"; readonly callId: string | null }
  | { readonly _tag: "ReportResult"; readonly callId: string | null; readonly status: Status }

export interface Data {
  readonly callId: string | null
  readonly turnId: string | null
  readonly toolName: string | null
  /** Why the call was denied; null if it was not. */
  readonly denial: string | null
  /** Answers to the call's questions; null if it has no questions or no answers yet. */
  readonly answers: ReadonlyArray<string> | null
  readonly reported: boolean
  /** Maximum duration of the execution, ms. */
  readonly timeout: number
  readonly limits: Limits
}

/** Time limits of a call, all in ms. */
export interface Limits {
  readonly toolTimeout: number
  readonly maxToolTimeout: number
  /** Maximum time that the call waits for the user; null: no limit. */
  readonly approvalTimeout: number | null
}

/**
 * A call that has not asked for approval within this time counts as running, ms. Some agents do not report the start of
 * a call, and a user's hook may delay the request.
 */
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

/** Rune kinds that are not needed to rebuild the state: their transitions change neither state nor data. */
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
/** Transitions of a call that already has its result: late events are ignored. */
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
