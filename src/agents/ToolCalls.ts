/**
 * ToolCalls: the tool calls of one agent, as one actor: each call is a part of it with a
 * machine of its own, and the rune of a move names the call.
 *
 * Guarantees: a call gets its one result, whatever becomes of its run; the last result
 * of a turn and what the turn makes of it are one append, and so are the results that a
 * turn's end brings and that end; a question outlives the daemon: answered late, the
 * answer holds for the same call when it is made again. While all open calls wait for a
 * person nothing executes: a steer calls them off.
 */
import { reader, type Said } from "../event-log/EventKinds.ts"
import { toolKinds } from "./AgentKinds.ts"
import { Effect, HashMap, Option } from "effect"
import {
  actor,
  type Context,
  type Decision,
  type Draft,
  later,
  type Ref,
  Refuse,
  type Tell,
  tell
} from "../event-actor/EventSourcedActor.ts"
import { evolve, type Snapshot } from "../event-actor/StateMachine.ts"
import { move } from "../event-actor/StateMachineActor.ts"
import type * as Backend from "../backends/Backend.ts"
import type { Outcome } from "../backends/Outcome.ts"
import type { Question } from "../backends/Question.ts"
import { CommandRefused } from "../domain/Messages.ts"
import type { Rune } from "../event-log/Rune.ts"
import { AgentSetting } from "./AgentSetting.ts"
import { isActive, Siblings, toolName } from "./AgentStates.ts"
import * as Approval from "./Approval.ts"
import type * as Budget from "./Budget.ts"
import { type Answer, answersOf, tooLate } from "./CallRow.ts"
import { RunPlace } from "./RunPlace.ts"
import * as ToolMachine from "./ToolMachine.ts"
import { toResult } from "./ToolResult.ts"
import type { Ending } from "./TurnActor.ts"

export type CallSnapshot = Snapshot<ToolMachine.State, ToolMachine.Data>

/** A call that has no result yet. */
export interface Call {
  readonly callId: string
  readonly snapshot: CallSnapshot
  /** JSON. */
  readonly arguments: string
  /** The same for calls that are the same. */
  readonly key: string
  /** Why a person is asked; null while nobody is. */
  readonly reason: string | null
  /** What they are asked to choose; none: they are asked for leave. */
  readonly questions: ReadonlyArray<Question>
}

/** An answer that holds for the same call when it is made again. */
export interface Grant {
  /** Who gave it. */
  readonly by: string
  readonly answers: ReadonlyArray<string> | null
}

/** One call's result, as `turn.tools_finished` tells it. */
export interface Summary {
  readonly call_id: string
  readonly tool: string
  readonly status: ToolMachine.Status
}

/** A limit on a call's time, by the state that it is in. */
interface Due {
  readonly callId: string
  readonly entered: number
  /** ms since the epoch */
  readonly since: number
  readonly at: number
}

export interface ToolsState {
  readonly open: HashMap.HashMap<string, Call>
  /** When the time of each runs out, the soonest first. */
  readonly due: ReadonlyArray<Due>
  /** How many of them each turn has. */
  readonly counts: HashMap.HashMap<string, number>
  /** Of the newest turn's calls that have ended since it went to its tools. */
  readonly results: ReadonlyArray<Summary>
  /** Calls that ended lately, with what became of them: for answers that come too late. */
  readonly ended: ReadonlyArray<readonly [callId: string, became: string]>
  /** Answers that came when their run was over, by the call's key. */
  readonly grants: HashMap.HashMap<string, Grant>
}

export type CallRequested = Extract<ToolMachine.Event, { _tag: "call_requested" }>
type Spent = Partial<Budget.Spent>

export type ToolsMessage =
  /** The calls of one answer, in order. */
  | { readonly _tag: "Called"; readonly turnId: string; readonly calls: ReadonlyArray<CallRequested> }
  | {
      readonly _tag: "Asked"
      readonly callId: string
      readonly asked: Extract<Backend.RunEvent, { _tag: "ApprovalRequested" }>
    }
  /** Spent in the turn, which goes on. */
  | { readonly _tag: "Paid"; readonly turnId: string; readonly spent: Spent }
  /** It runs. */
  | { readonly _tag: "Ran"; readonly callId: string }
  | { readonly _tag: "Result"; readonly callId: string; readonly status: ToolMachine.Status; readonly output: unknown }
  /** A person's answer. Answers `{ eventId, tool, answers, late }`. */
  | { readonly _tag: "Answer"; readonly callId: string; readonly said: Answer; readonly by: string }
  /** The run is done with its turn: what is open ends, then the turn. */
  | {
      readonly _tag: "Close"
      readonly turnId: string
      readonly how: "cancelled" | "unknown"
      readonly reason: string
      readonly spent: Spent
      readonly ending: Ending
    }
  /** The run is over, and its turn with it. */
  | {
      readonly _tag: "Exited"
      readonly runId: string
      readonly outcome: Outcome
      readonly spent: Spent
      readonly ending: Ending
    }
  /** The turn was cut short: its calls end. */
  | { readonly _tag: "Cut"; readonly turnId: string; readonly reason: string }
  /** Questions of a turn that is being interrupted ask no more. */
  | { readonly _tag: "Withdraw"; readonly turnId: string }
  /** No live run works on the turn: what ran is unknown, then the turn ends; questions go on. */
  | { readonly _tag: "Lost"; readonly turnId: string; readonly message: string }
  /** What an earlier daemon left running. */
  | { readonly _tag: "Orphans" }
  /** The agent ends: no run takes an answer any more. */
  | { readonly _tag: "Abandon"; readonly reason: string }
  /** The turn is steered away at its next safe boundary. */
  | { readonly _tag: "Steer"; readonly turnId: string }
  /** A limit on a call's time may have run out. */
  | { readonly _tag: "Time" }

type Act =
  | ToolMachine.Action
  /** Its run is told. */
  | { readonly _tag: "Tell"; readonly callId: string; readonly decision: Backend.Decision }

/** What a person's answer led to. */
export interface Answered {
  readonly eventId: number
  readonly tool: string
  readonly answers: ReadonlyArray<string> | undefined
  /** Its run was over already. */
  readonly late: boolean
}

/** Results that are told with the end of a turn's calls; the log has them all. */
const MAX_TOLD = 1_000
/** Calls whose end is remembered, for those who answer too late. */
const MAX_ENDED = 200
/** Calls that one append ends; further ones are ended by the next. */
const AT_ONCE = 1_000
const OVER = "the run that made the call is over; what it did is not known"

export const fresh: ToolsState = {
  open: HashMap.empty(),
  due: [],
  counts: HashMap.empty(),
  results: [],
  ended: [],
  grants: HashMap.empty()
}

const unborn: CallSnapshot = { state: "[*]", data: ToolMachine.initial(), entered: 0, seq: 0, at: 0 }

const get = <V>(map: HashMap.HashMap<string, V>, key: string): V | undefined =>
  Option.getOrUndefined(HashMap.get(map, key))

const callIdOf = (actorName: string): string => actorName.split("/").slice(2).join("/")

const ends = (
  state: ToolsState,
  { callId, key, snapshot }: Call,
  event: ToolMachine.Event,
  status: ToolMachine.Status
): ToolsState => {
  const { toolName: tool, turnId } = snapshot.data
  const count = (get(state.counts, turnId ?? "") ?? 1) - 1
  const isGranted = event._tag === "execution_error" && event.grant !== undefined
  return {
    open: HashMap.remove(state.open, callId),
    due: state.due.filter((due) => due.callId !== callId),
    counts: count > 0 ? HashMap.set(state.counts, turnId ?? "", count) : HashMap.remove(state.counts, turnId ?? ""),
    results:
      state.results.length < MAX_TOLD
        ? [...state.results, { call_id: callId, tool: tool ?? "", status }]
        : state.results,
    ended: [...state.ended.slice(1 - MAX_ENDED), [callId, `${tool} ended: ${status}`]],
    grants: isGranted
      ? HashMap.set(state.grants, key, { by: event.grant, answers: snapshot.data.answers })
      : state.grants
  }
}

/** The limit of the state that a call is in now, among those of the others. */
const timed = (all: ReadonlyArray<Due>, call: Call): ReadonlyArray<Due> => {
  const { callId, snapshot } = call
  const others = all.filter((due) => due.callId !== callId)
  const at = deadlineOf(call)
  if (at === Number.POSITIVE_INFINITY) return others
  const due = { callId, entered: snapshot.entered, since: snapshot.at, at }
  const before = others.findLastIndex((other) => other.at <= at)
  return [...others.slice(0, before + 1), due, ...others.slice(before + 1)]
}

const readTool = reader(toolKinds)

/** One move of one call. */
const moved = (
  state: ToolsState,
  callId: string,
  event: ToolMachine.Event,
  snapshot: CallSnapshot,
  rune: Said
): ToolsState => {
  const before = get(state.open, callId)
  const isNew = event._tag === "call_requested"
  const key = isNew
    ? (event.digest ?? Approval.keyOf(event.toolName, event.arguments))
    : (before?.key ?? Approval.keyOf(snapshot.data.toolName ?? "", undefined))
  const call: Call = {
    callId,
    snapshot,
    arguments: isNew ? (JSON.stringify(event.arguments) ?? "null") : (before?.arguments ?? "null"),
    key,
    reason: event._tag === "requires_approval" ? event.policyReason : (before?.reason ?? null),
    questions: (event._tag === "requires_approval" ? event.questions : before?.questions) ?? []
  }
  const taken = event._tag === "auto_approved" ? { ...state, grants: HashMap.remove(state.grants, key) } : state
  const said = readTool(rune)
  if (said?.kind === "tool.result") return ends(taken, call, event, said.payload.status)
  const turnId = snapshot.data.turnId ?? ""
  return {
    ...taken,
    open: HashMap.set(taken.open, callId, call),
    due: before?.snapshot.entered === snapshot.entered ? taken.due : timed(taken.due, call),
    counts: isNew ? HashMap.set(taken.counts, turnId, (get(taken.counts, turnId) ?? 0) + 1) : taken.counts,
    // the calls of another answer
    results: isNew && get(taken.counts, turnId) === undefined ? [] : taken.results
  }
}

export const apply = (state: ToolsState, rune: Rune): ToolsState => {
  const callId = callIdOf(rune.actor)
  const event = readTool(rune)?.payload.event
  const snapshot = evolve(ToolMachine.Tool, get(state.open, callId)?.snapshot ?? unborn, rune)
  return event === undefined ? state : moved(state, callId, event, snapshot, rune)
}

/** Oldest first. */
export const openCalls = ({ open }: ToolsState): ReadonlyArray<Call> =>
  [...HashMap.values(open)].toSorted((a, b) => a.snapshot.entered - b.snapshot.entered)

/** Whether the call is open or has ended lately. */
export const knows = ({ ended, open }: ToolsState, callId: string): boolean =>
  HashMap.has(open, callId) || ended.some(([id]) => id === callId)

/** A person is asked, and its run waits for the answer. */
const waits = ({ snapshot }: Call): boolean => snapshot.state === "awaiting_approval"

/** Its time is limited by the state that it is in; infinite where it is not. */
const deadlineOf = ({ snapshot: { at, data, state } }: Call): number => {
  const name = ToolMachine.Tool.states[state].timeout
  return name === undefined ? Number.POSITIVE_INFINITY : at + ToolMachine.Tool.timers[name].after(data, at)
}

/** Moves of calls, one after the other, as one decision. */
class Moves {
  readonly runes: Array<Draft> = []
  readonly acts: Array<Act> = []
  readonly tells: Array<Tell> = []
  /** Calls of a live run that have their result by now. */
  readonly settled: Array<Call> = []
  state: ToolsState
  private readonly agent: string
  private readonly context: Context

  constructor(agent: string, state: ToolsState, context: Context) {
    this.agent = agent
    this.state = state
    this.context = context
  }

  call(callId: string): Call | undefined {
    return get(this.state.open, callId)
  }

  get all(): ReadonlyArray<Call> {
    return openCalls(this.state)
  }

  of(turnId: string): ReadonlyArray<Call> {
    return this.all.filter(({ snapshot }) => snapshot.data.turnId === turnId)
  }

  /** True where the event moved the call. */
  step(callId: string, event: ToolMachine.Event): boolean {
    const before = this.call(callId)
    const made = move(ToolMachine.Tool, before?.snapshot ?? unborn, event, this.context, this.runes.length)
    if (typeof made === "string") return false
    this.runes.push({ ...made.draft, actor: toolName(this.agent, callId) })
    // a call's result is told to its run where the run waits for leave
    if (before !== undefined && waits(before) && made.draft.kind === "tool.result") {
      const isLate = event._tag === "approval_timeout"
      const message = isLate ? "nobody answered in time" : "the question was called off"
      this.acts.push({ _tag: "Tell", callId, decision: { behavior: "deny", message } })
    }
    this.acts.push(...made.actions)
    this.state = moved(this.state, callId, event, made.after, made.draft)
    if (made.draft.kind === "tool.result" && before !== undefined)
      this.settled.push({ ...before, snapshot: made.after })
    return true
  }

  /** Its result, as its run tells it, or as its end brings it. */
  end(call: Call, status: ToolMachine.Status, output: unknown): void {
    const { callId, snapshot } = call
    const of = { callId, asks: snapshot.state !== "pending_call", waits: waits(call) }
    for (const event of toResult(of, status, output)) this.step(callId, event)
    const left = this.call(callId)
    if (left?.snapshot.state === "denied") this.step(callId, { _tag: "denial_reported", callId })
  }
}

// The parts of one definition, over the services that they share.
// oxlint-disable-next-line max-lines-per-function
export const make = Effect.gen(function* () {
  const setting = yield* AgentSetting
  const place = yield* RunPlace
  const { agent, config, recoveredTo } = setting
  const { live } = place

  /** What the turn hears: its calls have their results, and where a steer waits, that nothing executes. */
  const told = (moves: Moves, siblings: Siblings, alsoLost = false): ReadonlyArray<Tell> => {
    const { inbox, toTurn, turn } = siblings
    const turnId = turn.data.turnId ?? ""
    const isLive = (call: Call) => alsoLost || live.origin(call.callId) !== undefined
    const had = moves.settled.filter((call) => call.snapshot.data.turnId === turnId && isLive(call))
    const tells: Array<Tell> = []
    const finish = () => {
      const { results } = moves.state
      tells.push(tell(toTurn, { _tag: "tools_finished", turnId, results, continue: true }))
    }
    const isOpen = get(moves.state.counts, turnId) !== undefined
    if (had.length > 0 && !isOpen) finish()
    const isSteered = isActive(turn) && live.turnId === turnId && inbox.data.waiting.some(({ steer }) => steer === true)
    if (isSteered && isOpen && moves.runes.length > 0 && moves.of(turnId).every(waits))
      tells.push(...boundary(moves, turnId, siblings))
    return tells
  }

  /** The turn is steered away; what waits for a person is called off first. */
  const boundary = (moves: Moves, turnId: string, { toTurn }: Siblings): ReadonlyArray<Tell> => {
    const open = moves.of(turnId)
    if (open.every(waits)) {
      for (const { callId } of open) moves.step(callId, { _tag: "cancelled", callId, reason: "its turn was steered" })
    }
    const { results } = moves.state
    const isFree = open.length > 0 && moves.of(turnId).length === 0
    return isFree ? [tell(toTurn, { _tag: "tools_finished", turnId, results, continue: true })] : []
  }

  const steer = (state: ToolsState, { turnId }: Extract<ToolsMessage, { _tag: "Steer" }>, context: Context) => {
    const siblings = new Siblings(agent, context)
    const moves = new Moves(agent, state, context)
    const before = boundary(moves, turnId, siblings)
    const { inbox, toTurn } = siblings
    const messages = inbox.data.waiting.filter((message) => message.steer === true)
    const event = {
      _tag: "steer" as const,
      from: turnId,
      turnId: place.newId(context.now, context.nextId + moves.runes.length),
      agentId: agent,
      input: "",
      messageIds: messages.map(({ messageId }) => messageId),
      ...live.partial,
      at: context.now
    }
    return decided(moves, [...before, tell(toTurn, event)])
  }

  const decided = (moves: Moves, tells: ReadonlyArray<Tell>, reply?: unknown): Decision<ToolsState, Act> => ({
    runes: moves.runes,
    ...(moves.runes.length === 0 ? {} : { state: moves.state }),
    tells: [...tells, ...moves.tells],
    acts: moves.acts,
    ...(reply === undefined ? {} : { reply })
  })

  const called = (
    state: ToolsState,
    { calls, turnId }: Extract<ToolsMessage, { _tag: "Called" }>,
    context: Context
  ) => {
    const { toLife, toTurn, turn } = new Siblings(agent, context)
    if (turn.data.turnId !== turnId || turn.state === "idle") return "stale" as const
    const moves = new Moves(agent, state, context)
    for (const call of calls) moves.step(call.callId, call)
    const callIds = calls.map(({ callId }) => callId)
    return decided(moves, [
      tell(toTurn, { _tag: "tool_calls_received", turnId, callIds }),
      tell(toLife, { _tag: "Used", turnId, spent: { toolCalls: callIds.length } })
    ])
  }

  const asked = (
    state: ToolsState,
    { asked: event, callId }: Extract<ToolsMessage, { _tag: "Asked" }>,
    context: Context
  ) => {
    const moves = new Moves(agent, state, context)
    const call = moves.call(callId)
    if (call === undefined || call.snapshot.state !== "pending_call") return "stale" as const
    const { key, snapshot } = call
    const { always, questions = [], reason } = event
    const granted = get(state.grants, key)
    const verdict = Approval.decide(config().approvals, {
      tool: snapshot.data.toolName ?? "",
      readOnly: live.origin(callId)?.readOnly === true,
      asksAlways: always === true,
      asksToChoose: questions.length > 0
    })
    if (granted !== undefined && verdict._tag === "Ask") {
      const policyReason = `approved before by ${granted.by}`
      moves.step(callId, { _tag: "auto_approved", callId, policyReason, answers: granted.answers ?? undefined })
      moves.acts.push(allow(moves.call(callId)!))
    } else if (verdict._tag === "Run") {
      moves.step(callId, { _tag: "auto_approved", callId, policyReason: verdict.reason })
      moves.acts.push(allow(moves.call(callId)!))
    } else {
      // the same question from before the restart: one is enough
      for (const other of HashMap.values(state.open)) {
        if (other.callId === callId || other.key !== key || live.origin(other.callId) !== undefined) continue
        moves.step(other.callId, { _tag: "cancelled", callId: other.callId, reason: `asked again as ${callId}` })
      }
      const asks = questions.length === 0 ? {} : { questions }
      const policyReason = reason === "" ? verdict.reason : reason
      moves.step(callId, { _tag: "requires_approval", callId, policyReason, ...asks })
      if (verdict._tag === "Deny") denied(moves, callId, "approvals.mode", verdict.reason)
    }
    return decided(moves, told(moves, new Siblings(agent, context)))
  }

  const allow = ({ callId, snapshot: { data } }: Call): Act => ({
    _tag: "Tell",
    callId,
    decision: data.answers === null ? { behavior: "allow" } : { behavior: "allow", answers: data.answers }
  })

  /** Its run is told why, and it has its result. */
  const denied = (moves: Moves, callId: string, approver: string, reason: string): boolean => {
    if (!moves.step(callId, { _tag: "denied", callId, approver, reason })) return false
    moves.acts.push({ _tag: "Tell", callId, decision: { behavior: "deny", message: reason } })
    moves.step(callId, { _tag: "denial_reported", callId })
    return true
  }

  const answer = (
    state: ToolsState,
    { by, callId, said }: Extract<ToolsMessage, { _tag: "Answer" }>,
    context: Context
  ) => {
    const moves = new Moves(agent, state, context)
    const call = moves.call(callId)
    const ended = state.ended.find(([id]) => id === callId)?.[1]
    const late = () => new Refuse(tooLate(callId, ended, call?.snapshot.state))
    if (call === undefined || !waits(call)) return late()
    const tool = call.snapshot.data.toolName ?? ""
    const chosen = answersOf({ ...call, tool, turnId: "" }, said)
    if (chosen instanceof CommandRefused) return new Refuse(chosen)
    const isOver = live.origin(callId) === undefined
    if (said.behavior === "deny") {
      if (!denied(moves, callId, by, said.reason.trim() || `denied by ${by}`)) return late()
    } else {
      const answers = chosen === undefined ? {} : { answers: chosen }
      if (!moves.step(callId, { _tag: "approved", callId, approver: by, ...answers })) return late()
      if (isOver) {
        moves.step(callId, { _tag: "execution_error", callId, status: "unknown", error: OVER, grant: by })
      } else moves.acts.push(allow(moves.call(callId)!))
    }
    const reply: Answered = { eventId: context.nextId, tool, answers: chosen, late: isOver }
    return decided(moves, told(moves, new Siblings(agent, context)), reply)
  }

  /** What is left of the turn's calls ends with it. False: there are more than one append takes. */
  const endAll = (moves: Moves, turnId: string, how: "cancelled" | "unknown", reason: string): boolean => {
    const left = moves.of(turnId).filter(({ callId }) => live.origin(callId) !== undefined)
    for (const call of left.slice(0, AT_ONCE)) moves.end(call, how, reason)
    return left.length <= AT_ONCE
  }

  /** The same again, for what is left. */
  const more = (moves: Moves, message: ToolsMessage, { self }: Context) =>
    decided(moves, [later(self as Ref<ToolsMessage>, message)])

  const close = (state: ToolsState, message: Extract<ToolsMessage, { _tag: "Close" }>, context: Context) => {
    const { ending, how, reason, spent, turnId } = message
    const siblings = new Siblings(agent, context)
    const moves = new Moves(agent, state, context)
    if (!endAll(moves, turnId, how, reason)) return more(moves, message, context)
    const { toLife, toTurn } = siblings
    return decided(moves, [
      ...told(moves, siblings),
      tell(toLife, { _tag: "Used", turnId, spent }),
      tell(toTurn, { _tag: "Over", turnId, ending })
    ])
  }

  const exited = (state: ToolsState, message: Extract<ToolsMessage, { _tag: "Exited" }>, context: Context) => {
    const { ending, outcome, runId, spent } = message
    const siblings = new Siblings(agent, context)
    const { toLife, toTurn, toWorker, turn, worker } = siblings
    const moves = new Moves(agent, state, context)
    const turnId = turn.data.turnId ?? ""
    const isOpen = turn.state !== "idle" && turn.entered > recoveredTo && worker.now?.data.runId === runId
    if (isOpen && !endAll(moves, turnId, "unknown", "no result came")) return more(moves, message, context)
    return decided(moves, [
      ...told(moves, siblings),
      ...(isOpen
        ? [
            tell(toLife, { _tag: "Used" as const, turnId, spent }),
            tell(toTurn, { _tag: "Over" as const, turnId, ending: { ...ending, turnId }, exit: { runId, outcome } })
          ]
        : [tell(toWorker, { _tag: "SessionExited" as const, runId, outcome })])
    ])
  }

  /** What ran is unknown; what asks goes on asking. */
  const unknown = (moves: Moves, calls: ReadonlyArray<Call>): void => {
    for (const call of calls) {
      if (live.origin(call.callId) === undefined && !waits(call)) moves.end(call, "unknown", OVER)
    }
  }

  const lost = (state: ToolsState, { message, turnId }: Extract<ToolsMessage, { _tag: "Lost" }>, context: Context) => {
    const { toTurn } = new Siblings(agent, context)
    const moves = new Moves(agent, state, context)
    unknown(moves, moves.of(turnId))
    return decided(moves, [tell(toTurn, { _tag: "Lost", turnId, message })])
  }

  const callOff = (state: ToolsState, which: (call: Call) => boolean, reason: string, context: Context) => {
    const moves = new Moves(agent, state, context)
    for (const { callId } of moves.all.filter(which)) moves.step(callId, { _tag: "cancelled", callId, reason })
    return decided(moves, told(moves, new Siblings(agent, context)))
  }

  const time = (state: ToolsState, context: Context) => {
    const moves = new Moves(agent, state, context)
    for (const { at, callId } of state.due) {
      const call = moves.call(callId)
      if (at > context.now || call === undefined) continue
      const name = ToolMachine.Tool.states[call.snapshot.state].timeout!
      moves.step(call.callId, ToolMachine.Tool.timers[name].fires(call.snapshot.data))
    }
    return decided(moves, told(moves, new Siblings(agent, context)))
  }

  const ofCall = (state: ToolsState, callId: string, context: Context, act: (moves: Moves, call: Call) => void) => {
    const moves = new Moves(agent, state, context)
    const call = moves.call(callId)
    if (call === undefined) return "stale" as const
    act(moves, call)
    return decided(moves, told(moves, new Siblings(agent, context)))
  }

  const decide = (state: ToolsState, message: ToolsMessage, context: Context) => {
    switch (message._tag) {
      case "Called":
        return called(state, message, context)
      case "Asked":
        return asked(state, message, context)
      case "Paid": {
        const { toLife } = new Siblings(agent, context)
        return { runes: [], tells: [tell(toLife, { ...message, _tag: "Used" })] }
      }
      case "Ran":
        return ofCall(state, message.callId, context, (moves, { callId, snapshot }) => {
          if (snapshot.state === "pending_call") moves.step(callId, { _tag: "no_approval_needed", callId })
        })
      case "Result":
        return ofCall(state, message.callId, context, (moves, call) => moves.end(call, message.status, message.output))
      case "Answer":
        return answer(state, message, context)
      case "Close":
        return close(state, message, context)
      case "Exited":
        return exited(state, message, context)
      case "Cut": {
        const moves = new Moves(agent, state, context)
        const isAll = endAll(moves, message.turnId, "cancelled", message.reason)
        return isAll ? decided(moves, told(moves, new Siblings(agent, context))) : more(moves, message, context)
      }
      case "Withdraw":
        return callOff(
          state,
          (call) =>
            waits(call) && call.snapshot.data.turnId === message.turnId && live.origin(call.callId) !== undefined,
          "its turn was interrupted",
          context
        )
      case "Lost":
        return lost(state, message, context)
      case "Orphans": {
        const { turn } = new Siblings(agent, context)
        const moves = new Moves(agent, state, context)
        // those of a turn that has not ended end with it
        const open = isActive(turn) ? turn.data.turnId : null
        unknown(
          moves,
          moves.all.filter(({ snapshot }) => snapshot.data.turnId !== open)
        )
        return decided(moves, [])
      }
      case "Abandon":
        return callOff(state, () => true, message.reason, context)
      case "Steer":
        return steer(state, message, context)
      case "Time":
        return time(state, context)
    }
  }

  const perform = (action: Act): Effect.Effect<void> | void => {
    switch (action._tag) {
      case "Tell":
        return live.answerer(action.callId)?.(action.decision)
      case "StopTool": {
        const origin = live.origin(action.callId ?? "")
        return origin?.run.cancelCall(origin.id)
      }
      case "ReportResult":
        return live.settled(action.callId ?? "")
    }
  }

  return actor<ToolsState, ToolsMessage, Act, CommandRefused>({
    initial: fresh,
    parts: (name) => name.startsWith(toolName(agent, "")),
    decide,
    apply,
    timers: ({ due: [first] }) => {
      if (first === undefined) return []
      const { at, callId, entered, since } = first
      return [{ key: `${callId}/${entered}`, since, after: at - since, message: { _tag: "Time" } }]
    },
    activities: () => [{ name: "Orphans", key: 0 }],
    perform,
    run: (_, { self }) => self.tell({ _tag: "Orphans" })
  })
})
