/**
 * AgentChoice: the command by which a person chooses an agent's model and mode.
 *
 * Guarantees: the choice is durable before anything is told of it; a live run is told of it, and one
 * that cannot be told and does nothing ends for it: the next turn begins with it.
 */
import { Effect } from "effect"
import { type Caller, CommandRefused } from "../domain/Messages.ts"
import { type AgentScope, refuse } from "./AgentScope.ts"
import * as Choice from "./Choice.ts"

export const choose = Effect.fnUntraced(function* (
  tree: AgentScope,
  given: Choice.Choice & { readonly reset: boolean },
  { by }: Caller
) {
  const { fullName, live, slot } = tree
  const before = given.reset ? Choice.NONE : (tree.life().chosen ?? Choice.NONE)
  const choice: Choice.Choice = { model: given.model ?? before.model, mode: given.mode ?? before.mode }
  const refusal = Choice.objection(tree.config().backend, choice)
  if (refusal !== undefined)
    return yield* new CommandRefused({ ...refusal, message: `${fullName}: ${refusal.message}.` })
  const { eventId } = yield* Effect.catch(
    tree.actors.life.ask<{ readonly eventId: number }>({ _tag: "Choose", choice, by }),
    refuse
  )
  const { run } = live
  const done = (when: string) => ({ eventId, message: `${fullName}: ${Choice.words(choice)}, ${when}.` })
  if (run === undefined) return done("from its next run on")
  if (run.choose !== undefined && !given.reset) {
    yield* run.choose(choice)
    return done("from now on")
  }
  if (live.turnId !== undefined || !live.turns)
    return done(`from its next run on; to begin that now: agentd restart ${fullName}`)
  live.ending(run.runId)
  yield* slot.stop(run.runId)
  return done("from its next turn on")
})
