/**
 * ConversationHandlers: what each procedure on conversations does.
 */
import { Effect } from "effect"
import { Agents } from "../agents/Agents.ts"
import { type Caller, CommandRefused } from "../domain/Messages.ts"
import { Goals } from "../goals/Goals.ts"
import { Admission } from "./Admission.ts"
import { group } from "./ConversationProtocol.ts"
import { bounded, checkCaller, checkNamed, checkSpawn } from "./Inputs.ts"
import { Limits } from "./Procedure.ts"
import * as Suggestion from "./Suggestion.ts"

interface Named {
  readonly name: string
  readonly caller: Caller
}

const checkReason = (reason: string) => bounded("reason", reason, Limits.reasonLength)

export const layer = group.toLayer(
  Effect.gen(function* () {
    const agents = yield* Agents
    const goals = yield* Goals
    const admit = yield* Admission

    /** On a conversation: checked, admitted, and a name that nobody has with the one that was meant. */
    const command = <A, E>(
      { caller, name }: Named,
      run: Effect.Effect<A, E | CommandRefused>
    ): Effect.Effect<A, E | CommandRefused> =>
      admit.call(
        checkNamed({ name, caller }).pipe(
          Effect.andThen(run),
          Effect.catchIf(
            (error): error is CommandRefused => error instanceof CommandRefused,
            (error) => Effect.flip(Suggestion.ofConversation(agents, name, caller, error))
          )
        )
      )

    return group.of({
      Calls: () => agents.calls,
      Conversations: () => agents.conversations,
      Conversation: (input) => command(input, agents.conversation(input.name, input.caller)),
      NewConversation: ({ caller, config }) =>
        admit.call(
          bounded("config", config, Limits.pathLength).pipe(
            Effect.andThen(checkCaller(caller)),
            Effect.andThen(agents.newConversation(config, caller))
          )
        ),
      Pause: ({ caller, inFlight, name, reason }) =>
        command(
          { name, caller },
          Effect.andThen(checkReason(reason), agents.pause(name, { inFlight, reason }, caller))
        ),
      Resume: (input) => command(input, agents.resume(input.name, input.caller)),
      Close: ({ caller, force, name, reason }) =>
        command(
          { name, caller },
          checkReason(reason).pipe(
            Effect.andThen(agents.conversation(name, caller)),
            Effect.tap(({ conversation }) => goals.stopAll(conversation, caller.by, "its conversation is closed")),
            Effect.andThen(agents.close(name, { reason, force }, caller))
          )
        ),
      Archive: (input) => command(input, agents.archive(input.name, input.caller)),
      Spawn: ({ caller, name, request }) =>
        admit.call(
          checkNamed({ name, caller }).pipe(
            Effect.andThen(checkSpawn(request)),
            Effect.andThen(agents.spawn(name, request, caller)),
            Effect.catchTag("CommandRefused", (error) => Effect.flip(Suggestion.ofAgent(agents, name, caller, error)))
          )
        )
    })
  })
)
