/**
 * ConversationProtocol: the procedures on conversations, on the tool calls of
 * their agents, and on sub-agents.
 */
import { Schema } from "effect"
import { Rpc, RpcGroup } from "effect/rpc"
import { CallInfo, Caller, CommandRefused, ConversationInfo, Done, SpawnRequest } from "../domain/Messages.ts"
import { error, named } from "./Procedure.ts"

export const group = RpcGroup.make(
  /** Those without a result yet, those that ask first, oldest first. */
  Rpc.make("Calls", { success: Schema.Array(CallInfo) }),
  /** Closed and archived ones, too. */
  Rpc.make("Conversations", { success: Schema.Array(ConversationInfo) }),
  /** By its id, a unique beginning of it, or its project's name; empty: the caller's own. */
  Rpc.make("Conversation", { payload: named, success: ConversationInfo, error: CommandRefused }),
  Rpc.make("NewConversation", {
    payload: { config: Schema.String, caller: Caller },
    success: ConversationInfo,
    error
  }),
  Rpc.make("Pause", {
    payload: { ...named, inFlight: Schema.Literals(["interrupt", "complete"]), reason: Schema.String },
    success: Done,
    error
  }),
  Rpc.make("Resume", { payload: named, success: Done, error }),
  /** Answers when every agent of it is stopped and its log is sealed. */
  Rpc.make("Close", { payload: { ...named, reason: Schema.String, force: Schema.Boolean }, success: Done, error }),
  Rpc.make("Archive", { payload: named, success: Done, error }),
  /** `name`: the parent. */
  Rpc.make("Spawn", { payload: { ...named, request: SpawnRequest }, success: Done, error })
)
