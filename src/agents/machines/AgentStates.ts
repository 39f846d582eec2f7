/**
 * AgentStates: the actors that one agent consists of: their names, their states, and how they read and address each
 * other.
 *
 *     inbox/NAME   the messages that wait        turn/NAME    the current turn
 *     agent/NAME   its life, and what it spent   worker/NAME  the loop of its runs
 *     tools/NAME   its calls, each a part `tool/NAME/CALL`
 *
 * The actors are one commit scope: a message between them is processed in the same macrostep and is durable with it.
 * Therefore no two of them ever disagree in the log.
 */
import type { TurnOutcome } from "../../domain/AgentPort.ts"
import type { Ref } from "../../core/event-actor/ActorHandle.ts"
import type { Context } from "../../core/event-actor/EventSourcedActor.ts"
import type { Snapshot } from "../../core/event-actor/StateMachine.ts"
import type { RuneRef } from "../../core/event-log/Rune.ts"
import type * as AgentMachine from "./AgentMachine.ts"
import type { Choice } from "../actors/Choice.ts"
import type * as Budget from "./Budget.ts"
import type * as Inbox from "./Inbox.ts"
import type { InboxMessage, LifeMessage, ToolsMessage, TurnMessage, WorkerMessage } from "./AgentMessages.ts"
import type { ToolsState } from "./ToolsState.ts"
import type * as TurnMachine from "./TurnMachine.ts"
import type * as WorkerMachine from "./WorkerMachine.ts"

export type InboxState = Snapshot<"Open", Inbox.Data>

/** The turn that carried a message, after its end. `eventId`: the turn's last rune, which contains the answer. */
export interface Ended {
  readonly messageId: string
  readonly turnId: string
  readonly outcome: TurnOutcome
  readonly eventId: number
}

export interface TurnState extends Snapshot<TurnMachine.State, TurnMachine.Data> {
  /** The ends of the turns that carried the newest messages, oldest first. */
  readonly ended: ReadonlyArray<Ended>
}

export interface LifeState extends Snapshot<AgentMachine.State, AgentMachine.Data> {
  /** In this incarnation. */
  readonly spent: Budget.Spent
  /** The time up to which the turn's time is counted, ms since the epoch. */
  readonly countedTo: number
  /** Time of the current turn, ms, without the time in which it waited for a person. */
  readonly inTurn?: number
  /** The model and mode that a person chose; absent in logs of an older agentd. */
  readonly chosen?: Choice
}

export type WorkerSnapshot = Snapshot<WorkerMachine.State, WorkerMachine.Data>

export interface WorkerState {
  /** Incremented with each start. */
  readonly incarnation: number
  /** The rune of the newest start; 0 before the first. */
  readonly began: number
  readonly by?: string | undefined
  /** Undefined if the worker was never started. */
  readonly now: WorkerSnapshot | undefined
}

export const inboxName = (agent: string): string => `inbox/${agent}`
export const turnName = (agent: string): string => `turn/${agent}`
export const lifeName = (agent: string): string => `agent/${agent}`
export const workerName = (agent: string): string => `worker/${agent}`
export const toolsName = (agent: string): string => `tools/${agent}`
export const toolName = (agent: string, callId: string): string => `tool/${agent}/${callId}`
export const choiceName = (agent: string): string => `choice/${agent}`
export const meterName = (agent: string): string => `meter/${agent}`

/** The other actors of an agent, as one of them sees them in a macrostep. */
export class Siblings {
  private readonly context: Context
  private readonly agent: string

  constructor(agent: string, context: Context) {
    this.agent = agent
    this.context = context
  }

  get inbox(): InboxState {
    return this.context.read(inboxName(this.agent))
  }
  get turn(): TurnState {
    return this.context.read(turnName(this.agent))
  }
  get life(): LifeState {
    return this.context.read(lifeName(this.agent))
  }
  get worker(): WorkerState {
    return this.context.read(workerName(this.agent))
  }
  get tools(): ToolsState {
    return this.context.read(toolsName(this.agent))
  }

  get toInbox(): Ref<InboxMessage> {
    return this.context.ref(inboxName(this.agent))
  }
  get toTurn(): Ref<TurnMessage> {
    return this.context.ref(turnName(this.agent))
  }
  get toLife(): Ref<LifeMessage> {
    return this.context.ref(lifeName(this.agent))
  }
  get toWorker(): Ref<WorkerMessage> {
    return this.context.ref(workerName(this.agent))
  }
  get toTools(): Ref<ToolsMessage> {
    return this.context.ref(toolsName(this.agent))
  }
}

/** States in which a worker is not ready for a run yet. */
const UNREADY: ReadonlySet<string> = new Set(["Interrupting", "SessionComplete", "CoolingDown", "Initializing"])

/** True if the agent's process died in its last turn, and its worker is not ready for the next run yet. */
export const isDisconnected = ({ turn, worker }: { readonly turn: TurnState; readonly worker: WorkerState }): boolean =>
  turn.data.ended?.died === true && worker.now !== undefined && UNREADY.has(worker.now.state)

/** Whether a turn is streaming or waits for its tools. */
export const isActive = ({ state }: Pick<TurnState, "state">): boolean =>
  state === "streaming" || state === "tool_executing"

/** The end of the turn that carried the message; undefined if no such turn ended. */
export const endedWith = ({ ended }: Pick<TurnState, "ended">, messageId: string): Ended | undefined =>
  ended.findLast((one) => one.messageId === messageId)

/** The first rune of a decision. */
export const refOf = ({ nextId, nextSeq }: Context, stream: string): RuneRef => ({
  stream,
  seq: nextSeq,
  eventId: nextId
})

export const enteredBy = (
  { entered, seq }: Pick<Snapshot<unknown, unknown>, "entered" | "seq">,
  stream: string
): RuneRef => ({
  stream,
  seq,
  eventId: entered
})
