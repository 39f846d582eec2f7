/**
 * AgentChoice: the command with which a user chooses an agent's model and mode.
 *
 * Guarantees: If the live run can change its model or mode, the run is asked first. If it refuses, nothing is written
 * and the caller gets the reason. A choice is durable when the command returns. An idle run that cannot change is
 * ended, so that the next run uses the choice.
 */
import { Effect } from "effect"
import { didYouMean } from "../../config/DidYouMean.ts"
import { type Caller, CommandRefused, type OffersInfo } from "../../domain/Messages.ts"
import { type AgentScope, refuse } from "./AgentScope.ts"
import * as ModelChoice from "./ModelChoice.ts"

export const offered = (agentScope: AgentScope): OffersInfo => {
  const { backend } = agentScope.config()
  const { offers, run } = agentScope.live
  const { commands = [], models = [], modes } = offers
  const { mode, model } = agentScope.life().chosen ?? ModelChoice.NONE
  return {
    conversation: agentScope.setting.conversation,
    project: agentScope.setting.project(),
    agent: agentScope.name,
    backend: backend.type,
    model,
    mode,
    models,
    modes: (modes ?? ModelChoice.modesOf(backend)).filter(({ id }) => ModelChoice.isOffered(backend, id)),
    commands,
    known: run !== undefined ? "live" : Object.keys(offers).length > 0 ? "before" : "not yet"
  }
}

/** A note that a chosen model is not one of those that the agent has reported; "" if it is. */
const unchecked = ({ fullName, live: { offers } }: AgentScope, model: string | null): string => {
  const known = (offers.models ?? []).map(({ id }) => id)
  if (model === null || known.includes(model)) return ""
  const near = didYouMean(model, known)
  const hint = near === undefined ? `See the known ones: agentd set ${fullName}` : `Did you mean ${near}?`
  return ` Nobody could check that the model ${model} exists: the agent has not named it. ${hint}`
}

export const choose = Effect.fnUntraced(function* (
  agentScope: AgentScope,
  given: ModelChoice.ModelChoice & { readonly reset: boolean },
  { by }: Caller
) {
  const { fullName, live, slot } = agentScope
  const before = given.reset ? ModelChoice.NONE : (agentScope.life().chosen ?? ModelChoice.NONE)
  const choice: ModelChoice.ModelChoice = { model: given.model ?? before.model, mode: given.mode ?? before.mode }
  const refusal = ModelChoice.objection(agentScope.config().backend, choice)
  if (refusal !== undefined)
    return yield* new CommandRefused({ code: "unsupported", ...refusal, message: `${fullName}: ${refusal.message}.` })
  const { run } = live
  const asked = given.reset ? undefined : run?.choose?.({ model: given.model, mode: given.mode })
  if (asked !== undefined)
    yield* Effect.mapError(
      asked,
      ({ message, remedy }) =>
        new CommandRefused({ code: "unavailable", message: `${fullName}: ${message}.`, remedy: `${remedy}.` })
    )
  const { eventId } = yield* Effect.catch(
    agentScope.actors.life.ask<{ readonly eventId: number }>({ _tag: "Choose", choice, by }),
    refuse
  )
  const note = unchecked(agentScope, given.model)
  const done = (when: string) => ({ eventId, message: `${fullName}: ${ModelChoice.words(choice)}, ${when}.${note}` })
  if (run === undefined) return done("from its next run on")
  if (asked !== undefined) return done("from now on")
  if (live.turnId !== undefined || !live.turns)
    return done(`from its next run on; to begin that now: agentd restart ${fullName}`)
  live.ending(run.runId)
  yield* slot.stop(run.runId)
  return done("from its next turn on")
})
