/**
 * AgentKinds: the kinds of runes of agents and conversations, and the fields that each rune has besides its machine's
 * event. Fields that are needed to rebuild a state are required. Fields that are only informative may be missing.
 */
import { Schema, Struct } from "effect"
import { UncountedReason } from "../../runs/Outcome.ts"
import { Spending } from "../../domain/Messages.ts"
import { ArchivedSpending, usageKinds } from "../../domain/UsageKinds.ts"
import { workKinds } from "../../domain/WorkKinds.ts"
import { machineKinds } from "../../core/event-actor/MachineKinds.ts"
import { kind, reader } from "../../core/event-log/EventKinds.ts"
import { choiceKinds } from "../actors/ModelChoice.ts"
import * as AgentMachine from "./AgentMachine.ts"
import * as ConversationMachine from "./ConversationMachine.ts"
import * as Inbox from "./Inbox.ts"
import * as ToolMachine from "./ToolMachine.ts"
import { turnKinds } from "./TurnKinds.ts"
import * as WorkerMachine from "./WorkerMachine.ts"

const text = Schema.String
const textOrNull = Schema.NullOr(text)
const mayText = Schema.optional(textOrNull)
const mayAny = Schema.optional(Schema.Unknown)

const moveKinds = machineKinds(WorkerMachine, {
  "worker.moved": {
    fields: {
      sessionSeq: Schema.optional(Schema.Int),
      runId: mayText,
      consecutiveErrors: Schema.optional(Schema.Int),
      totalErrors: Schema.optional(Schema.Int),
      /** Limit on the total number of errors. Present only if the count is near it. */
      maxTotalErrors: Schema.optional(Schema.Int),
      /** Why the worker stopped permanently; null or absent if it did not. */
      fatal: Schema.optional(Schema.NullOr(Schema.Struct({ message: text, remedy: textOrNull })))
    }
  }
})

/** Data of a worker at the start of its agent. `WorkerMachine.initial` adds fields that older logs do not contain. */
const workerData = {
  mode: Schema.Literals(["inbox", "loop"]),
  limits: Schema.Struct({ maxConsecutiveErrors: Schema.Finite, maxTotalErrors: Schema.Finite }),
  backoff: WorkerMachine.Terms.fields.backoff,
  graceMillis: Schema.Finite,
  cwd: textOrNull,
  branch: textOrNull,
  ports: Schema.optionalKey(WorkerMachine.PortBlock),
  sessionSeq: Schema.Int,
  runId: textOrNull,
  pid: Schema.NullOr(Schema.Int),
  sessionId: textOrNull,
  fallback: Schema.optionalKey(Schema.Int),
  sessions: Schema.optionalKey(Schema.Record(text, textOrNull)),
  prompt: textOrNull,
  messageIds: Schema.Array(text),
  cutShort: textOrNull,
  lastRunAt: Schema.NullOr(Schema.Finite),
  maxRunsPerHour: Schema.NullOr(Schema.Finite),
  recentRuns: Schema.Array(Schema.Finite),
  consecutiveErrors: Schema.Int,
  totalErrors: Schema.Int,
  failures: Schema.Int,
  lastError: textOrNull,
  uncounted: Schema.Struct({ reason: Schema.NullOr(UncountedReason), count: Schema.Int }),
  taken: Schema.optionalKey(Schema.Int),
  uncountedUntil: Schema.NullOr(Schema.Finite),
  fatal: Schema.NullOr(Schema.Struct({ message: text, remedy: text })),
  stoppedBy: textOrNull
} satisfies { readonly [F in keyof WorkerMachine.Data]: Schema.Codec<WorkerMachine.Data[F]> }

export const workerKinds = {
  ...moveKinds,
  /** `initial`: the machine's data at the start. */
  "worker.started": kind(
    Schema.Struct({
      incarnation: Schema.Int,
      initial: Schema.Struct(workerData).mapFields(Struct.map(Schema.optionalKey)),
      by: Schema.optional(text)
    })
  )
}

const agentId = { agent_id: mayText }

export const lifeKinds = machineKinds(AgentMachine, {
  "agent.spawning": { fields: { ...agentId, role: mayText, model: mayText, parent_id: mayText } },
  "agent.ready": { fields: agentId },
  "agent.busy": { fields: { ...agentId, turn_id: mayText } },
  "agent.idle": { fields: agentId },
  "agent.budget_exhausted": { fields: { ...agentId, resource: mayText } },
  "agent.failed": { fields: { ...agentId, error: mayText } },
  "agent.terminated": { fields: { ...agentId, reason: mayText, stats: mayAny } }
})

const callId = { call_id: text }

export const toolKinds = machineKinds(ToolMachine, {
  "tool.call": { fields: { ...callId, tool_name: mayText, arguments: mayAny } },
  "tool.approval_requested": { fields: { ...callId, policy_reason: mayText } },
  "tool.approved": { fields: { ...callId, approver: mayText } },
  "tool.denied": { fields: { ...callId, reason: mayText } },
  "tool.approval_withdrawn": { fields: callId },
  "tool.started": { fields: callId },
  "tool.progress": { fields: { ...callId, stream: mayText, chunk: mayText } },
  "tool.result": {
    fields: {
      ...callId,
      status: ToolMachine.Status,
      output: mayAny,
      error: mayText,
      reason: mayText
    }
  }
})

/** Data of a conversation, as stored in its summary. */
const conversationData = Schema.Struct({
  limits: Schema.Struct({ maxFatalStops: Schema.Finite, maxTurnErrors: Schema.NullOr(Schema.Finite) }),
  conversationId: textOrNull,
  rootAgentId: textOrNull,
  turnIds: Schema.Array(text),
  turns: Schema.Int,
  turnErrors: Schema.Int,
  fatalStops: Schema.Int,
  suspension: Schema.NullOr(Schema.Struct({ reason: text, budgetInfo: Schema.Unknown })),
  because: Schema.NullOr(Schema.Struct({ by: text, reason: text }))
} satisfies {
  readonly [F in Exclude<keyof ConversationMachine.Data, "stopped">]: Schema.Codec<ConversationMachine.Data[F], unknown>
})

/** The summary of an archived conversation; enough to list the conversation. */
export const Summary = Schema.Struct({
  conversation: text,
  project: text,
  config: text,
  agents: Schema.Array(text),
  /** The conversation's data when it was closed. */
  data: conversationData,
  spent: Schema.Struct({
    tokens: Schema.Finite,
    toolCalls: Schema.Finite,
    wallTime: Schema.Finite,
    usd: Schema.Finite
  }),
  limits: Spending,
  /** The file to which the event payloads were moved. Written only by older versions of agentd. */
  file: Schema.optionalKey(text),
  /** Usage by agent; absent in summaries of older versions of agentd, which stored only the sums. */
  spending: Schema.optionalKey(ArchivedSpending),
  /** Hash of the config that the user trusted; absent in summaries of older versions of agentd. */
  trusted: Schema.optionalKey(textOrNull)
})
export type Summary = typeof Summary.Type

export const conversationKinds = machineKinds(ConversationMachine, {
  "session.created": { fields: { conversation_id: mayText, config: mayAny } },
  "session.activated": { fields: { root_agent_id: mayText } },
  "session.paused": { fields: { reason: mayText } },
  "session.suspended": { fields: { reason: mayText, budget_info: mayAny } },
  "session.closing": { fields: { reason: mayText } },
  /** Ends the conversation: its stream then rejects all runes. */
  "session.closed": { fields: { final_stats: mayAny }, seals: true },
  "session.archived": { fields: { conversation_id: mayText, summary: Summary, archive: mayAny } }
})

export const inboxKinds = machineKinds(Inbox, {})

export const memoryKinds = {
  /**
   * An agent's context was compacted. `from`, `to`: estimated sizes in tokens. `summarised`: number of entries that
   * were summarised.
   */
  "agent.compacted": kind(
    Schema.Struct({
      run_id: text,
      turn_id: textOrNull,
      from: Schema.Int,
      to: Schema.Int,
      cut_results: Schema.Int,
      summarised: Schema.Int
    })
  )
}

export const noticeKinds = { "run.notice": kind(Schema.Struct({ runId: text, text }), { lazy: true }) }

export const forgottenKinds = {
  /** A run could not continue the session of the previous run. */
  "run.memory_lost": kind(Schema.Struct({ runId: text, text }))
}

export const agentKinds = {
  ...workerKinds,
  ...lifeKinds,
  ...workKinds,
  ...turnKinds,
  ...toolKinds,
  ...conversationKinds,
  ...inboxKinds,

  // Kinds that are not transitions of a machine.
  /** `task`: id of the message that contains the agent's task. */
  "agent.spawned": kind(
    Schema.Struct({
      agent_id: text,
      parent_id: Schema.optional(text),
      config: mayAny,
      by: Schema.optional(text),
      task: Schema.optional(text)
    })
  ),
  ...usageKinds,
  "agent.answered": kind(Schema.Struct({ agent_id: text, turn_id: text, parent_id: text })),
  "agent.asked": kind(Schema.Struct({ agent_id: text, turn_id: mayText, question: text })),
  ...memoryKinds,
  ...choiceKinds,
  ...noticeKinds,
  ...forgottenKinds,
  "run.background": kind(
    Schema.Struct({
      runId: text,
      works: Schema.Array(Schema.Struct({ id: text, kind: text, text, at: Schema.optional(Schema.Finite) }))
    }),
    { lazy: true }
  ),
  /** The agent reached a limit that prevents endless work, or a call was not answered in time. */
  "agent.bound_reached": kind(
    Schema.Struct({ agent_id: text, text, call_id: Schema.optional(text), turn_id: Schema.optionalKey(text) })
  ),
  "run.started": kind(Schema.Struct({ runId: text, agent: Schema.optional(text) })),
  /** A part of the model's thinking before its answer. */
  "run.thought": kind(Schema.Struct({ runId: text, text }), { lazy: true }),
  "run.output": kind(Schema.Struct({ runId: text, text, source: Schema.optional(text) }), { lazy: true }),
  "worktree.kept": kind(Schema.Struct({ path: text, reason: mayText, detail: mayText, teardown: mayText })),
  /** `teardown`: why the tear-down command failed; absent if it did not. */
  "worktree.removed": kind(Schema.Struct({ path: text, teardown: mayText }))
}

export const readAgent = reader(agentKinds)
