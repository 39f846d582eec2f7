/**
 * AgentKinds: the kinds of runes of agents and their conversations, with what each says
 * beside its machine's event. Required is what a fold reads; what only tells people may
 * be left out.
 */
import { Schema } from "effect"
import { turnEnds, workKinds } from "../domain/WorkKinds.ts"
import { machineKinds } from "../event-actor/MachineKinds.ts"
import { kind } from "../event-log/EventKinds.ts"
import * as AgentMachine from "./AgentMachine.ts"
import * as ConversationMachine from "./ConversationMachine.ts"
import * as Inbox from "./Inbox.ts"
import * as ToolMachine from "./ToolMachine.ts"
import * as TurnMachine from "./TurnMachine.ts"
import * as WorkerMachine from "./WorkerMachine.ts"

const text = Schema.String
const textOrNull = Schema.NullOr(text)
const mayText = Schema.optional(textOrNull)

const internal = { visibility: "internal" } as const

const moveKinds = machineKinds(WorkerMachine, {
  "worker.moved": {
    fields: {
      sessionSeq: Schema.optional(Schema.Int),
      runId: mayText,
      consecutiveErrors: Schema.optional(Schema.Int),
      totalErrors: Schema.optional(Schema.Int),
      /** Why it stopped for good. */
      fatal: Schema.optional(Schema.NullOr(Schema.Struct({ message: text, remedy: textOrNull })))
    }
  }
})

/** A worker's incarnations, and their moves. */
export const workerKinds = {
  ...moveKinds,
  /** `initial`: what its machine begins with. */
  "worker.started": kind(
    Schema.Struct({ incarnation: Schema.Int, initial: Schema.Record(text, Schema.Unknown), by: Schema.optional(text) })
  )
}

export const lifeKinds = machineKinds(AgentMachine, {
  "agent.budget_exhausted": { fields: { resource: mayText } },
  "agent.failed": { fields: { error: mayText } },
  "agent.terminated": { fields: { reason: mayText } }
})

const turnId = { turn_id: text }

export const turnKinds = machineKinds(TurnMachine, {
  "turn.started": { fields: { ...turnId, agent_id: text, input: mayText } },
  "turn.assistant_delta": { fields: { ...turnId, content: textOrNull } },
  "turn.tool_calls_received": { fields: turnId },
  "turn.tools_finished": { fields: turnId },
  "turn.completed": { fields: { ...turnId, final_output: mayText, usage: Schema.optional(Schema.Unknown) } },
  "turn.interrupted": { fields: turnEnds["turn.interrupted"] },
  "turn.error": { fields: turnEnds["turn.error"] },
  "turn.finalized": { fields: turnId, ...internal }
})

const callId = { call_id: text }

export const toolKinds = machineKinds(ToolMachine, {
  "tool.call": { fields: { ...callId, tool_name: mayText, arguments: Schema.optional(Schema.Unknown) } },
  "tool.approval_requested": { fields: { ...callId, policy_reason: mayText } },
  "tool.approved": { fields: { ...callId, approver: mayText } },
  "tool.denied": { fields: { ...callId, reason: mayText } },
  "tool.started": { fields: callId },
  "tool.progress": { fields: { ...callId, chunk: mayText } },
  "tool.result": {
    fields: {
      ...callId,
      status: ToolMachine.Status,
      output: Schema.optional(Schema.Unknown),
      error: mayText,
      reason: mayText
    }
  }
})

export const conversationKinds = machineKinds(ConversationMachine, {
  "session.suspended": { fields: { reason: mayText } },
  /** Ends the conversation: its stream takes nothing more. */
  "session.closed": { seals: true }
})

export const inboxKinds = machineKinds(Inbox, {})

export const agentKinds = {
  ...workerKinds,
  ...lifeKinds,
  ...workKinds,
  ...turnKinds,
  ...toolKinds,
  ...conversationKinds,
  ...inboxKinds,

  // What is told of an agent beside its machines' moves.
  /** `task`: the message that is its task. */
  "agent.spawned": kind(
    Schema.Struct({
      agent_id: text,
      parent_id: Schema.optional(text),
      config: Schema.optional(Schema.Unknown),
      task: Schema.optional(text)
    })
  ),
  "agent.usage": kind(
    Schema.Struct({
      agent_id: text,
      turn_id: text,
      tokens: Schema.Finite,
      tool_calls: Schema.Finite,
      wall_time: Schema.Finite,
      usd: Schema.Finite
    })
  ),
  "agent.answered": kind(Schema.Struct({ agent_id: text, turn_id: text, parent_id: text })),
  "agent.asked": kind(Schema.Struct({ agent_id: text, question: text })),
  "run.notice": kind(Schema.Struct({ runId: text, text }), { lazy: true }),
  "run.started": kind(Schema.Struct({ runId: text })),
  "run.output": kind(Schema.Struct({ runId: text, text, source: Schema.optional(text) }), { lazy: true }),
  "worktree.kept": kind(Schema.Struct({ path: text })),
  "worktree.removed": kind(Schema.Struct({ path: text }))
}
