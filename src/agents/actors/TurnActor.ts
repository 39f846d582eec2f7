/**
 * TurnActor: the actor for the turn of one agent.
 *
 * The start or end of a turn is one append with all its consequences in the agent: messages are delivered, the agent
 * becomes busy or idle, the next turn starts. The run receives the input when that append is durable.
 *
 * Guarantees: A run receives an input once, and never the input of a turn that has ended. If the live run does not know
 * a turn, the turn was lost with an earlier daemon: its calls end, the turn ends with an error, and its messages are
 * queued again.
 */
import type { Said } from "../../core/event-log/EventKinds.ts"
import { readTurn } from "../machines/TurnKinds.ts"
import { Clock, Duration, Effect } from "effect"
import {
  type Activity,
  actor,
  type Context,
  type Decision,
  type Draft,
  type Refusal,
  type Tell,
  tell
} from "../../core/event-actor/EventSourcedActor.ts"
import type { ActorHandle } from "../../core/event-actor/ActorHandle.ts"
import { move } from "../../core/event-actor/StateMachineActor.ts"
import type { TurnOutcome } from "../../domain/AgentPort.ts"
import { causeOf, type Rune, type RuneRef } from "../../core/event-log/Rune.ts"
import { endOf } from "./AgentActor.ts"
import type { InboxMessage, Opened, TurnMessage } from "../machines/AgentMessages.ts"
import { AgentEnvironment } from "./AgentEnvironment.ts"
import {
  type Ended,
  inboxName,
  isActive,
  lifeName,
  refOf,
  Siblings,
  type TurnState,
  workerName
} from "../machines/AgentStates.ts"
import * as UnansweredMessages from "../machines/UnansweredMessages.ts"
import * as TruncatedAnswer from "../../domain/TruncatedAnswer.ts"
import { countedAs, LOST, NOT_ITS_FAULT } from "../machines/TurnFault.ts"
import type * as Inbox from "../machines/Inbox.ts"
import * as Budget from "../machines/Budget.ts"
import { heldBy, known } from "../machines/Inbox.ts"
import { next } from "./NextTurn.ts"
import * as Prompt from "../prompt/Prompt.ts"
import { CurrentRun, whenAdopted } from "./CurrentRun.ts"
import * as TurnMachine from "../machines/TurnMachine.ts"

type Act =
  | TurnMachine.Action
  | { readonly _tag: "Answered"; readonly eventId: number }
  | { readonly _tag: "Give"; readonly turnId: string; readonly text: string }
  | {
      readonly _tag: "Begun"
      readonly turnId: string
      readonly messageIds: ReadonlyArray<string>
      readonly ref: RuneRef
    }
  | {
      readonly _tag: "Ended"
      readonly data: TurnMachine.Data
      readonly counted: TurnOutcome
      readonly output: string
      readonly ref: RuneRef
    }

type Handle = ActorHandle<TurnState, TurnMessage>

/** How many messages are stored with the end of the turn that carried them. */
const MAX_ENDED = 1_000

export const fresh: TurnState = {
  state: "idle",
  data: TurnMachine.initial(),
  entered: 0,
  seq: 0,
  at: 0,
  ended: []
}

const isEnd = (before: TurnMachine.Data, after: TurnMachine.Data): boolean =>
  before.ended === null && after.ended !== null

const remember = (before: TurnState, { data }: Pick<TurnState, "data">, eventId: number): ReadonlyArray<Ended> => {
  if (!isEnd(before.data, data) || data.messageIds.length === 0) return before.ended
  const { messageIds } = data
  const end: Omit<Ended, "messageId"> = { turnId: data.turnId ?? "", outcome: data.ended!.outcome, eventId }
  const others = before.ended.filter(({ messageId }) => !messageIds.includes(messageId))
  return [...others, ...messageIds.map((messageId) => ({ messageId, ...end }))].slice(-MAX_ENDED)
}

export const apply = (state: TurnState, rune: Rune): TurnState => {
  if (rune.kind === "agent.answered") return state
  const moved = TurnMachine.evolveTurn(state, rune)
  return { ...moved, ended: remember(state, moved, rune.eventId) }
}

/** The answer that the last rune of a turn contains; empty if there is none. */
export const outputOf = (any: Said | undefined): string => {
  const rune = any === undefined ? undefined : readTurn(any)
  switch (rune?.kind) {
    case "turn.completed":
      return rune.payload.final_output ?? ""
    case "turn.interrupted":
      return rune.payload.partial_output ?? ""
    case "turn.error":
      return TruncatedAnswer.marked(rune.payload.partial_output ?? "")
    default:
      return ""
  }
}

/** Why a turn got no answer, according to its last rune; undefined if the turn got an answer. */
export const troubleOf = (any: Said): string | undefined => {
  const rune = readTurn(any)
  if (rune?.kind === "turn.error") return rune.payload.message ?? rune.payload.error_type
  return rune?.kind === "turn.interrupted" ? rune.payload.reason : undefined
}

/** Whether the last rune of a turn reports that the process died during the turn. */
export const hasDied = (any: Said | undefined): boolean => {
  const event = any === undefined ? undefined : readTurn(any)?.payload.event
  return event?._tag === "stream_error" && event.died === true
}

/** How long a run that must end may continue after its grace period before it is killed. */
const PATIENCE = Duration.minutes(1)
/** Maximum time that a run without a turn is kept for its background work. */
const MAX_BACKGROUND = Duration.hours(24)

// All parts of this actor's definition are in one function, because they share its services.
// oxlint-disable-next-line max-lines-per-function
export const make = Effect.gen(function* () {
  const setting = yield* AgentEnvironment
  const place = yield* CurrentRun
  const { agent, config, conversation, home, recoveredTo, report } = setting
  const { live, slot } = place

  /** Whether the live run works on the turn, or will receive it next. */
  const isHeld = ({ data, entered }: TurnState): boolean =>
    live.run !== undefined && (entered > recoveredTo || (data.turnId !== null && live.resumed === data.turnId))

  /**
   * Whether the messages of a failed turn are queued again. Channels and plans repeat their own messages, except after
   * errors with an external cause.
   */
  const isOffered = (errorType: string, { inbox, turn }: Siblings): boolean => {
    const asked = known(inbox.data).filter(({ messageId }) => turn.data.messageIds.includes(messageId))
    return NOT_ITS_FAULT.has(errorType) || !asked.some(({ alone }) => alone === true)
  }

  /**
   * Starts a turn with one rune: the agent becomes busy and the messages are delivered. A run's first turn also starts
   * the run.
   */
  const began = (
    draft: Draft,
    state: TurnState,
    event: Extract<TurnMachine.Event, { _tag: "start_turn" | "steer" }>,
    { worker }: Siblings,
    context: Context
  ): Decision<TurnState, Act> => {
    const { messageIds } = state.data
    const { input, turnId } = event
    const isOfRun = event._tag === "start_turn" && event.run !== undefined
    // a new run starts with its first turn and already has the input of that turn
    const isFirst = worker.now?.data.runId === turnId
    const isOwn = event._tag === "start_turn" && event.source === "own"
    const moves = [inboxName(agent), lifeName(agent), ...(isOfRun ? [workerName(agent)] : [])]
    return {
      runes: [{ ...draft, moves }],
      state,
      acts: [
        ...(isFirst || isOwn ? [] : [{ _tag: "Give" as const, turnId, text: input }]),
        { _tag: "Begun", turnId, messageIds, ref: refOf(context, conversation) }
      ]
    }
  }

  /** Whether a part of the turn's time has not been counted yet. */
  const isUncounted = (state: TurnState, { life }: Siblings, { now }: Context): boolean =>
    isHeld(state) && life.state === "running_turn" && life.data.turnId === state.data.turnId && now !== life.countedTo

  /** Tells the inbox which messages remain unanswered after this end of the turn. */
  const dropped = (
    asked: ReadonlyArray<Inbox.Message>,
    { turnId, unfinished }: TurnMachine.Data,
    event: TurnMachine.Event,
    { now }: Context
  ): ReadonlyArray<Extract<InboxMessage, { _tag: "Drop" }>> => {
    const end = UnansweredMessages.endOf(event, turnId!, now)
    const messageIds = asked.flatMap(({ alone, messageId }) =>
      alone === true || unfinished.includes(messageId) ? [] : [messageId]
    )
    return end === undefined || messageIds.length === 0 ? [] : [{ _tag: "Drop", messageIds, end }]
  }

  /**
   * Ends a turn with one rune: the agent becomes idle. A run that ends successfully with its turn ends in the same
   * rune.
   */
  const ended = (
    before: TurnState,
    after: TurnState,
    { actions, draft }: { readonly draft: Draft; readonly actions: ReadonlyArray<TurnMachine.Action> },
    event: TurnMachine.Event,
    siblings: Siblings,
    context: Context
  ): Decision<TurnState, Act> => {
    const { inbox, life, toInbox, toLife, toTools, toTurn, toWorker, worker } = siblings
    const { data, state } = after
    const turnId = data.turnId!
    const { outcome } = data.ended!
    const asked = known(inbox.data).filter(({ messageId }) => data.messageIds.includes(messageId))
    const lost = dropped(asked, data, event, context)
    const parent = outcome === "completed" || lost.length > 0 ? setting.hearer(turnId, asked) : undefined
    const isStopping = state === "interrupted"
    const waits = isStopping && isHeld(before)
    const { run, turns } = live
    const isDropped = waits && !turns && run !== undefined && worker.now?.state === "Running"
    // an agent that exceeded its budget ends with the turn, and records its own end
    const isBack = life.state === "running_turn" && life.data.turnId === turnId && life.data.spent === null
    const isExit = event._tag === "response_done" && event.exit !== undefined
    const moves = [...(isBack ? [lifeName(agent)] : []), ...(isExit ? [workerName(agent)] : [])]
    return {
      runes: [{ ...draft, moves }],
      state: after,
      tells: [
        ...lost.map((message) => tell(toInbox, message)),
        ...(isStopping ? [tell(toTools, { _tag: "Withdraw", turnId } as const)] : []),
        ...(parent === undefined ? [] : [tell(toTurn, { _tag: "Answer", turnId, parent } as const)]),
        ...(isBack ? [] : [tell(toLife, endOf(data)!)]),
        ...(isDropped ? [tell(toWorker, { _tag: "UrgentMessage", messageId: null, runId: run.runId } as const)] : []),
        // an interrupted turn ends after its grace period
        ...(isStopping && !waits ? [tell(toTurn, { _tag: "turn_finalized", turnId } as const)] : []),
        ...(isStopping ? [] : [tell(toTurn, { _tag: "Look" } as const)])
      ],
      acts: [
        ...actions,
        {
          _tag: "Ended",
          data,
          counted: countedAs(outcome, draft),
          output: outputOf(draft),
          ref: refOf(context, conversation)
        }
      ]
    }
  }

  /** The run exceeded its grace period: cancel its open calls and end the run. */
  const forced = ({ data }: TurnState, { toTools, toWorker }: Siblings): ReadonlyArray<Tell> => {
    const { run } = live
    const turnId = data.turnId!
    return [
      tell(toTools, { _tag: "Cut", turnId, reason: "its turn was interrupted" }),
      ...(run === undefined
        ? []
        : [tell(toWorker, { _tag: "UrgentMessage", messageId: null, runId: run.runId } as const)])
    ]
  }

  const step = (state: TurnState, event: TurnMachine.Event, context: Context): Decision<TurnState, Act> | Refusal => {
    const moved = move(TurnMachine.Turn, state, event, context)
    if (typeof moved === "string") return moved
    const siblings = new Siblings(agent, context)
    const { actions, draft } = moved
    const now: TurnState = { ...moved.after, ended: remember(state, moved.after, context.nextId) }
    if (state.state === "idle" && (event._tag === "start_turn" || event._tag === "steer")) {
      return began(draft, now, event, siblings, context)
    }
    if (isEnd(state.data, now.data)) {
      const { turnId } = now.data
      if (!isUncounted(state, siblings, context)) return ended(state, now, moved, event, siblings, context)
      const used = tell(siblings.toLife, { _tag: "Used", turnId: turnId!, spent: {} })
      return { runes: [], tells: [used, tell(siblings.toTurn, { _tag: "End", event })] }
    }
    const decided = { runes: [draft], state: now, acts: actions }
    if (now.state !== "idle") return decided
    const cut = event._tag === "turn_finalized" && event.forced === true ? forced(now, siblings) : []
    return { ...decided, tells: [...cut, tell(siblings.toTurn, { _tag: "Look" })] }
  }

  /** Ends a turn whose time is already counted. */
  const end = (state: TurnState, event: TurnMachine.Event, context: Context): Decision<TurnState, Act> | Refusal => {
    const moved = move(TurnMachine.Turn, state, event, context)
    if (typeof moved === "string") return moved
    const now: TurnState = { ...moved.after, ended: remember(state, moved.after, context.nextId) }
    return ended(state, now, moved, event, new Siblings(agent, context), context)
  }

  const over = (
    state: TurnState,
    { ending, exit, turnId }: Extract<TurnMessage, { _tag: "Over" }>,
    context: Context
  ): Decision<TurnState, Act> | Refusal => {
    if (state.data.turnId !== turnId) return "stale"
    const siblings = new Siblings(agent, context)
    const { worker } = siblings
    if (state.state === "streaming" && ending._tag === "response_done" && exit?.outcome._tag === "Success") {
      return step(state, { ...ending, exit: { runId: exit.runId, seq: worker.now?.data.sessionSeq ?? 0 } }, context)
    }
    const isKept = ending._tag === "stream_error" && ending.retry === true && isOffered(ending.errorType, siblings)
    const event: TurnMachine.Event =
      state.state === "interrupted"
        ? { _tag: "turn_finalized", turnId }
        : ending._tag === "stream_error"
          ? { ...ending, retry: isKept }
          : ending
    const decided = step(state, event, context)
    if (exit === undefined) return decided
    const end: Decision<TurnState, Act> = typeof decided === "string" ? { runes: [] } : decided
    return { ...end, tells: [...(end.tells ?? []), tell(siblings.toWorker, { _tag: "SessionExited", ...exit })] }
  }

  const lost = (
    state: TurnState,
    { message, turnId }: Extract<TurnMessage, { _tag: "Lost" }>,
    context: Context
  ): Decision<TurnState, Act> | Refusal => {
    if (state.data.turnId !== turnId) return "stale"
    const event: TurnMachine.Event =
      state.state === "tool_executing"
        ? { _tag: "tool_crash", turnId, callId: null, message, retry: true }
        : { _tag: "stream_error", turnId, errorType: "lost", message, retry: true }
    return step(state, event, context)
  }

  /** Handles a turn that the run started by itself. It becomes a turn of the agent if the agent may have a turn now. */
  const open = (
    state: TurnState,
    { runId, why }: Extract<TurnMessage, { _tag: "Open" }>,
    context: Context
  ): Decision<TurnState, Act> => {
    const answered = (reply: Opened): Decision<TurnState, Act> => ({ runes: [], reply })
    // the work is part of the current turn, or of the turn that is about to start
    if (state.state !== "idle" || state.data.unfinished.length > 0) return answered({ _tag: "TakenIn" })
    const { inbox, life, worker } = new Siblings(agent, context)
    const isOn = life.state === "idle" && worker.now?.state === "Running" && worker.now.data.runId === runId
    const held = heldBy(inbox.data)?.text
    const barred = home.barred() ?? held ?? (isOn && !live.isEnding(runId) ? undefined : "its run is being ended")
    if (barred !== undefined) return answered({ _tag: "Refused", reason: barred })
    const exhausted = Budget.exhausted(config().budget, life.spent)
    if (exhausted !== undefined) {
      const reason = `its budget of ${exhausted.resource} is spent`
      return { ...answered({ _tag: "Refused", reason }), tells: next(setting, place, context) }
    }
    const turnId = place.newId(context.now, context.nextId)
    const graceMillis = Duration.toMillis(config().interruptGrace)
    const turn = { turnId, agentId: agent, input: why, messageIds: [], source: "own", graceMillis } as const
    const decided = step(state, { _tag: "start_turn", ...turn, at: context.now }, context)
    return typeof decided === "string" ? answered({ _tag: "TakenIn" }) : { ...decided, reply: { _tag: "Turn", turnId } }
  }

  const decide = (state: TurnState, message: TurnMessage, context: Context): Decision<TurnState, Act> | Refusal => {
    switch (message._tag) {
      case "Look":
        return { runes: [], tells: next(setting, place, context) }
      case "Over":
        return over(state, message, context)
      case "Open":
        return open(state, message, context)
      case "End":
        return end(state, message.event, context)
      case "Answer": {
        const payload = { agent_id: agent, turn_id: message.turnId, parent_id: message.parent }
        return {
          runes: [{ kind: "agent.answered", actor: `voice/${agent}`, payload }],
          acts: [{ _tag: "Answered", eventId: context.nextId }]
        }
      }
      case "Orphaned": {
        const { toTools } = new Siblings(agent, context)
        const { turnId } = message
        return isActive(state) && state.data.turnId === turnId
          ? { runes: [], tells: [tell(toTools, { _tag: "Lost", turnId, message: LOST })] }
          : "stale"
      }
      case "Lost":
        return lost(state, message, context)
      // if the turn is rejected, its messages wait in the inbox until the current turn ends
      case "start_turn":
        return state.state === "idle" ? step(state, message, context) : "stale"
      case "steer":
        return state.state === "idle" ? "stale" : step(state, message, context)
      default:
        return step(state, message, context)
    }
  }

  const filesOf = ({ data }: TurnState) => setting.files.given(Prompt.filesOf(place.now().inbox.data, data.messageIds))

  const give = ({ text, turnId }: Extract<Act, { _tag: "Give" }>, self: Handle): Effect.Effect<void> => {
    const { run } = live
    const { state } = self
    const isOn = isActive(state) && state.data.turnId === turnId
    const barred = home.barred()
    // the turn was interrupted in the meantime: the run must not receive its input
    if (run === undefined || !isOn || barred !== undefined) {
      const interrupt: TurnMessage = { _tag: "interrupt", turnId, by: "agentd", reason: barred ?? LOST, keep: true }
      return Effect.andThen(isOn ? self.tell(interrupt) : Effect.void, self.tell({ _tag: "turn_finalized", turnId }))
    }
    live.give(turnId)
    live.isCommand = Prompt.isBare(text)
    if (!live.isCommand) live.introduced = true
    return run.send({ turnId, text, ...filesOf(state) }).pipe(
      Effect.catchCause(() => Effect.succeed("it accepts no further turn")),
      Effect.flatMap((message) => {
        if (message === undefined) return Effect.void
        live.end()
        // a run that accepts no more turns is stopped
        live.ending(run.runId)
        const event: TurnMessage = { _tag: "stream_error", turnId, errorType: "send", message, retry: true }
        return Effect.andThen(self.tell(event), slot.stop(run.runId))
      })
    )
  }

  const begun = ({ messageIds, ref, turnId }: Extract<Act, { _tag: "Begun" }>, self: Handle) =>
    Effect.gen(function* () {
      const at = yield* Clock.currentTimeMillis
      const { eventId } = ref
      yield* report({ _tag: "TurnStarted", conversation, agent, eventId, cause: causeOf(ref), at, turnId, messageIds })
      if (yield* home.newTurn(agent, turnId, ref)) return
      const reason = home.barred() ?? "its conversation accepts no turns"
      yield* self.tell({ _tag: "interrupt", turnId, by: "agentd", reason, keep: true, ...live.partial })
    })

  const told = ({ counted, data, output, ref }: Extract<Act, { _tag: "Ended" }>) =>
    Effect.gen(function* () {
      const { messageIds, unfinished } = data
      const { died, outcome, reason } = data.ended!
      const turnId = data.turnId!
      yield* home.turnEnded(agent, turnId, counted, ref)
      const { eventId } = ref
      const of = {
        conversation,
        agent,
        eventId,
        cause: causeOf(ref),
        at: yield* Clock.currentTimeMillis,
        turnId,
        messageIds
      }
      // the process of the agent died before its turn ended
      const why = reason ?? "its process died"
      if (died === true) yield* report({ ...of, _tag: "Offline", reason: why, how: "disconnected" })
      yield* report({ ...of, _tag: "TurnEnded", outcome, reason, output, again: unfinished.length > 0 })
    })

  const perform = (action: Act, self: Handle): Effect.Effect<void, unknown> => {
    switch (action._tag) {
      case "Give":
        return give(action, self)
      case "Begun":
        return begun(action, self)
      case "Ended":
        return told(action)
      case "Answered":
        return setting.answered(action.eventId)
      case "StopWork": {
        const { run, turnId, turns } = live
        return run !== undefined && turns && turnId === action.turnId ? place.interrupt(run) : Effect.void
      }
      case "ForceStopWork": {
        const { run } = live
        if (run === undefined) return Effect.void
        live.end()
        live.ending(run.runId)
        return slot.kill(run.runId)
      }
    }
  }

  const outlasts = (runId: string) =>
    Effect.gen(function* () {
      yield* Effect.sleep(Duration.sum(config().interruptGrace, PATIENCE))
      if (slot.current() !== runId) return
      yield* Effect.logWarning(`run ${runId} does not end: it is killed`)
      yield* slot.kill(runId)
      yield* Effect.sleep(PATIENCE)
      yield* slot.end(runId)
    })

  /** Ends a run in an orderly way when it has been idle for `idleTimeout`. */
  const rest = () =>
    Effect.gen(function* () {
      // a run starts with its turn or is adopted, so without a run there is nothing to wait for
      if (live.run === undefined) return
      const { idleTimeout, mode } = config()
      yield* Effect.timeoutOption(live.quiet.await, MAX_BACKGROUND)
      if (mode !== "loop") yield* Effect.sleep(idleTimeout)
      const { run, turns } = live
      if (run === undefined || !turns) return
      if (!live.isEnding(run.runId)) {
        live.ending(run.runId)
        yield* slot.stop(run.runId)
      }
      yield* outlasts(run.runId)
    })

  /** Runs `then` when an earlier daemon's run is adopted or known to be lost. */
  const once = (then: Effect.Effect<void>) => Effect.andThen(whenAdopted(place, recoveredTo), then)

  const run = ({ name }: Activity, self: Handle, state: TurnState): Effect.Effect<void> => {
    const turnId = state.data.turnId ?? ""
    if (name === "TakeNext") place.idle.openUnsafe()
    else place.idle.closeUnsafe()
    switch (name) {
      case "TakeNext":
        return once(Effect.suspend(rest))
      case "StreamResponse":
      case "RunTools":
        return Effect.suspend(() => (isHeld(state) ? Effect.void : self.tell({ _tag: "Orphaned", turnId }))).pipe(once)
      default:
        // the previous daemon may have died before it stopped the run
        return Effect.suspend(() => {
          if (!isHeld(state)) return self.tell({ _tag: "turn_finalized", turnId })
          return live.resumed === turnId && live.run !== undefined ? place.interrupt(live.run) : Effect.void
        }).pipe(once)
    }
  }

  return actor<TurnState, TurnMessage, Act>({
    initial: fresh,
    parts: (name) => name === `voice/${agent}`,
    decide,
    apply,
    comesBack: (before, after) => before.state !== after.state,
    timers: ({ at, data, entered, state }) =>
      state === "interrupted"
        ? [
            {
              key: `grace/${entered}`,
              since: at,
              after: data.graceMillis,
              message: { _tag: "turn_finalized", turnId: data.turnId ?? "", forced: true }
            }
          ]
        : [],
    activities: ({ entered, state }) => {
      const name = TurnMachine.Turn.states[state].enter
      return name === undefined ? [] : [{ name, key: entered }]
    },
    perform: (action, { self }) => perform(action, self),
    run: (activity, { self, state }) => run(activity, self, state)
  })
})
