/**
 * CurrentRun: the run of one agent, as the agent's actors use it: what is known about the run, operations on it, and
 * new ids for runs and turns.
 */
import { Context, Effect, Random } from "effect"
import type { Run } from "../../runs/Backend.ts"
import * as Ids from "../../domain/Ids.ts"
import type { InboxState, LifeState, TurnState, WorkerState } from "../machines/AgentStates.ts"
import type { ToolsState } from "../machines/ToolsState.ts"
import type { AgentLatch } from "./AgentLatch.ts"
import type { LiveRun } from "../run/LiveRun.ts"
import type { RunSupervisor } from "../run/RunSupervisor.ts"

export class CurrentRun extends Context.Service<
  CurrentRun,
  {
    readonly live: LiveRun
    readonly slot: RunSupervisor
    /**
     * Returns a unique id for a turn or run that starts with the rune `eventId`. A repeated decision gets the same id.
     */
    readonly newId: (at: number, eventId: number) => string
    /** Makes the agent's actors look for work. */
    readonly look: () => void
    /** Ends the turn of the live run, and the processes that its calls started. */
    readonly interrupt: (run: Run) => Effect.Effect<void>
    /** Open when the agent is not started, or when it has ended and its end was reported. */
    readonly over: AgentLatch
    /** Open when no turn is in progress. */
    readonly idle: AgentLatch
    /** Open when the run of an earlier daemon is adopted or known to be lost. */
    readonly adopted: AgentLatch
    /** The committed states of the agent's other actors, for code outside the actors. */
    readonly now: () => {
      readonly inbox: InboxState
      readonly life: LifeState
      readonly tools: ToolsState
      readonly turn: TurnState
      readonly worker: WorkerState
    }
  }
>()("agentd/agents/CurrentRun") {}

/** True until it is known whether an earlier daemon's run can be adopted. */
export const isAwaited = (
  { adopted, slot }: Pick<CurrentRun["Service"], "adopted" | "slot">,
  { now: worker }: WorkerState,
  recoveredTo: number
): boolean => {
  if (adopted.isOpen()) return false
  const isUnknown =
    worker !== undefined &&
    worker.entered <= recoveredTo &&
    (worker.state === "Spawning" || worker.state === "Running") &&
    slot.current() !== worker.data.runId
  return isUnknown || slot.current() !== undefined
}

export const whenAdopted = (place: CurrentRun["Service"], recoveredTo: number): Effect.Effect<void> =>
  Effect.suspend(() => (isAwaited(place, place.now().worker, recoveredTo) ? place.adopted.await : Effect.void))

/** The random part of ids is drawn only once, so that a repeated decision gets the same ids. */
export const ids = Effect.map(
  Effect.all([Random.nextInt, Random.nextInt, Random.nextInt]),
  (salt) =>
    (at: number, eventId: number): string =>
      Ids.derived(salt.join("/"), at, eventId)
)
