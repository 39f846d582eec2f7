/**
 * AgentApiProtocol: what a managed agent may ask of the daemon for itself, through
 * `agentd mcp`. It names itself by its run's id.
 *
 * Guarantees: a run that is over is refused; so is what the agent's `may` does not
 * name, with that field's name; nothing reaches beyond the agent's own
 * conversation. It tells agents apart; it does not lock out a process of the same
 * user, which can reach this socket anyway.
 */
import { Schema } from "effect"
import { Rpc, RpcGroup } from "effect/rpc"
import { VOICES } from "../config/AgentConfig.ts"
import { Done, Report } from "../domain/Messages.ts"
import * as Bounds from "./Bounds.ts"
import { spawnRequest } from "./ConversationProtocol.ts"
import { Limits } from "./Limits.ts"
import { error, input } from "./Procedure.ts"

const run = { runId: Bounds.name }

const report = Schema.Struct({
  ...Report.fields,
  summary: Bounds.text(),
  evidence: Bounds.list(Bounds.line(Limits.evidence.length), Limits.evidence.count, "Name the ones that prove it.")
})

/** The speaking agent. */
export const VoiceInfo = Schema.Struct({
  conversation: Schema.String,
  agent: Schema.String,
  may: Schema.Array(Schema.Literals(VOICES))
})
export type VoiceInfo = typeof VoiceInfo.Type

/** As much of an inbox as fits into one answer. */
export const VoiceInboxReply = Schema.Struct({
  /** Oldest first. */
  messages: Schema.Array(
    Schema.Struct({
      messageId: Schema.String,
      from: Schema.String,
      text: Schema.String,
      at: Schema.Finite,
      /** True where the agent's turn carries the message already. */
      carried: Schema.Boolean
    })
  ),
  /** So many more wait behind them. */
  more: Schema.Int
})
export type VoiceInboxReply = typeof VoiceInboxReply.Type

export const group = RpcGroup.make(
  Rpc.make("Voice", { payload: input(run), success: VoiceInfo, error }),
  Rpc.make("VoiceInbox", { payload: input(run), success: VoiceInboxReply, error }),
  /** To an agent of its own conversation, by name. */
  Rpc.make("VoiceMessage", {
    payload: input({ ...run, agent: Bounds.name, text: Bounds.text() }),
    success: Done,
    error
  }),
  Rpc.make("VoiceReport", { payload: input({ ...run, report }), success: Done, error }),
  Rpc.make("VoiceAsk", { payload: input({ ...run, question: Bounds.text() }), success: Done, error }),
  Rpc.make("VoiceSpawn", { payload: input({ ...run, request: spawnRequest }), success: Done, error })
)
