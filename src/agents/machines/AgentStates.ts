/**
 * AgentStates: the names and states of the actors of one agent, and how these actors read and address each other.
 *
 *     inbox/NAME   waiting messages               turn/NAME    the current turn
 *     agent/NAME   the agent's life and usage     worker/NAME  the loop that starts runs
 *     tools/NAME   tool calls; each call is a part `tool/NAME/CALL`
 *
 * The actors are one commit scope: a message between them is processed in the same macrostep and is durable with it.
 * Therefore their states in the log are always consistent.
 */
import type { TurnOutcome } from "../../domain/AgentPort.ts"
import type { Ref } from "../../core/event-actor/ActorHandle.ts"
import type { Context } from "../../core/event-actor/EventSourcedActor.ts"
import type { Snapshot } from "../../core/event-actor/StateMachine.ts"
import type { RuneRef } from "../../core/event-log/Rune.ts"
import type * as AgentMachine from "./AgentMachine.ts"
import type { ModelChoice } from "../actors/ModelChoice.ts"
import type * as Budget from "./Budget.ts"
import type * as Inbox from "./Inbox.ts"
import type { InboxMessage, LifeMessage, ToolsMessage, TurnMessage, WorkerMessage } from "./AgentMessages.ts"
import type { ToolsState } from "./ToolsState.ts"
import type * as TurnMachine from "./TurnMachine.ts"
import type * as WorkerMachine from "./WorkerMachine.ts"

export type InboxState = Snapshot<"Open", Inbox.Data>

/** The end of the turn that carried a message. `eventId`: id of the turn's last rune, which contains the answer. */
export interface Ended {
  readonly messageId: string
  readonly turnId: string
  readonly outcome: TurnOutcome
  readonly eventId: number
}

export interface TurnState extends Snapshot<TurnMachine.State, TurnMachine.Data> {
  /** For the most recent messages: how the turn that carried them ended. Oldest first. */
  readonly ended: ReadonlyArray<Ended>
}

export interface LifeState extends Snapshot<AgentMachine.State, AgentMachine.Data> {
  /** Usage since the agent's newest start. */
  readonly spent: Budget.Spent
  /** The current turn's time is counted up to this time, ms since the epoch. */
  readonly countedTo: number
  /** Duration of the current turn, ms, without the time in which the turn waited for the user. */
  readonly inTurn?: number
  /** The model and mode that the user chose; absent in logs of older versions of agentd. */
  readonly chosen?: ModelChoice
}

export type WorkerSnapshot = Snapshot<WorkerMachine.State, WorkerMachine.Data>

export interface WorkerState {
  /** Number of starts of the agent. */
  readonly incarnation: number
  /** Event id of the newest start; 0 before the first start. */
  readonly began: number
  readonly by?: string | undefined
  /** State of the worker; undefined if it was never started. */
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

/** The other actors of an agent. In a macrostep, an actor can read their states and send them messages. */
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

const UNREADY: ReadonlySet<string> = new Set(["Interrupting", "SessionComplete", "CoolingDown", "Initializing"])

/**
 * Whether the agent's process died and its worker has not prepared the next run yet. "turn": it died in its last turn.
 * "between": it died between two turns.
 */
export const disconnection = ({
  turn,
  worker: { now }
}: {
  readonly turn: TurnState
  readonly worker: WorkerState
}): "turn" | "between" | undefined => {
  if (now === undefined || !UNREADY.has(now.state)) return undefined
  if (now.data.died === true) return "between"
  return turn.data.ended?.died === true ? "turn" : undefined
}

/** True if a turn is in progress: it streams an answer or waits for its tools. */
export const isActive = ({ state }: Pick<TurnState, "state">): boolean =>
  state === "streaming" || state === "tool_executing"

/** How the turn that carried the message ended; undefined if no such turn has ended. */
export const endedWith = ({ ended }: Pick<TurnState, "ended">, messageId: string): Ended | undefined =>
  ended.findLast((one) => one.messageId === messageId)

/** Refers to the first rune of a decision. */
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
