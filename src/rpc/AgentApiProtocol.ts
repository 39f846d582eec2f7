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
import { Done, Report, SpawnRequest } from "../domain/Messages.ts"
import { error } from "./Procedure.ts"

const run = { runId: Schema.String }

/** Who speaks. */
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
      /** Its turn carries it already. */
      carried: Schema.Boolean
    })
  ),
  /** So many more wait behind them. */
  more: Schema.Int
})
export type VoiceInboxReply = typeof VoiceInboxReply.Type

export const group = RpcGroup.make(
  Rpc.make("Voice", { payload: run, success: VoiceInfo, error }),
  Rpc.make("VoiceInbox", { payload: run, success: VoiceInboxReply, error }),
  /** To an agent of its own conversation, by name. */
  Rpc.make("VoiceMessage", { payload: { ...run, agent: Schema.String, text: Schema.String }, success: Done, error }),
  Rpc.make("VoiceReport", { payload: { ...run, report: Report }, success: Done, error }),
  Rpc.make("VoiceAsk", { payload: { ...run, question: Schema.String }, success: Done, error }),
  Rpc.make("VoiceSpawn", { payload: { ...run, request: SpawnRequest }, success: Done, error })
)
