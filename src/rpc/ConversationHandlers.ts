/**
 * ConversationHandlers: what each procedure on conversations does.
 */
import { Effect } from "effect"
import { Agents } from "../agents/Agents.ts"
import { Goals } from "../goals/Goals.ts"
import { group } from "./ConversationProtocol.ts"

export const layer = group.toLayer(
  Effect.gen(function* () {
    const agents = yield* Agents
    const goals = yield* Goals
    return group.of({
      Calls: () => agents.calls,
      Conversations: () => agents.conversations,
      Conversation: ({ caller, name }) => agents.conversation(name, caller),
      NewConversation: ({ caller, config }) => agents.newConversation(config, caller),
      Pause: ({ caller, inFlight, name, reason }) => agents.pause(name, { inFlight, reason }, caller),
      Resume: ({ caller, name }) => agents.resume(name, caller),
      Close: ({ caller, force, name, reason }) =>
        agents.conversation(name, caller).pipe(
          Effect.tap(({ conversation }) => goals.stopAll(conversation, caller.by, "its conversation is closed")),
          Effect.andThen(agents.close(name, { reason, force }, caller))
        ),
      Archive: ({ caller, name }) => agents.archive(name, caller),
      Spawn: ({ caller, name, request }) => agents.spawn(name, request, caller)
    })
  })
)
