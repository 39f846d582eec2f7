/** RunActors: the actors of an agent to which the events of its run are told. */
import type { ActorHandle } from "../../core/event-actor/ActorHandle.ts"
import type { LifeMessage, ToolsMessage, TurnMessage, WorkerMessage } from "../machines/AgentMessages.ts"
import type { LifeState, TurnState, WorkerState } from "../machines/AgentStates.ts"
import type { ToolsState } from "../machines/ToolsState.ts"

export interface RunActors {
  readonly life: ActorHandle<LifeState, LifeMessage>
  readonly tools: ActorHandle<ToolsState, ToolsMessage>
  readonly turn: ActorHandle<TurnState, TurnMessage>
  readonly worker: ActorHandle<WorkerState, WorkerMessage>
}
