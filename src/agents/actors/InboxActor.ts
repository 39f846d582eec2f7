/**
 * InboxActor: the actor for the inbox of one agent. It writes each incoming message to the log. If the agent is idle,
 * the message's turn starts in the same append.
 *
 * Guarantees: A message id is accepted once. A message cannot be withdrawn while a turn carries it, or after a turn has
 * finished it. An urgent message ends only the run that is live when it arrives. A steer ends a turn only if the run
 * has received the input of that turn; otherwise the steer waits, first in the queue.
 */
import { Effect } from "effect"
import {
  actor,
  type Context,
  type Decision,
  type Draft,
  Refuse,
  type Tell,
  tell
} from "../../core/event-actor/EventSourcedActor.ts"
import { evolve, evolveBy, notJoined } from "../../core/event-actor/StateMachine.ts"
import { joined, move } from "../../core/event-actor/StateMachineActor.ts"
import type { Fate } from "../../domain/AgentPort.ts"
import { type CommandRefused, refuse } from "../../domain/Messages.ts"
import type { Rune, RuneRef } from "../../core/event-log/Rune.ts"
import type { InboxMessage } from "../machines/AgentMessages.ts"
import { AgentEnvironment } from "./AgentEnvironment.ts"
import { endedWith, type InboxState, isActive, refOf, Siblings } from "../machines/AgentStates.ts"
import * as Inbox from "../machines/Inbox.ts"
import { next } from "./NextTurn.ts"
import { CurrentRun } from "./CurrentRun.ts"

type Inner =
  | {
      readonly _tag: "Follow"
      readonly received: Extract<InboxMessage, { _tag: "Receive" }>
      readonly eventId: number
    }
  /** Sent when waiting messages can be processed. */
  | { readonly _tag: "Begin" }
  /** Repairs the inbox: an older version recorded a turn's start in a separate append, which may be missing. */
  | { readonly _tag: "Align" }

export interface Received {
  readonly eventId: number
  /** True if no message with this id was received before. */
  readonly isNew: boolean
  /**
   * The effect of the message. `urgent`: a run is ended for it. `steered`: the current turn ends early for it. `waits`:
   * it is queued. `rests`: it is queued until a user continues.
   */
  readonly heard: "urgent" | "steered" | "waits" | "rests"
}

export const fresh: InboxState = { state: "Open", data: Inbox.initial, entered: 0, seq: 0, at: 0 }

const boundOf = (text: string, turnId: string | undefined, eventId: number, at: number): Inbox.Bound => ({
  eventId,
  text,
  at,
  ...(turnId === undefined ? {} : { holds: true })
})

/** `isJoined`: the rune belongs to a turn, and names the messages that the turn carries. */
export const apply = (state: InboxState, rune: Rune, isJoined: boolean): InboxState => {
  if (rune.kind === "agent.bound_reached") {
    const { text, turn_id: turnId } = rune.payload as { readonly text: string; readonly turn_id?: string }
    return { ...state, data: Inbox.bounding(state.data, boundOf(text, turnId, rune.eventId, rune.at)) }
  }
  if (rune.kind === "agent.asked") {
    const { question } = rune.payload as { readonly question: string }
    return { ...state, data: Inbox.asking(state.data, { eventId: rune.eventId, question, at: rune.at }) }
  }
  if (!isJoined) return evolve(Inbox.Inbox, state, rune)
  const event = Inbox.joins(rune)
  if (event === undefined) throw notJoined(Inbox.Inbox, rune)
  return evolveBy(Inbox.Inbox, state, event, rune)
}

type Act = { readonly _tag: "FirstMessage"; readonly messageId: string; readonly ref: RuneRef }

/** Whether a turn carries the message or the message is queued; undefined if neither is true. */
export const standing = (
  messageId: string,
  { inbox, turn, worker }: Pick<Siblings, "inbox" | "turn" | "worker">
): Extract<Fate, { readonly _tag: "Carried" | "Waiting" }> | undefined => {
  if (isActive(turn) && turn.data.messageIds.includes(messageId)) {
    return { _tag: "Carried", turnId: turn.data.turnId!, begun: true }
  }
  if (worker.now?.state === "Spawning" && worker.now.data.messageIds.includes(messageId)) {
    return { _tag: "Carried", turnId: worker.now.data.runId!, begun: false }
  }
  const waits = turn.data.messageIds.includes(messageId)
    ? turn.data.unfinished.includes(messageId) && !Inbox.isWithdrawn(inbox.data, messageId)
    : inbox.data.waiting.some((message) => message.messageId === messageId)
  return waits ? { _tag: "Waiting" } : undefined
}

/** All dropped messages, or the one with the id `which`. */
const meant = (data: Inbox.Data, which: string | undefined): ReadonlyArray<string> =>
  Inbox.droppedOf(data)
    .dropped.map(({ message }) => message.messageId)
    .filter((id) => which === undefined || id === which)

/**
 * How many dropped messages were queued again or discarded, and the event id of the rune. Both are 0 if there were
 * none.
 */
export interface Settled {
  readonly count: number
  readonly eventId: number
}

const NOTHING: Settled = { count: 0, eventId: 0 }

const full = (name: string): CommandRefused =>
  refuse(
    "full",
    `${name} already has ${Inbox.MAX_WAITING} waiting messages.`,
    `See why it does not process them: agentd why ${name}`
  )

// All parts of this actor's definition are in one function, because they share its services.
// oxlint-disable-next-line max-lines-per-function
export const make = Effect.gen(function* () {
  const setting = yield* AgentEnvironment
  const place = yield* CurrentRun
  const { agent, conversation, home, project } = setting

  /** Selects the messages to the agent's other actors that a new message causes. */
  const follow = (
    { message, how }: Extract<InboxMessage, { _tag: "Receive" }>,
    siblings: Siblings,
    context: Context
  ): { readonly tells: ReadonlyArray<Tell>; readonly heard: Received["heard"] } => {
    const { toTools, toWorker, turn, worker } = siblings
    const { messageId } = message
    const { data, state } = worker.now ?? {}
    if (how === "urgent" && data?.runId != null && (state === "Running" || state === "Spawning")) {
      return { tells: [tell(toWorker, { _tag: "UrgentMessage", messageId, runId: data.runId })], heard: "urgent" }
    }
    const { live } = place
    if (how === "steer" && live.turns && isActive(turn) && live.turnId === turn.data.turnId) {
      return { tells: [tell(toTools, { _tag: "Steer", turnId: live.turnId! })], heard: "steered" }
    }
    return { tells: next(setting, place, context), heard: "waits" }
  }

  const receive = (
    state: InboxState,
    received: Extract<InboxMessage, { _tag: "Receive" }>,
    context: Context
  ): Decision<InboxState, Act> | Refuse<CommandRefused> => {
    const { how, message } = received
    const { messageId } = message
    const siblings = new Siblings(agent, context)
    const ended = endedWith(siblings.turn, messageId)
    const kept = how === "steer" ? { ...message, steer: true } : message
    const reason = ended === undefined ? Inbox.restsFor(state.data, kept, setting.rest()) : undefined
    if (reason !== undefined) {
      const rested = move(Inbox.Inbox, state, { _tag: "Rested", message: kept, reason }, context)
      const isNew = typeof rested !== "string"
      const reply: Received = { eventId: isNew ? context.nextId : 0, isNew, heard: "rests" }
      return isNew ? { runes: [rested.draft], state: rested.after, reply } : { runes: [], reply }
    }
    const moved = ended === undefined ? move(Inbox.Inbox, state, { _tag: "Received", message: kept }, context) : "stale"
    if (typeof moved === "string") {
      const reply: Received = { eventId: ended?.eventId ?? 0, isNew: false, heard: "waits" }
      return { runes: [], reply }
    }
    if (state.data.waiting.length >= Inbox.MAX_WAITING) return new Refuse(full(`${project()}/${agent}`))
    return {
      runes: [moved.draft],
      state: moved.after,
      // sent as a separate message, because the receivers must see the inbox with the new message
      tells: [tell(context.self as never, { _tag: "Follow", received, eventId: context.nextId })],
      acts: [{ _tag: "FirstMessage", messageId, ref: refOf(context, conversation) }]
    }
  }

  /** Withdraws messages. Messages that are already withdrawn are not an error. */
  const withdraw = (
    state: InboxState,
    messageIds: ReadonlyArray<string>,
    context: Context
  ): Decision<InboxState, Act> => {
    const siblings = new Siblings(agent, context)
    const left = messageIds.filter((messageId) => !Inbox.isWithdrawn(state.data, messageId))
    if (left.some((messageId) => standing(messageId, siblings)?._tag !== "Waiting")) return { runes: [], reply: false }
    const drafts: Array<Draft> = []
    let after = state
    for (const messageId of left) {
      const moved = move(Inbox.Inbox, after, { _tag: "Withdrawn", messageId }, context, drafts.length)
      if (typeof moved === "string") return { runes: [], reply: false }
      drafts.push(moved.draft)
      after = moved.after
    }
    return { runes: drafts, state: after, reply: true }
  }

  const settle = (
    state: InboxState,
    event: Inbox.Event,
    count: number,
    context: Context
  ): Decision<InboxState, Act> => {
    const moved = move(Inbox.Inbox, state, event, context)
    if (typeof moved === "string") return { runes: [], reply: NOTHING }
    return { runes: [moved.draft], state: moved.after, reply: { count, eventId: context.nextId } satisfies Settled }
  }

  /** Queues dropped messages again under new ids, because work that waited for the old ids has ended. */
  const askAgain = (
    state: InboxState,
    { as, by, which }: Extract<InboxMessage, { _tag: "AskAgain" }>,
    context: Context
  ): Decision<InboxState, Act> | Refuse<CommandRefused> => {
    const messages = meant(state.data, which).map((messageId, at) => ({ messageId, as: at === 0 ? as : `${as}-${at}` }))
    const goesOn = which === undefined && Inbox.heldBy(state.data) !== undefined
    if (messages.length === 0 && !goesOn) return { runes: [], reply: NOTHING }
    if (state.data.waiting.length + messages.length > Inbox.MAX_WAITING)
      return new Refuse(full(`${project()}/${agent}`))
    const event: Inbox.Event = { _tag: "AskedAgain", messages, by, at: context.now }
    return {
      ...settle(state, event, Math.max(1, messages.length), context),
      tells: [tell(context.self as never, { _tag: "Begin" })]
    }
  }

  const dismiss = (
    state: InboxState,
    { by, which }: Extract<InboxMessage, { _tag: "Dismiss" }>,
    context: Context
  ): Decision<InboxState, Act> => {
    const messageIds = meant(state.data, which)
    const all = which === undefined
    const { bounds = [], questions: asked = [] } = state.data
    const questions = asked.length + bounds.length
    const count = messageIds.length + (all ? Inbox.droppedOf(state.data).more + questions : 0)
    if (count === 0) return { runes: [], reply: NOTHING }
    return settle(state, { _tag: "Dismissed", messageIds, all, by }, count, context)
  }

  return actor<InboxState, InboxMessage | Inner, Act, CommandRefused>({
    initial: fresh,
    decide: (state, message, context) => {
      switch (message._tag) {
        case "Receive":
          return receive(state, message, context)
        case "Follow": {
          const { heard, tells } = follow(message.received, new Siblings(agent, context), context)
          const reply: Received = { eventId: message.eventId, isNew: true, heard }
          return { runes: [], tells, reply }
        }
        case "Withdraw":
          return withdraw(state, message.messageIds, context)
        case "Drop": {
          const { end, messageIds } = message
          const moved = move(Inbox.Inbox, state, { _tag: "Dropped", messageIds, ...end }, context)
          return typeof moved === "string" ? { runes: [] } : { runes: [moved.draft], state: moved.after }
        }
        case "Ask": {
          const { question, turnId } = message
          const eventId = context.nextId
          const payload = { agent_id: agent, turn_id: turnId, question }
          return {
            runes: [{ kind: "agent.asked", trigger: "ask", payload }],
            state: { ...state, data: Inbox.asking(state.data, { eventId, question, at: context.now }) },
            reply: { count: 1, eventId } satisfies Settled
          }
        }
        case "Bound": {
          const { callId, text, turnId } = message
          const { toTurn, turn } = new Siblings(agent, context)
          const isOver = turnId !== undefined && (!isActive(turn) || turn.data.turnId !== turnId)
          if (isOver || Inbox.isKnownBound(state.data, text)) return { runes: [], reply: NOTHING }
          const eventId = context.nextId
          const call = callId === undefined ? {} : { call_id: callId }
          const payload = { agent_id: agent, text, ...call, ...(turnId === undefined ? {} : { turn_id: turnId }) }
          const stop = { _tag: "interrupt", by: "agentd", reason: text, keep: true, ...place.live.partial } as const
          return {
            runes: [{ kind: "agent.bound_reached", trigger: "bound", payload }],
            state: { ...state, data: Inbox.bounding(state.data, boundOf(text, turnId, eventId, context.now)) },
            tells: turnId === undefined ? [] : [tell(toTurn, { ...stop, turnId })],
            reply: { count: 1, eventId } satisfies Settled
          }
        }
        case "AskAgain":
          return askAgain(state, message, context)
        case "Begin":
          return { runes: [], tells: next(setting, place, context) }
        case "Dismiss":
          return dismiss(state, message, context)
        case "Align": {
          const { messageIds, turnId } = new Siblings(agent, context).turn.data
          if (turnId === null || state.data.runId === turnId) return { runes: [] }
          const moved = move(Inbox.Inbox, state, { _tag: "Delivered", runId: turnId, messageIds }, context)
          return typeof moved === "string" ? moved : { runes: [moved.draft], state: moved.after }
        }
      }
    },
    join: (state, rune) => {
      const event = Inbox.joins(rune)
      if (event === undefined) return undefined
      const moved = joined(Inbox.Inbox, state, event, rune)
      return typeof moved === "string" ? moved : { state: moved.after }
    },
    apply,
    activities: () => [{ name: "Align", key: 0 }],
    perform: ({ messageId, ref }) => home.firstMessage(messageId, ref),
    run: (_, { self }) => self.tell({ _tag: "Align" })
  })
})
