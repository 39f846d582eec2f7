/**
 * TurnActor: the turn of one agent, as an actor.
 *
 * A turn that begins or ends is stated in one append with all that follows from it in its
 * agent: what it carries is delivered, the agent is busy or idle, the next turn begins.
 * Its run is given the input when that is durable.
 *
 * Guarantees: a run is given an input once, and none of a turn that has ended by then; a
 * turn that the live run does not know was lost with an earlier daemon: it ends with an
 * error, its calls before it, and what it was asked is offered again.
 */
import { Clock, Duration, Effect } from "effect"
import {
  type Activity,
  actor,
  type Context,
  type Decision,
  type Refusal,
  type Tell,
  tell
} from "../event-actor/EventSourcedActor.ts"
import type { ActorHandle } from "../event-actor/ActorHandle.ts"
import { evolve } from "../event-actor/StateMachine.ts"
import type { TurnOutcome } from "../domain/AgentPort.ts"
import { causeOf, type Rune, type RuneRef } from "../event-log/Rune.ts"
import { endOf } from "./AgentActor.ts"
import { AgentSetting } from "./AgentSetting.ts"
import { type Ended, isActive, move, refOf, Siblings, type TurnState } from "./AgentStates.ts"
import { countedAs, LOST, NOT_ITS_FAULT } from "./ConversationRecovery.ts"
import { known } from "./Inbox.ts"
import { next } from "./NextTurn.ts"
import { RunPlace } from "./RunPlace.ts"
import * as TurnMachine from "./TurnMachine.ts"

/** What a run says of its turn's end. */
export type Ending = Extract<TurnMachine.Event, { _tag: "response_done" | "interrupt" | "stream_error" }>

export type TurnMessage =
  | TurnMachine.Event
  /** The run is done with the turn, as it says; it has ended before where it was interrupted. */
  | { readonly _tag: "Over"; readonly turnId: string; readonly ending: Ending }
  /** Its parent is to hear what it answered. */
  | { readonly _tag: "Answer"; readonly turnId: string; readonly parent: string }
  /** No live run works on it. */
  | { readonly _tag: "Orphaned"; readonly turnId: string }
  /** So it is, and its calls have their results. */
  | { readonly _tag: "Lost"; readonly turnId: string; readonly message: string }
  /** Something has changed that may give it work. */
  | { readonly _tag: "Look" }

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

/** Messages whose end is remembered. */
const MAX_ENDED = 1_000

export const fresh: TurnState = {
  state: "idle",
  data: TurnMachine.initial(),
  entered: 0,
  seq: 0,
  at: 0,
  ended: new Map()
}

const OUTCOMES: { readonly [state in TurnMachine.State]?: TurnOutcome } = {
  completed: "completed",
  interrupted: "interrupted",
  error: "error"
}

/** How a turn's end is remembered by what it carried. */
const remember = (
  before: TurnState,
  { data, state }: Pick<TurnState, "data" | "state">,
  eventId: number
): ReadonlyMap<string, Ended> => {
  const outcome = OUTCOMES[state]
  if (outcome === undefined || state === before.state || data.messageIds.length === 0) return before.ended
  const ended = new Map(before.ended)
  for (const messageId of data.messageIds) {
    ended.delete(messageId)
    ended.set(messageId, { turnId: data.turnId ?? "", outcome, eventId })
  }
  while (ended.size > MAX_ENDED) ended.delete(ended.keys().next().value!)
  return ended
}

export const apply = (state: TurnState, rune: Rune): TurnState => {
  if (rune.kind === "agent.answered") return state
  const moved = evolve(TurnMachine.Turn, state, rune)
  return { ...moved, ended: remember(state, moved, rune.eventId) }
}

/** What a turn's last rune says that it answered. */
export const outputOf = (rune: { readonly payload: { readonly [key: string]: unknown } } | undefined): string => {
  const output = rune?.payload["final_output"] ?? rune?.payload["partial_output"]
  return typeof output === "string" ? output : ""
}

/** A run that is being ended, and has not within its grace and this, is killed. */
const PATIENCE = Duration.minutes(1)

// The parts of one definition, over the services that they share.
// oxlint-disable-next-line max-lines-per-function
export const make = Effect.gen(function* () {
  const setting = yield* AgentSetting
  const place = yield* RunPlace
  const { agent, config, conversation, home, recoveredTo, report } = setting
  const { live, slot } = place

  /** The live run works on it, or is about to be given it. */
  const isHeld = ({ entered }: TurnState): boolean => live.run !== undefined && entered > recoveredTo

  /** What a channel or a plan asked is theirs to ask again; errors that say nothing of the work are ours. */
  const isOffered = (errorType: string, { inbox, turn }: Siblings): boolean => {
    const asked = known(inbox.data).filter(({ messageId }) => turn.data.messageIds.includes(messageId))
    return NOT_ITS_FAULT.has(errorType) || !asked.some(({ alone }) => alone === true)
  }

  const began = (
    { data }: TurnState,
    input: string,
    { toInbox, toLife, worker }: Siblings,
    context: Context
  ): { readonly tells: ReadonlyArray<Tell>; readonly acts: ReadonlyArray<Act> } => {
    const { messageIds } = data
    const turnId = data.turnId!
    // a run begins with its first turn, and has the input of that one
    const isFirst = worker.now?.data.runId === turnId
    return {
      tells: [
        tell(toInbox, { _tag: "Delivered", runId: turnId, messageIds }),
        tell(toLife, { _tag: "turn_assigned", turnId })
      ],
      acts: [
        ...(isFirst ? [] : [{ _tag: "Give" as const, turnId, text: input }]),
        { _tag: "Begun", turnId, messageIds, ref: refOf(context, conversation) }
      ]
    }
  }

  /** Whoever has a part in the turn hears of its end. */
  const ended = (
    before: TurnState,
    { data, state }: TurnState,
    payload: Rune["payload"],
    { inbox, toLife, toTools, toTurn, toWorker, worker }: Siblings,
    context: Context
  ): { readonly tells: ReadonlyArray<Tell>; readonly acts: ReadonlyArray<Act> } => {
    const turnId = data.turnId!
    const asked = known(inbox.data).filter(({ messageId }) => data.messageIds.includes(messageId))
    const parent = state === "completed" ? setting.hearer(turnId, asked) : undefined
    const waits = state === "interrupted" && isHeld(before)
    const { run, turns } = live
    const isDropped = waits && !turns && run !== undefined && worker.now?.state === "Running"
    return {
      tells: [
        ...(isHeld(before) ? [tell(toLife, { _tag: "Used", turnId, spent: {} } as const)] : []),
        ...(state === "interrupted" ? [tell(toTools, { _tag: "Withdraw", turnId } as const)] : []),
        ...(parent === undefined ? [] : [tell(toTurn, { _tag: "Answer", turnId, parent } as const)]),
        tell(toLife, endOf(data)!),
        ...(isDropped ? [tell(toWorker, { _tag: "UrgentMessage", messageId: null, runId: run.runId } as const)] : []),
        // what was interrupted has its grace; others are over
        ...(waits ? [] : [tell(toTurn, { _tag: "turn_finalized", turnId } as const)])
      ],
      acts: [
        {
          _tag: "Ended",
          data,
          counted: countedAs(data.ended!.outcome, { payload }),
          output: outputOf({ payload }),
          ref: refOf(context, conversation)
        }
      ]
    }
  }

  /** The run has not ended its turn in time: it goes, and takes nothing more with it. */
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
    const now: TurnState = { ...moved.after, ended: remember(state, moved.after, context.nextId) }
    const decided = { runes: [moved.draft], state: now }
    if (now.state === "streaming" && state.state === "idle") {
      const input = event._tag === "start_turn" || event._tag === "steer" ? event.input : ""
      return { ...decided, ...began(now, input, siblings, context) }
    }
    if (OUTCOMES[now.state] !== undefined && state.state !== now.state) {
      const { acts, tells } = ended(state, now, moved.draft.payload, siblings, context)
      return { ...decided, tells, acts: [...moved.actions, ...acts] }
    }
    if (now.state !== "idle") return { ...decided, acts: moved.actions }
    const cut = event._tag === "turn_finalized" && event.forced === true ? forced(now, siblings) : []
    return { ...decided, tells: [...cut, tell(siblings.toTurn, { _tag: "Look" })], acts: moved.actions }
  }

  const over = (
    state: TurnState,
    { ending, turnId }: Extract<TurnMessage, { _tag: "Over" }>,
    context: Context
  ): Decision<TurnState, Act> | Refusal => {
    if (state.data.turnId !== turnId) return "stale"
    if (state.state === "interrupted") return step(state, { _tag: "turn_finalized", turnId }, context)
    if (ending._tag !== "stream_error") return step(state, ending, context)
    const retry = ending.retry === true && isOffered(ending.errorType, new Siblings(agent, context))
    return step(state, { ...ending, retry }, context)
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

  const decide = (state: TurnState, message: TurnMessage, context: Context): Decision<TurnState, Act> | Refusal => {
    switch (message._tag) {
      case "Look":
        return { runes: [], tells: next(setting, place, context) }
      case "Over":
        return over(state, message, context)
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
      // what it was to begin waits in the inbox, and is looked for when the turn is over
      case "start_turn":
        return state.state === "idle" ? step(state, message, context) : "stale"
      case "steer":
        return state.state === "idle" ? "stale" : step(state, message, context)
      default:
        return step(state, message, context)
    }
  }

  /** The next input of the live run. */
  const give = ({ text, turnId }: Extract<Act, { _tag: "Give" }>, self: Handle): Effect.Effect<void> => {
    const { run } = live
    const { state } = self
    const isOn = isActive(state) && state.data.turnId === turnId
    const barred = home.barred()
    // interrupted meanwhile: the run has heard nothing of it, and never will
    if (run === undefined || !isOn || barred !== undefined) {
      const interrupt: TurnMessage = { _tag: "interrupt", turnId, by: "agentd", reason: barred ?? LOST, keep: true }
      return Effect.andThen(isOn ? self.tell(interrupt) : Effect.void, self.tell({ _tag: "turn_finalized", turnId }))
    }
    live.give(turnId)
    return run.send({ turnId, text }).pipe(
      Effect.catchCause(() => Effect.succeed("it takes no further turn")),
      Effect.flatMap((message) => {
        if (message === undefined) return Effect.void
        live.end()
        // one that takes no turns is of no more use
        live.ending(run.runId)
        const event: TurnMessage = { _tag: "stream_error", turnId, errorType: "send", message, retry: true }
        return Effect.andThen(self.tell(event), slot.stop(run.runId))
      })
    )
  }

  const begun = Effect.fnUntraced(function* (
    { messageIds, ref, turnId }: Extract<Act, { _tag: "Begun" }>,
    self: Handle
  ) {
    const at = yield* Clock.currentTimeMillis
    const { eventId } = ref
    yield* report({ _tag: "TurnStarted", conversation, agent, eventId, cause: causeOf(ref), at, turnId, messageIds })
    if (yield* home.newTurn(agent, turnId, ref)) return
    const reason = home.barred() ?? "its conversation takes no turns"
    yield* self.tell({ _tag: "interrupt", turnId, by: "agentd", reason, keep: true, ...live.partial })
  })

  const told = Effect.fnUntraced(function* ({ counted, data, output, ref }: Extract<Act, { _tag: "Ended" }>) {
    const { messageIds, unfinished } = data
    const { outcome, reason } = data.ended!
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
    // its process died in it: the agent is gone before its turn is over
    const why = reason ?? "its process died"
    if (live.lost === turnId) yield* report({ ...of, _tag: "Offline", reason: why, how: "disconnected" })
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
        return run !== undefined && turns && turnId === action.turnId ? run.interruptTurn : Effect.void
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

  const outlasts = Effect.fnUntraced(function* (runId: string) {
    yield* Effect.sleep(Duration.sum(config().interruptGrace, PATIENCE))
    if (slot.current() !== runId) return
    yield* Effect.logWarning(`run ${runId} does not end: it is killed`)
    yield* slot.kill(runId)
    yield* Effect.sleep(PATIENCE)
    yield* slot.end(runId)
  })

  /** A run that has long had nothing to do is ended in order. */
  const rest = Effect.fnUntraced(function* () {
    const { idleTimeout, mode } = config()
    if (mode !== "loop") yield* Effect.sleep(idleTimeout)
    const { run, turns } = live
    if (run === undefined || !turns) return
    if (!live.isEnding(run.runId)) {
      live.ending(run.runId)
      yield* slot.stop(run.runId)
    }
    yield* outlasts(run.runId)
  })

  const run = ({ name }: Activity, self: Handle, state: TurnState): Effect.Effect<void> => {
    const turnId = state.data.turnId ?? ""
    if (name === "TakeNext") place.idle.openUnsafe()
    else place.idle.closeUnsafe()
    switch (name) {
      case "TakeNext":
        return rest()
      case "StreamResponse":
      case "RunTools":
        return isHeld(state) ? Effect.void : self.tell({ _tag: "Orphaned", turnId })
      default:
        return isHeld(state) ? Effect.void : self.tell({ _tag: "turn_finalized", turnId })
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
