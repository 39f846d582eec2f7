/**
 * AgentRecovery: rebuilds the state of one agent's actors from the log. Pure: applies one rune at a time, and throws if
 * a rune is not possible in the state of its machine.
 */
import type { Rune } from "../../core/event-log/Rune.ts"
import * as AgentActor from "./AgentActor.ts"
import * as AgentMachine from "../machines/AgentMachine.ts"
import type { InboxState, LifeState, TurnState, WorkerState } from "../machines/AgentStates.ts"
import * as Inbox from "../machines/Inbox.ts"
import * as InboxActor from "./InboxActor.ts"
import * as ToolsState from "../machines/ToolsState.ts"
import * as ToolMachine from "../machines/ToolMachine.ts"
import * as TurnActor from "./TurnActor.ts"
import * as TurnMachine from "../machines/TurnMachine.ts"
import * as WorkerActor from "./WorkerActor.ts"
import * as WorkerMachine from "../machines/WorkerMachine.ts"

export interface AgentRecord {
  readonly name: string
  inbox: InboxState
  turn: TurnState
  worker: WorkerState
  /** State of the agent's newest incarnation, and its usage. */
  life: LifeState
  tools: ToolsState.ToolsState
  /** Why the agent's state could not be rebuilt from its runes; undefined if it could. */
  broken: string | undefined
}

export const kinds = [
  "worker.started",
  "agent.chosen",
  "agent.usage",
  "agent.asked",
  "agent.bound_reached",
  ...WorkerMachine.kinds,
  ...Inbox.kinds,
  ...AgentMachine.kinds,
  ...TurnMachine.kinds.filter((kind) => !TurnMachine.lazy.includes(kind)),
  ...ToolMachine.kinds.filter((kind) => !ToolMachine.lazy.includes(kind))
] as const

export const freshAgent = (name: string): AgentRecord => ({
  name,
  inbox: InboxActor.fresh,
  turn: TurnActor.fresh,
  worker: WorkerActor.fresh,
  life: AgentActor.fresh,
  tools: ToolsState.fresh,
  broken: undefined
})

/** `machine`: first part of the name of the actor that wrote the rune, or that the rune also moves (`isJoined`). */
export const apply = (record: AgentRecord, machine: string, rune: Rune, isJoined: boolean): void => {
  if (rune.kind === "worker.started") record.broken = undefined
  if (machine === "inbox") record.inbox = InboxActor.apply(record.inbox, rune, isJoined)
  else if (machine === "meter" || machine === "choice") record.life = AgentActor.apply(record.life, rune, isJoined)
  else if (record.broken !== undefined) return
  else if (machine === "turn") record.turn = TurnActor.apply(record.turn, rune)
  else if (machine === "agent") {
    const isBorn = record.life.state !== "[*]" || rune.kind === "agent.spawning"
    if (isBorn) record.life = AgentActor.apply(record.life, rune, isJoined)
  } else if (machine === "tool") record.tools = ToolsState.apply(record.tools, rune)
  else record.worker = WorkerActor.apply(record.worker, rune, isJoined)
}

export const machines: ReadonlyArray<string> = ["inbox", "worker", "turn", "agent", "tool", "meter", "choice"]
