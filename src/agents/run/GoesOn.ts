/**
 * GoesOn: decides whether a turn makes its next request to the model, when the run asks.
 *
 * Guarantees: a turn that reaches a limit of its agent, project or machine makes no further request. The turn is then
 * ended by the limit, so the question gets no answer.
 */
import { Effect } from "effect"
import type { RunEvent } from "../../runs/Backend.ts"
import type { AgentAllowance } from "../actors/AgentAllowance.ts"
import { isActive } from "../machines/AgentStates.ts"
import type { RunActors } from "./RunActors.ts"

type Question = Extract<RunEvent, { readonly _tag: "GoesOn" }>

/** Lets the run go on if its turn may go on when the usage that was told before is counted. */
export const decide = (
  { go }: Question,
  { life, tools, turn }: Pick<RunActors, "life" | "tools" | "turn">,
  { endsTurn }: Pick<AgentAllowance, "endsTurn">,
  turnId = ""
): Effect.Effect<void> =>
  // messages are answered in order, so the ones about the usage are counted then
  tools.ask<void>({ _tag: "Paid", turnId, spent: {} }).pipe(
    Effect.matchEffect({
      // the agent has ended, or its store takes nothing: the turn ends, or the next daemon answers
      onFailure: () => Effect.void,
      onSuccess: () => (isActive(turn.state) && !endsTurn(life.state.spent, turnId) ? go : Effect.void)
    })
  )
