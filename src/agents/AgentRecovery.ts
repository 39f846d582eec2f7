/**
 * AgentRecovery: what the log says of one agent: where each of its machines stands,
 * which calls have no result, what it spent, and what became of its last messages.
 * A pure fold, one rune at a time. It throws where a machine's runes do not fold.
 */
import type { TurnOutcome } from "../domain/AgentPort.ts"
import type { Rune } from "../event-log/Rune.ts"
import * as AgentMachine from "./AgentMachine.ts"
import { evolve, type Snapshot } from "../event-actor/StateMachine.ts"
import * as ToolMachine from "./ToolMachine.ts"
import * as TurnMachine from "./TurnMachine.ts"
import * as WorkerMachine from "./WorkerMachine.ts"
import * as AgentActor from "./AgentActor.ts"
import * as Approval from "./Approval.ts"
import * as Budget from "./Budget.ts"
import type { Grant, Recovered } from "./OpenCall.ts"
import * as Inbox from "./Inbox.ts"
import * as ToolActor from "./ToolActor.ts"

export type WorkerSnapshot = Snapshot<WorkerMachine.State, WorkerMachine.Data>
export type InboxSnapshot = Snapshot<"Open", Inbox.Data>

/** The turn that a message was carried by, once it is over; `eventId`: its last rune, which holds the answer. */
export interface Ended {
  readonly turnId: string
  readonly outcome: TurnOutcome
  readonly eventId: number
}

/** What the log says of one agent. */
export interface AgentRecord {
  readonly name: string
  inbox: InboxSnapshot
  turn: Snapshot<TurnMachine.State, TurnMachine.Data>
  /** Undefined: it was never started. */
  worker: WorkerSnapshot | undefined
  /** Of its newest incarnation. */
  life: AgentActor.Snapshot | undefined
  /** Rises with each `worker.started`. */
  incarnation: number
  /** The eventId of the newest one. */
  began: number
  /** By call, those without a result. */
  readonly calls: Map<string, Recovered>
  /** Approvals that came when their run was over, by the call's key. */
  readonly grants: Map<string, Grant>
  /** In this incarnation. */
  spent: Budget.Spent
  /** By message, the newest ones. */
  readonly ended: Map<string, Ended>
  /** Why its runes do not fold. */
  broken: string | undefined
}

/** Messages whose end is remembered. */
const MAX_ENDED = 1_000

export const workerAddress = (agent: string): string => `worker/${agent}`
export const inboxAddress = (agent: string): string => `inbox/${agent}`

export const kinds = [
  "worker.started",
  "agent.usage",
  ...WorkerMachine.kinds,
  ...Inbox.kinds,
  ...AgentMachine.kinds,
  ...TurnMachine.kinds.filter((kind) => !TurnMachine.lazy.includes(kind)),
  ...ToolMachine.kinds.filter((kind) => !ToolMachine.lazy.includes(kind))
] as const

export const freshAgent = (name: string): AgentRecord => ({
  name,
  inbox: { state: "Open", data: Inbox.initial, entered: 0, seq: 0, at: 0 },
  turn: { state: "idle", data: TurnMachine.initial(), entered: 0, seq: 0, at: 0 },
  worker: undefined,
  life: undefined,
  incarnation: 0,
  began: 0,
  calls: new Map(),
  grants: new Map(),
  spent: Budget.nothing,
  ended: new Map(),
  broken: undefined
})

/** Where an incarnation begins: the limits in force are part of the rune, so the fold needs no config. */
export const begun = (rune: Pick<Rune, "eventId" | "seq" | "at" | "payload">): WorkerSnapshot => ({
  state: WorkerMachine.Worker.initial,
  data: rune.payload["initial"] as WorkerMachine.Data,
  entered: rune.eventId,
  seq: rune.seq,
  at: rune.at
})

const OUTCOMES: { readonly [kind: string]: TurnOutcome } = {
  "turn.completed": "completed",
  "turn.interrupted": "interrupted",
  "turn.error": "error"
}

/** Remembers how the messages of a turn ended. */
export const note = (record: AgentRecord, messageIds: ReadonlyArray<string>, ended: Ended): void => {
  for (const messageId of messageIds) {
    record.ended.delete(messageId)
    record.ended.set(messageId, ended)
  }
  while (record.ended.size > MAX_ENDED) record.ended.delete(record.ended.keys().next().value!)
}

const moveTurn = (record: AgentRecord, rune: Rune): void => {
  record.turn = evolve(TurnMachine.Turn, record.turn, rune)
  const { messageIds, turnId } = record.turn.data
  const outcome = OUTCOMES[rune.kind]
  if (outcome !== undefined) note(record, messageIds, { turnId: turnId ?? "", outcome, eventId: rune.eventId })
}

const moveLife = (record: AgentRecord, rune: Rune): void => {
  if (rune.kind === "agent.spawning") {
    record.spent = Budget.nothing
    record.life = AgentActor.fresh
  }
  if (record.life !== undefined) record.life = evolve(AgentMachine.Agent, record.life, rune)
}

const use = (record: AgentRecord, { payload }: Rune): void => {
  const number = (field: string) => (typeof payload[field] === "number" ? payload[field] : 0)
  record.spent = Budget.add(record.spent, {
    tokens: number("tokens"),
    toolCalls: number("tool_calls"),
    wallTime: number("wall_time"),
    usd: number("usd")
  })
}

const moveCall = (record: AgentRecord, callId: string, rune: Rune): void => {
  const event = rune.payload["event"] as ToolMachine.Event
  const before = record.calls.get(callId)
  const input = event._tag === "call_requested" ? event.arguments : before?.arguments
  const snapshot = evolve(ToolMachine.Tool, before?.snapshot ?? ToolActor.fresh, rune)
  const digest = event._tag === "call_requested" ? event.digest : before?.key
  const key = digest ?? Approval.keyOf(snapshot.data.toolName ?? "", input)
  if (event._tag === "auto_approved") record.grants.delete(key)
  if (rune.kind === "tool.result") {
    record.calls.delete(callId)
    if (event._tag === "execution_error" && event.grant !== undefined)
      record.grants.set(key, { by: event.grant, answers: snapshot.data.answers })
    return
  }
  record.calls.set(callId, {
    callId,
    snapshot,
    arguments: input,
    key,
    reason: event._tag === "requires_approval" ? event.policyReason : (before?.reason ?? null),
    questions: (event._tag === "requires_approval" ? event.questions : before?.questions) ?? []
  })
}

/** One rune of the agent's, folded in. `machine` and `rest` are the parts of its actor's name. */
export const apply = (record: AgentRecord, machine: string, rest: string, rune: Rune): void => {
  if (rune.kind === "worker.started") {
    record.worker = begun(rune)
    record.incarnation = Number(rune.payload["incarnation"])
    record.began = rune.eventId
    record.broken = undefined
  } else if (rune.kind === "agent.usage") use(record, rune)
  else if (machine === "inbox") record.inbox = evolve(Inbox.Inbox, record.inbox, rune)
  else if (record.broken !== undefined) return
  else if (machine === "turn") moveTurn(record, rune)
  else if (machine === "agent") moveLife(record, rune)
  else if (machine === "tool") moveCall(record, rest, rune)
  else if (record.worker !== undefined) record.worker = evolve(WorkerMachine.Worker, record.worker, rune)
}

/** The machines whose runes are an agent's. */
export const machines: ReadonlyArray<string> = ["inbox", "worker", "turn", "agent", "tool", "meter"]
