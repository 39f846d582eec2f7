/**
 * ToolCalls: the tool calls of one agent, as one actor. Each call has its own state machine, and each transition's rune
 * names the call.
 *
 * Guarantees: Each call gets exactly one result, even if its run dies. The last result of a turn and the resulting
 * change of the turn are one append. A turn's end and the results that it causes are one append too. An open question
 * survives a restart of the daemon: a late answer applies when the agent repeats the call. If all open calls wait for
 * the user, none is running, so a steering message cancels them.
 */
import { Effect, HashMap } from "effect"
import type { Ref } from "../../core/event-actor/ActorHandle.ts"
import {
  actor,
  type Context,
  type Decision,
  type Draft,
  later,
  type Refusal,
  Refuse,
  type Tell,
  tell
} from "../../core/event-actor/EventSourcedActor.ts"
import { move } from "../../core/event-actor/StateMachineActor.ts"
import type * as Backend from "../../runs/Backend.ts"
import * as CallHash from "../../domain/CallHash.ts"
import { named } from "../../domain/CallSummary.ts"
import { CommandRefused } from "../../domain/Messages.ts"
import { span } from "../../domain/StatusWords.ts"
import type { Ending, ToolsMessage } from "../machines/AgentMessages.ts"
import { AgentEnvironment } from "./AgentEnvironment.ts"
import { isActive, Siblings, toolName } from "../machines/AgentStates.ts"

import { answersOf, runOver, tooLate } from "../machines/CallRow.ts"
import { decisionOf } from "../run/WaitingCalls.ts"
import { verdictOf } from "../run/RunEvents.ts"
import { isAwaited, CurrentRun, whenAdopted } from "./CurrentRun.ts"
import * as ToolMachine from "../machines/ToolMachine.ts"
import { toResult } from "../machines/ToolResult.ts"
import {
  apply,
  type Call,
  fresh,
  get,
  isStalled,
  lateName,
  moved,
  openCalls,
  repeated,
  rulesOf,
  type ToolsState,
  unborn,
  waits
} from "../machines/ToolsState.ts"

type Act =
  | ToolMachine.Action
  | {
      readonly _tag: "Tell"
      readonly callId: string
      readonly decision: Backend.Decision
      /** True if agentd itself denied the call, not the user. */
      readonly isOurs?: boolean
    }
  /** The run requests approval for a call that was recorded as running. */
  | { readonly _tag: "Late"; readonly message: Extract<ToolsMessage, { _tag: "Asked" }> }
  /**
   * Deletes the stored input of a call that no longer waits for the user; RunEvents stored it while the call waited.
   */
  | { readonly _tag: "Drop"; readonly callId: string }

export interface Answered {
  readonly eventId: number
  readonly tool: string
  readonly answers: ReadonlyArray<string> | undefined
  /** True if the call's run had already ended. */
  readonly late: boolean
}

/** Maximum number of calls that one append ends. The next append ends the others. */
const AT_ONCE = 1_000
/** Texts that the agent receives. */
const TOO_LARGE = `the call is larger than a person can be shown (${CallHash.MAX_INPUT} bytes): split it into smaller calls`
const UNSEEN = "agentd ended before it had stored the call's input: the agent can ask again"
const OVER = "the run that made the call has ended; the outcome of the call is unknown"

const unanswered = ({ arguments: input, snapshot: { data } }: Call): string =>
  `nobody answered within ${span(data.limits.approvalTimeout ?? 0)}: ${named(data.toolName ?? "", input)} expired, and was denied`

const NONE = { verdict: "ask", reason: "", rule: undefined, parts: [] } as const

/** Collects state changes of several calls into one decision. */
class Moves {
  readonly runes: Array<Draft> = []
  readonly acts: Array<Act> = []
  readonly tells: Array<Tell> = []
  /** Calls of a live run that got their result in this decision. */
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

  /** Returns true if the event changed the state of the call. */
  step(callId: string, event: ToolMachine.Event): boolean {
    const before = this.call(callId)
    const made = move(ToolMachine.Tool, before?.snapshot ?? unborn, event, this.context, this.runes.length)
    if (typeof made === "string") return false
    this.runes.push({ ...made.draft, actor: toolName(this.agent, callId) })
    // a run that waits for approval must be informed of the call's result
    if (before !== undefined && waits(before) && made.draft.kind === "tool.result") {
      const isLate = event._tag === "approval_timeout"
      const message = isLate ? "nobody answered in time" : "the question was cancelled"
      this.acts.push({ _tag: "Tell", callId, decision: { behavior: "deny", message }, isOurs: isLate })
    }
    const isWaiting = made.after.state === "awaiting_approval"
    if (!isWaiting && before !== undefined && waits(before)) this.acts.push({ _tag: "Drop", callId })
    this.acts.push(...made.actions)
    this.state = moved(this.state, callId, event, made.after, made.draft)
    if (made.draft.kind === "tool.result" && before !== undefined)
      this.settled.push({ ...before, snapshot: made.after })
    return true
  }

  /** Ends a call with the result that its run reported, or with the result that follows from the run's end. */
  end(call: Call, status: ToolMachine.Status, output: unknown): void {
    const { callId, snapshot } = call
    const of = { callId, asks: snapshot.state !== "pending_call", waits: waits(call) }
    for (const event of toResult(of, status, output)) this.step(callId, event)
    const left = this.call(callId)
    if (left?.snapshot.state === "denied") this.step(callId, { _tag: "denial_reported", callId })
  }
}

// All parts of this actor's definition are in one function, because they share its services.
// oxlint-disable-next-line max-lines-per-function
export const make = Effect.gen(function* () {
  const setting = yield* AgentEnvironment
  const place = yield* CurrentRun
  const { agent, recoveredTo } = setting
  const { live } = place

  /**
   * Selects messages to the turn: that all its calls have results, or that a steering message waits and no call is
   * running.
   */
  const told = (moves: Moves, siblings: Siblings, alsoLost = false, ending?: Ending): ReadonlyArray<Tell> => {
    const { inbox, toTurn, turn } = siblings
    const turnId = turn.data.turnId ?? ""
    const isLive = (call: Call) => alsoLost || live.origin(call.callId) !== undefined
    const had = moves.settled.filter((call) => call.snapshot.data.turnId === turnId && isLive(call))
    const tells: Array<Tell> = []
    const finish = () => {
      const { results } = moves.state
      // if the run has ended the turn together with these results, it makes no more calls
      const end =
        ending?._tag === "response_done" ? { finalOutput: ending.finalOutput, usage: ending.usage } : undefined
      tells.push(tell(toTurn, { _tag: "tools_finished", turnId, results, continue: end === undefined, ...end }))
    }
    const isOpen = get(moves.state.counts, turnId) !== undefined
    if (had.length > 0 && !isOpen) finish()
    const isSteered = isActive(turn) && live.turnId === turnId && inbox.data.waiting.some(({ steer }) => steer === true)
    if (isSteered && isOpen && moves.runes.length > 0 && moves.of(turnId).every(waits))
      tells.push(...boundary(moves, turnId, siblings))
    return tells
  }

  /** Ends the turn for a steering message. Calls that wait for the user are cancelled first. */
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
    const same = repeated(moves.state, turnId)
    const isNews = same !== undefined && repeated(state, turnId) === undefined
    return decided(moves, [
      tell(toTurn, { _tag: "tool_calls_received", turnId, callIds }),
      tell(toLife, { _tag: "Used", turnId, spent: { toolCalls: callIds.length }, same: isNews ? same : undefined })
    ])
  }

  /** Forwards the message to the turn, after everything that the run reported before. */
  const open = (message: Extract<ToolsMessage, { _tag: "Open" }>, context: Context): Decision<ToolsState, Act> => ({
    runes: [],
    tells: [tell(new Siblings(agent, context).toTurn, message)]
  })

  /**
   * Handles a request for approval from a call that was recorded as running. Cancels the call, and replaces it with
   * a new call that runs only if it is approved.
   */
  const begunAnew = (moves: Moves, callId: string, was: string): void => {
    const before = moves.call(was)
    if (before === undefined) return
    const { data } = before.snapshot
    const { timeout, toolName, turnId } = data
    const call = { callId, turnId: turnId ?? "", toolName: toolName ?? "", arguments: JSON.parse(before.arguments) }
    const { approvalTimeout } = data.limits
    const waits = approvalTimeout === null ? {} : { approvalTimeout }
    moves.step(callId, { _tag: "call_requested", ...call, digest: before.key, timeout, ...waits })
    moves.step(was, { _tag: "cancelled", callId: was, reason: `the call now asks for approval: see ${callId}` })
  }

  const asked = (
    state: ToolsState,
    message: Extract<ToolsMessage, { _tag: "Asked" }>,
    context: Context
  ): Decision<ToolsState, Act> | "stale" => {
    const { asked: event, callId, hash, was } = message
    const moves = new Moves(agent, state, context)
    if (was !== undefined) begunAnew(moves, callId, was)
    const call = moves.call(callId)
    if (call?.snapshot.state === "executing" && call.asked === false)
      return {
        runes: [],
        acts: [
          { _tag: "Drop", callId },
          { _tag: "Late", message }
        ]
      }
    if (call === undefined || call.snapshot.state !== "pending_call") return "stale" as const
    const { key, snapshot } = call
    const { questions = [], reason } = event
    const granted = get(state.grants, key)
    const tool = snapshot.data.toolName ?? ""
    const runRules = rulesOf(state, live.origin(callId)?.run.runId)
    const { reason: ruled, rule, verdict } = verdictOf(setting, live, { callId, tool, asked: event }, runRules)
    if (granted !== undefined && verdict === "ask") {
      const policyReason = `approved before by ${granted.by}`
      moves.step(callId, { _tag: "auto_approved", callId, policyReason, answers: granted.answers ?? undefined })
      moves.acts.push(allow(moves.call(callId)!))
    } else if (verdict === "run") {
      moves.step(callId, { _tag: "auto_approved", callId, policyReason: ruled })
      moves.acts.push(allow(moves.call(callId)!))
    } else {
      // a question from before a restart may still be open: only the new one is kept
      for (const other of HashMap.values(state.open)) {
        if (other.callId === callId || other.key !== key || live.origin(other.callId) !== undefined) continue
        moves.step(other.callId, { _tag: "cancelled", callId: other.callId, reason: `asked again as ${callId}` })
      }
      const asks = questions.length === 0 ? {} : { questions }
      const named = hash === undefined ? {} : { hash }
      // a rule is the reason, whatever the program says
      const policyReason = reason === "" || rule !== undefined ? ruled : reason
      moves.step(callId, { _tag: "requires_approval", callId, policyReason, ...asks, ...named })
      const byMode = setting.config().approvals.mode === "read_only" ? "approvals.mode" : "agentd"
      if (verdict === "deny") denied(moves, callId, rule === undefined ? byMode : "rules", ruled)
      else if (hash === undefined) denied(moves, callId, "agentd", TOO_LARGE)
    }
    const now = moves.call(callId)
    if (now === undefined || !waits(now)) moves.acts.push({ _tag: "Drop", callId })
    return decided(moves, told(moves, new Siblings(agent, context)))
  }

  const allow = ({ callId, snapshot: { data } }: Call): Act => ({
    _tag: "Tell",
    callId,
    decision: data.answers === null ? { behavior: "allow" } : { behavior: "allow", answers: data.answers }
  })

  /** Denies a call: its run receives the reason, and the call gets its result. */
  const denied = (moves: Moves, callId: string, approver: string, reason: string, words?: boolean): boolean => {
    if (!moves.step(callId, { _tag: "denied", callId, approver, reason })) return false
    moves.acts.push({
      _tag: "Tell",
      callId,
      decision: { behavior: "deny", message: reason, ...(words === true ? { words } : {}) },
      isOurs: words === undefined
    })
    moves.step(callId, { _tag: "denial_reported", callId })
    return true
  }

  /** Runs each waiting call of the live run that rules allow now. No person has looked at these calls. */
  const weigh = (moves: Moves): void => {
    for (const call of moves.all.filter(waits)) {
      const { callId } = call
      const { parts, reason, rule, verdict } = decisionOf(setting, live, moves.state, call) ?? NONE
      // only a rule takes a question away from the person who was asked, not a new mode
      if (verdict !== "run" || [rule, ...parts.map((part) => part.rule)].every((one) => one === undefined)) continue
      moves.step(callId, { _tag: "approved", callId, approver: "rules", policyReason: reason })
      moves.acts.push(allow(moves.call(callId)!))
    }
  }

  const weighed = (state: ToolsState, context: Context) => {
    const moves = new Moves(agent, state, context)
    weigh(moves)
    return decided(moves, told(moves, new Siblings(agent, context)))
  }

  const answer = (
    state: ToolsState,
    { by, callId, said }: Extract<ToolsMessage, { _tag: "Answer" }>,
    context: Context
  ) => {
    const moves = new Moves(agent, state, context)
    const call = moves.call(callId)
    const ended = state.ended.find(([id]) => id === callId)?.[1]
    const late = () => new Refuse(tooLate(callId, ended, call))
    if (call === undefined || !waits(call)) return late()
    const tool = call.snapshot.data.toolName ?? ""
    const chosen = answersOf({ ...call, tool, turnId: "" }, said)
    if (chosen instanceof CommandRefused) return new Refuse(chosen)
    const isLeave = said.behavior === "allow" && chosen === undefined
    const unseen = isLeave ? CallHash.refusalOf(callId, said.hash, call.hash) : undefined
    if (unseen !== undefined) return new Refuse(new CommandRefused({ code: "conflict", ...unseen }))
    const origin = live.origin(callId)
    const isOver = origin === undefined
    if (isOver && said.lasting?.scope === "run") return new Refuse(runOver(callId))
    if (said.behavior === "deny") {
      const reason = said.reason.trim()
      if (!denied(moves, callId, by, reason || `denied by ${by}`, reason !== "")) return late()
    } else {
      const answers = chosen === undefined ? { hash: call.hash } : { answers: chosen }
      const { lasting } = said
      const run = lasting?.scope === "run" && !isOver ? { run: origin.run.runId } : {}
      if (!moves.step(callId, { _tag: "approved", callId, approver: by, ...answers, ...lasting, ...run })) return late()
      if (isOver) {
        moves.step(callId, { _tag: "execution_error", callId, status: "unknown", error: OVER, grant: by })
      } else moves.acts.push(allow(moves.call(callId)!))
      if (lasting?.scope === "run") weigh(moves)
    }
    const reply: Answered = { eventId: context.nextId, tool, answers: chosen, late: isOver }
    return decided(moves, told(moves, new Siblings(agent, context)), reply)
  }

  /**
   * Whether the run was adopted during this turn. Then all open calls belong to the run, even if their output was lost.
   */
  const hasAll = (turnId: string): boolean => live.resumed === turnId

  /** Ends the turn's open calls. Returns false if there are more than one append may end. */
  const endAll = (moves: Moves, turnId: string, how: "cancelled" | "unknown", reason: string): boolean => {
    const left = moves.of(turnId).filter(({ callId }) => hasAll(turnId) || live.origin(callId) !== undefined)
    for (const call of left.slice(0, AT_ONCE)) moves.end(call, how, reason)
    return left.length <= AT_ONCE
  }

  /** Sends the message to this actor again, for the calls that have not been handled yet. */
  const more = (moves: Moves, message: ToolsMessage, { self }: Context) =>
    decided(moves, [later(self as Ref<ToolsMessage>, message)])

  const close = (state: ToolsState, message: Extract<ToolsMessage, { _tag: "Close" }>, context: Context) => {
    const { ending, how, reason, spent, turnId } = message
    const siblings = new Siblings(agent, context)
    const moves = new Moves(agent, state, context)
    if (!endAll(moves, turnId, how, reason)) return more(moves, message, context)
    const { toLife, toTurn } = siblings
    const news = told(moves, siblings, hasAll(turnId), ending)
    // the turn may have ended together with its last results
    const isOver = news.length > 0 && ending._tag === "response_done"
    return decided(moves, [
      tell(toLife, { _tag: "Used", turnId, spent }),
      ...news,
      ...(isOver ? [] : [tell(toTurn, { _tag: "Over", turnId, ending } as const)])
    ])
  }

  const exited = (state: ToolsState, message: Extract<ToolsMessage, { _tag: "Exited" }>, context: Context) => {
    const { ending, outcome, runId, spent, worked } = message
    const exit = { runId, outcome, ...(worked === true ? { worked } : {}) }
    const siblings = new Siblings(agent, context)
    const { toLife, toTurn, toWorker, turn, worker } = siblings
    const moves = new Moves(agent, state, context)
    const turnId = turn.data.turnId ?? ""
    // after the grace period the worker no longer lists a killed run, but the interrupted turn still belongs to it
    const isIts = worker.now?.data.runId === runId || turn.state === "interrupted"
    const isOurs = turn.entered > recoveredTo || live.resumed === turnId
    const isOpen = turn.state !== "idle" && isOurs && isIts
    const isBetween = turn.state === "idle" && worker.now?.state === "Running" && worker.now.data.runId === runId
    const isDeath = isBetween && outcome._tag !== "Success" && ending._tag === "stream_error" && ending.died === true
    if (isOpen && !endAll(moves, turnId, "unknown", "no result came")) return more(moves, message, context)
    return decided(moves, [
      ...told(moves, siblings, hasAll(turnId)),
      ...(isOpen
        ? [
            tell(toLife, { _tag: "Used" as const, turnId, spent }),
            tell(toTurn, { _tag: "Over" as const, turnId, ending: { ...ending, turnId }, exit })
          ]
        : [tell(toWorker, { _tag: "SessionExited" as const, ...exit, ...(isDeath ? { died: true } : {}) })])
    ])
  }

  /** Marks running calls as unknown. A waiting call stays open if its complete input can still be shown to the user. */
  const unknown = (moves: Moves, calls: ReadonlyArray<Call>): void => {
    for (const call of calls) {
      const { callId, questions } = call
      if (live.origin(callId) !== undefined) continue
      if (!waits(call)) moves.end(call, "unknown", OVER)
      else if (questions.length === 0 && setting.waiting.get(callId) === undefined) {
        moves.step(callId, { _tag: "cancelled", callId, reason: UNSEEN })
      }
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
    const siblings = new Siblings(agent, context)
    const moves = new Moves(agent, state, context)
    // the run may have reported a result while no daemon was running, so its output is read before timeouts are checked
    const due = isAwaited(place, siblings.worker, recoveredTo) ? [] : state.due
    for (const { at, callId } of due) {
      const call = moves.call(callId)
      if (at > context.now || call === undefined) continue
      const name = ToolMachine.Tool.states[call.snapshot.state].timeout!
      moves.step(callId, ToolMachine.Tool.timers[name].fires(call.snapshot.data))
      if (name === "approval")
        moves.tells.push(tell(siblings.toInbox, { _tag: "Bound", text: unanswered(call), callId }))
    }
    return decided(moves, told(moves, siblings))
  }

  const ofCall = (state: ToolsState, callId: string, context: Context, act: (moves: Moves, call: Call) => unknown) => {
    const moves = new Moves(agent, state, context)
    const call = moves.call(callId)
    if (call === undefined) return "stale" as const
    act(moves, call)
    return decided(moves, told(moves, new Siblings(agent, context)))
  }

  /** Makes the decision, and also reports how long all open calls waited for the user. */
  const decide = (state: ToolsState, message: ToolsMessage, context: Context) => {
    const decision = decideOn(state, message, context)
    if (typeof decision === "string" || !("runes" in decision) || decision.state === undefined) return decision
    const { toLife, turn } = new Siblings(agent, context)
    const { turnId } = turn.data
    const waited = isStalled(state, turnId)
    if (turnId === null || waited === isStalled(decision.state, turnId)) return decision
    const used = tell(toLife, { _tag: "Used", turnId, spent: {}, waited } as const)
    return { ...decision, tells: [used, ...(decision.tells ?? [])] }
  }

  const decideOn = (
    state: ToolsState,
    message: ToolsMessage,
    context: Context
  ): Decision<ToolsState, Act> | Refuse<CommandRefused> | Refusal => {
    switch (message._tag) {
      case "Open":
        return open(message, context)
      case "Called":
        return called(state, message, context)
      case "Asked":
        return asked(state, message, context)
      case "Paid":
        return { runes: [], tells: [tell(new Siblings(agent, context).toLife, { ...message, _tag: "Used" })] }
      case "TakenBack":
        return ofCall(state, message.callId, context, (moves, { callId }) =>
          moves.step(callId, { _tag: "withdrawn", callId })
        )
      case "Ran":
        return ofCall(state, message.callId, context, (moves, { callId, snapshot }) => {
          if (snapshot.state === "pending_call") moves.step(callId, { _tag: "no_approval_needed", callId })
        })
      case "Result":
        return ofCall(state, message.callId, context, (moves, call) => moves.end(call, message.status, message.output))
      case "Answer":
        return answer(state, message, context)
      case "Weigh":
        return weighed(state, context)
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
        // calls of the active turn are ended together with that turn
        const open = isActive(turn) ? turn.data.turnId : null
        unknown(
          moves,
          moves.all.filter(({ snapshot }) => snapshot.data.turnId !== open)
        )
        const kept = setting.waiting.of(setting.conversation, agent)
        const isAsking = (callId: string) => moves.all.some((call) => call.callId === callId && waits(call))
        moves.acts.push(...kept.flatMap((callId) => (isAsking(callId) ? [] : [{ _tag: "Drop" as const, callId }])))
        return decided(moves, [])
      }
      case "Abandon":
        return callOff(state, () => true, message.reason, context)
      case "Steer":
        return steer(state, message, context)
      case "Heard":
        return { runes: [] }
      case "Time":
        return time(state, context)
    }
  }

  const perform = (action: Act): Effect.Effect<void> | void => {
    switch (action._tag) {
      case "Tell":
        if (action.isOurs === true && action.decision.behavior === "deny") live.refused = action.decision.message
        return live.answerer(action.callId)?.(action.decision)
      case "StopTool": {
        const callId = action.callId ?? ""
        const origin = live.origin(callId)
        // if a newer call replaced this call, the run continues with the newer one
        return live.origin(lateName(callId)) === undefined ? origin?.run.cancelCall(origin.id) : undefined
      }
      case "ReportResult":
        return live.settled(action.callId ?? "")
      case "Drop":
        return setting.waiting.drop(action.callId)
      case "Late":
        return live.late(action.message.callId, action.message.asked)
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
    run: (_, { self }) =>
      Effect.suspend(() => {
        const orphans = self.tell({ _tag: "Orphans" })
        if (!isAwaited(place, place.now().worker, recoveredTo)) return orphans
        return whenAdopted(place, recoveredTo).pipe(
          Effect.andThen(orphans),
          Effect.andThen(self.tell({ _tag: "Time" }))
        )
      })
  })
})
