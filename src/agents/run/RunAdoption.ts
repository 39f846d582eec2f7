/**
 * RunAdoption: rebuilds the state of an adopted run from events that an earlier daemon processed: its turn and call
 * ids, its background work and its usage. No event is reported again.
 *
 * Guarantees: Calls keep their ids. Turns and calls that had ended remain ended.
 */
import { Effect } from "effect"
import type { Run, RunEvent } from "../../runs/Backend.ts"
import { isActive, type TurnState } from "../machines/AgentStates.ts"
import type { LiveRun } from "./LiveRun.ts"
import type { RunActors } from "./RunActors.ts"
import type { RunRequest } from "./RunSupervisor.ts"
import { get, lateName, type ToolsState, waits } from "../machines/ToolsState.ts"
import type { UsageMeter } from "./UsageMeter.ts"

export interface Recalling {
  readonly live: LiveRun
  readonly meter: UsageMeter
  readonly turn: () => TurnState
  readonly tools: () => ToolsState
}

/** Applies an event that is already in the log. */
export const recall = (
  { live, meter, tools, turn }: Recalling,
  run: Run,
  { spec }: RunRequest,
  event: RunEvent
): void => {
  switch (event._tag) {
    case "TurnOpened": {
      // if the run started this turn by itself and the turn has ended, the turn needs no agentd id
      const { data } = turn()
      return live.open(event.turnId, isActive(turn()) ? (data.turnId ?? event.turnId) : event.turnId)
    }
    case "ToolCall":
      if (live.turnId === undefined) return
      live.pause()
      return void live.called(run, event, spec.cwd, true)
    case "ApprovalRequested": {
      const callId = live.callOf(run, event.callId) ?? ""
      const isLate = get(tools().open, lateName(callId)) !== undefined
      return live.asks(isLate ? live.rename(callId) : callId, event)
    }
    case "ToolResult":
      return live.settled(live.callOf(run, event.callId) ?? "")
    case "Usage":
      meter.take(event)
      return void meter.takeUntold()
    case "Background":
      return live.works(event.works)
    case "Notice":
      return live.lack(event)
    case "TurnCompleted":
    case "TurnInterrupted":
    case "TurnError":
      live.end()
      live.worked ||= event._tag === "TurnCompleted"
      for (const [callId] of live.calls) live.settled(callId)
      return void meter.takeTurn()
    default:
      return
  }
}

/**
 * Sends the decisions of an earlier daemon to the run again. The run ignores an answer that it already has, and
 * receives an answer that the earlier daemon could not send. Calls that wait for the user get no answer.
 */
const answers = (live: LiveRun, tools: ToolsState): Effect.Effect<void> =>
  Effect.forEach(
    live.calls,
    ([callId, { id, isStored, run }]) => {
      // the decision on a call that has just asked under a new name is still to come
      if (live.origin(lateName(callId)) !== undefined || (!isStored && callId.endsWith(lateName(""))))
        return Effect.void
      const call = get(tools.open, callId)
      if (call === undefined) return run.answer(id, { behavior: "deny", message: "it was decided before" })
      // a call that did not ask for approval was recorded as running, but nobody approved it
      if (waits(call) || call.snapshot.state !== "executing" || call.asked === false) return Effect.void
      const { answers } = call.snapshot.data
      return run.answer(id, answers === null ? { behavior: "allow" } : { behavior: "allow", answers })
    },
    { discard: true }
  )

/** Does so as soon as the tools know the calls that no earlier daemon had stored. */
export const answerAgain = (live: LiveRun, run: Run, tools: RunActors["tools"]): Effect.Effect<void> =>
  tools.ask({ _tag: "Heard" }).pipe(
    Effect.andThen(Effect.suspend(() => (live.run === run ? answers(live, tools.state) : Effect.void))),
    Effect.catch((error) => Effect.logWarning("the answers of a run wait", error))
  )
