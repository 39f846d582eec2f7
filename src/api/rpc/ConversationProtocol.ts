/** ConversationProtocol: procedures for conversations, for the tool calls of their agents, and for sub-agents. */
import { Effect, Schema } from "effect"
import { Rpc } from "effect/rpc"
import { CallInfo, ConversationInfo, SpawnRequest } from "../../domain/Messages.ts"
import * as Bounds from "../../board/Bounds.ts"
import { AtOnce, command, error, input, procedure, question, Speaks } from "./Procedure.ts"

/** Checks only lengths. The name of the sub-agent is checked later, by the rules for agent names. */
export const spawnRequest = Schema.Struct({
  ...SpawnRequest.fields,
  name: Bounds.name,
  role: Schema.optionalKey(Bounds.reason),
  instructions: Schema.optionalKey(Bounds.text()),
  task: Bounds.text()
})

export const conversations = [
  /** Lists calls without a result: those that wait for approval first, then oldest first. */
  procedure(
    Rpc.make("Calls", { success: Schema.Array(CallInfo) }).annotate(AtOnce, true),
    ({ agents }) => agents.calls
  ),
  /** Lists all conversations, including closed and archived ones. */
  procedure(
    Rpc.make("Conversations", { success: Schema.Array(ConversationInfo) }).annotate(AtOnce, true),
    ({ agents }) => agents.conversations
  ),
  /**
   * Shows a conversation. `name`: the id, a unique prefix of it, or the project's name; empty: the caller's own
   * conversation.
   */
  procedure(question("Conversation", ConversationInfo, "conversation"), ({ agents }, { caller, name }) =>
    agents.conversation(name, caller)
  ),
  procedure(
    Rpc.make("NewConversation", {
      payload: input({ config: Bounds.path, caller: Bounds.caller }),
      success: ConversationInfo,
      error
    }).annotate(Speaks, "acts"),
    ({ agents }, { caller, config }) => agents.newConversation(config, caller)
  ),
  /** Ends all agents of a project; none starts until the project is started again. */
  procedure(command("StopProject", {}, "acts", "conversation"), ({ agents }, { caller, name }) =>
    agents.stopProject(name, caller)
  ),
  procedure(command("StartProject", {}, "acts", "conversation"), ({ agents }, { caller, name }) =>
    agents.startProject(name, caller)
  ),
  procedure(
    command(
      "Pause",
      { inFlight: Schema.Literals(["interrupt", "complete"]), reason: Bounds.reason },
      "acts",
      "conversation"
    ),
    ({ agents }, { caller, inFlight, name, reason }) => agents.pause(name, { inFlight, reason }, caller)
  ),
  procedure(command("Resume", {}, "acts", "conversation"), ({ agents }, { caller, name }) =>
    agents.resume(name, caller)
  ),
  /** Closes a conversation. Returns when all of its agents are stopped and its log is sealed. */
  procedure(
    command("Close", { reason: Bounds.reason, force: Schema.Boolean }, "acts", "conversation"),
    ({ agents, goals }, { caller, force, name, reason }) =>
      agents.conversation(name, caller).pipe(
        Effect.tap(({ conversation }) => goals.stopAll(conversation, caller.by, "its conversation is closed")),
        Effect.andThen(agents.close(name, { reason, force }, caller))
      )
  ),
  procedure(command("Archive", {}, "acts", "conversation"), ({ agents }, { caller, name }) =>
    agents.archive(name, caller)
  ),
  /** `name`: the agent that becomes the sub-agent's parent. */
  procedure(command("Spawn", { request: spawnRequest }, "acts", "agent"), ({ agents }, { caller, name, request }) =>
    agents.spawn(name, request, caller)
  )
] as const
