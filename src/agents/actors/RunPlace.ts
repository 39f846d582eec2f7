/**
 * RunPlace: the one run of an agent, as its actors reach it: what is known of it, what
 * can be done to it, and the ids of runs and turns.
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
    /** An id for what begins with the rune `eventId`: never used twice, and the same for the same decision. */
    readonly newId: (at: number, eventId: number) => string
    /** Has its actors look whether there is something to do. */
    readonly look: () => void
    /** Ends the turn of the live run, and what its calls have begun. */
    readonly interrupt: (run: Run) => Effect.Effect<void>
    /** Open while the agent has no life, or one that has ended and whose end is told. */
    readonly over: Gate
    /** Open while no turn is under way. */
    readonly idle: Gate
    /** Open once the run that an earlier daemon left is taken up, or is known to be lost. */
    readonly adopted: Gate
    /** The other actors of the agent, as committed: for what runs beside them. */
    readonly now: () => { readonly inbox: InboxState; readonly turn: TurnState; readonly worker: WorkerState }
  }
>()("agentd/agents/RunPlace") {}

/** Whether it is not known yet what has become of the run that an earlier daemon left. */
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

/** Waits until that is known, where an earlier daemon left one. */
export const whenAdopted = (place: RunPlace["Service"], recoveredTo: number): Effect.Effect<void> =>
  Effect.suspend(() => (isAwaited(place, place.now().worker, recoveredTo) ? place.adopted.await : Effect.void))

/** Chance is taken once: decisions take none. */
export const ids = Effect.map(
  Effect.all([Random.nextInt, Random.nextInt, Random.nextInt]),
  (salt) =>
    (at: number, eventId: number): string =>
      Ids.derived(salt.join("/"), at, eventId)
)
