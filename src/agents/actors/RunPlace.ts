/**
 * RunPlace: the one run of an agent, as its actors reach it: its known state, the operations on it, and the ids of runs
 * and turns.
 */
import { Context, Effect, Random } from "effect"
import type { Run } from "../../runs/Backend.ts"
import * as Ids from "../../domain/Ids.ts"
import type { InboxState, TurnState, WorkerState } from "../machines/AgentStates.ts"
import type { Gate } from "./Gate.ts"
import type { LiveRun } from "../run/LiveRun.ts"
import type { RunSupervisor } from "../run/RunSupervisor.ts"

export class RunPlace extends Context.Service<
  RunPlace,
  {
    readonly live: LiveRun
    readonly slot: RunSupervisor
    /** An id for what begins with the rune `eventId`: unique, and the same for the same decision. */
    readonly newId: (at: number, eventId: number) => string
    /** Makes the agent's actors look for work. */
    readonly look: () => void
    /** Ends the turn of the live run, and the processes that its calls started. */
    readonly interrupt: (run: Run) => Effect.Effect<void>
    /** Open while the agent has no life, or its life has ended and the end is reported. */
    readonly over: Gate
    /** Open while no turn is under way. */
    readonly idle: Gate
    /** Open once the run of an earlier daemon is adopted, or is known to be lost. */
    readonly adopted: Gate
    /** The committed states of the agent's other actors, for code outside the actors. */
    readonly now: () => { readonly inbox: InboxState; readonly turn: TurnState; readonly worker: WorkerState }
  }
>()("agentd/agents/RunPlace") {}

/** Whether the fate of an earlier daemon's run is still unknown. */
export const isAwaited = (
  { adopted, slot }: Pick<RunPlace["Service"], "adopted" | "slot">,
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

/** Waits until the fate of an earlier daemon's run is known, if there is one. */
export const whenAdopted = (place: RunPlace["Service"], recoveredTo: number): Effect.Effect<void> =>
  Effect.suspend(() => (isAwaited(place, place.now().worker, recoveredTo) ? place.adopted.await : Effect.void))

/** Randomness is drawn once, here: decisions must be deterministic. */
export const ids = Effect.map(
  Effect.all([Random.nextInt, Random.nextInt, Random.nextInt]),
  (salt) =>
    (at: number, eventId: number): string =>
      Ids.derived(salt.join("/"), at, eventId)
)
