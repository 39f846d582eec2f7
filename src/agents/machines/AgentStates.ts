/**
 * AgentStates: the actors that one agent consists of, as they know each other: their
 * names, their states, and one event of a machine as a decision.
 *
 *     inbox/NAME   what waits                 turn/NAME    the turn under way
 *     agent/NAME   its life, what it spent    worker/NAME  the loop of its runs
 *     tools/NAME   its calls, each a part `tool/NAME/CALL`
 *
 * They are one commit scope: what one of them tells another is stepped in the same
 * macrostep and durable with it, so no two of them ever disagree in the log.
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

/** The turn that a message was carried by, once it is over; `eventId`: its last rune, which holds the answer. */
export interface Ended {
  readonly messageId: string
  readonly turnId: string
  readonly outcome: TurnOutcome
  readonly eventId: number
}

export interface TurnState extends Snapshot<TurnMachine.State, TurnMachine.Data> {
  /** Of the newest messages, oldest first: how the turn ended that carried it. */
  readonly ended: ReadonlyArray<Ended>
}

export interface LifeState extends Snapshot<AgentMachine.State, AgentMachine.Data> {
  /** In this incarnation. */
  readonly spent: Budget.Spent
  /** Up to when the time of the turn is counted, ms since the epoch. */
  readonly countedTo: number
  /** ms of the present turn, without those in which it waited for a person. */
  readonly inTurn?: number
  /** The model and the mode that a person has chosen; an older agentd knew none. */
  readonly chosen?: Choice
}

export type WorkerSnapshot = Snapshot<WorkerMachine.State, WorkerMachine.Data>

export interface WorkerState {
  /** Rises with each start. */
  readonly incarnation: number
  /** The rune of the newest start; 0 before the first. */
  readonly began: number
  readonly by?: string | undefined
  /** Undefined: it was never started. */
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

/** Before a worker is ready for a run again. */
const UNREADY: ReadonlySet<string> = new Set(["Interrupting", "SessionComplete", "CoolingDown", "Initializing"])

/** True where the agent's process died in its last turn, and its worker is not ready for the next run yet. */
export const isDisconnected = ({ turn, worker }: { readonly turn: TurnState; readonly worker: WorkerState }): boolean =>
  turn.data.ended?.died === true && worker.now !== undefined && UNREADY.has(worker.now.state)

/** A turn works, or waits for its tools. */
export const isActive = ({ state }: Pick<TurnState, "state">): boolean =>
  state === "streaming" || state === "tool_executing"

/** How the turn ended that carried the message; undefined where none has. */
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
