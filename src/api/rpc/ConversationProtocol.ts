/** ConversationProtocol: procedures for conversations, for their agents' tool calls, and for sub-agents. */
import { Effect, Schema } from "effect"
import { Rpc } from "effect/rpc"
import { CallInfo, ConversationInfo, SpawnRequest } from "../../domain/Messages.ts"
import * as Bounds from "../../board/Bounds.ts"
import { AtOnce, command, error, input, procedure, question, settled, Speaks } from "./Procedure.ts"

/**
 * The request for a sub-agent. Only lengths are checked here; the sub-agent's name is checked later, by the rules for
 * agent names.
 */
export const spawnRequest = Schema.Struct({
  ...SpawnRequest.fields,
  name: Bounds.name,
  role: Schema.optionalKey(Bounds.reason),
  instructions: Schema.optionalKey(Bounds.text()),
  task: Bounds.text()
})

export const conversations = [
  /** Lists calls that have no result yet. Calls that wait for approval come first, then the oldest. */
  procedure(Rpc.make("Calls", { success: Schema.Array(CallInfo) }).annotate(AtOnce, true), (features) =>
    Effect.andThen(settled(features), features.agents.calls)
  ),
  /** Lists all conversations, including closed and archived ones. */
  procedure(Rpc.make("Conversations", { success: Schema.Array(ConversationInfo) }).annotate(AtOnce, true), (features) =>
    Effect.andThen(settled(features), features.agents.conversations)
  ),
  /**
   * Shows a conversation. `name`: the conversation's id, a unique prefix of it, or the project's name; if empty, the
   * caller's own conversation is shown.
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
  /** Stops all agents of a project. They do not start again until the project is started. */
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
  /** Closes a conversation. Returns when all its agents have stopped and its log is sealed. */
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
  /** Starts a sub-agent. `name`: the agent that becomes its parent. */
  procedure(command("Spawn", { request: spawnRequest }, "acts", "agent"), ({ agents }, { caller, name, request }) =>
    agents.spawn(name, request, caller)
  )
] as const
