/**
 * ConversationProtocol: the procedures on conversations, on the tool calls of
 * their agents, and on sub-agents.
 */
import { Schema } from "effect"
import { Rpc, RpcGroup } from "effect/rpc"
import { CallInfo, CommandRefused, ConversationInfo, Done, SpawnRequest } from "../domain/Messages.ts"
import * as Bounds from "./Bounds.ts"
import { About, AtOnce, error, input } from "./Procedure.ts"

/** A sub-agent's name is checked where names are; here only that nothing is beyond its bound. */
export const spawnRequest = Schema.Struct({
  ...SpawnRequest.fields,
  name: Bounds.name,
  role: Schema.optionalKey(Bounds.reason),
  instructions: Schema.optionalKey(Bounds.text()),
  task: Bounds.text()
})

export const group = RpcGroup.make(
  /** Lists calls without a result yet, the asking ones first, oldest first. */
  Rpc.make("Calls", { success: Schema.Array(CallInfo) }).annotate(AtOnce, true),
  /** Closed and archived ones, too. */
  Rpc.make("Conversations", { success: Schema.Array(ConversationInfo) }).annotate(AtOnce, true),
  /** By its id, a unique beginning of it, or its project's name; empty: the caller's own. */
  Rpc.make("Conversation", { payload: input(Bounds.named), success: ConversationInfo, error: CommandRefused }).annotate(
    About,
    "conversation"
  ),
  Rpc.make("NewConversation", {
    payload: input({ config: Bounds.path, caller: Bounds.caller }),
    success: ConversationInfo,
    error
  }),
  Rpc.make("Pause", {
    payload: input({ ...Bounds.named, inFlight: Schema.Literals(["interrupt", "complete"]), reason: Bounds.reason }),
    success: Done,
    error
  }).annotate(About, "conversation"),
  Rpc.make("Resume", { payload: input(Bounds.named), success: Done, error }).annotate(About, "conversation"),
  /** Answers when every agent of it is stopped and its log is sealed. */
  Rpc.make("Close", {
    payload: input({ ...Bounds.named, reason: Bounds.reason, force: Schema.Boolean }),
    success: Done,
    error
  }).annotate(About, "conversation"),
  Rpc.make("Archive", { payload: input(Bounds.named), success: Done, error }).annotate(About, "conversation"),
  /** `name`: the parent. */
  Rpc.make("Spawn", { payload: input({ ...Bounds.named, request: spawnRequest }), success: Done, error }).annotate(
    About,
    "agent"
  )
)
