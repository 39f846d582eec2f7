/**
 * GoesOn: decides whether a turn makes its next request to the model, when the run asks.
 *
 * Guarantees: a turn that a spent budget of its agent has ended makes no further request.
 */
import { Effect } from "effect"
import type { ActorHandle } from "../../core/event-actor/ActorHandle.ts"
import type { RunEvent } from "../../runs/Backend.ts"
import type { ToolsMessage, TurnMessage } from "../machines/AgentMessages.ts"
import { isActive, type TurnState } from "../machines/AgentStates.ts"
import type { ToolsState } from "../machines/ToolsState.ts"

type Question = Extract<RunEvent, { readonly _tag: "GoesOn" }>

interface Actors {
  readonly tools: ActorHandle<ToolsState, ToolsMessage>
  readonly turn: ActorHandle<TurnState, TurnMessage>
}

/** Lets the run go on if its turn is still active when the usage that was told before is counted. */
export const decide = ({ go }: Question, { tools, turn }: Actors, turnId = ""): Effect.Effect<void> =>
  // messages are answered in order, so the ones about the usage are counted then
  tools
    .ask<void>({ _tag: "Paid", turnId, spent: {} })
    .pipe(Effect.ignore, Effect.andThen(Effect.suspend(() => (isActive(turn.state) ? go : Effect.void))))
