/**
 * Inbox: the messages that wait for an agent, as a machine with one state.
 *
 * A message waits until a turn that carries it has started (`Delivered`), so a failed spawn loses no message. A turn's
 * messages are stored until the next turn starts, so that interrupted work can continue under the same ids. A known
 * message id changes nothing. Unanswered messages are also stored, in limited number, until the user queues them again
 * or discards them.
 */
import { Schema } from "effect"
import type { Said } from "../../core/event-log/EventKinds.ts"
import { define, to } from "../../core/event-actor/StateMachine.ts"
import { isAssistant } from "../../domain/MessageFrame.ts"
import * as UnansweredMessages from "./UnansweredMessages.ts"
import { readTurn } from "./TurnKinds.ts"

export const MAX_WAITING = 1000

export const Message = UnansweredMessages.Message
export type Message = UnansweredMessages.Message

export const Event = Schema.Union([
  Schema.TaggedStruct("Received", { message: Message }),
  /** A turn with exactly these messages has started. `runId` is the id of the turn. */
  Schema.TaggedStruct("Delivered", { runId: Schema.String, messageIds: Schema.Array(Schema.String) }),
  Schema.TaggedStruct("Withdrawn", { messageId: Schema.String }),
  /** The turn that carried these messages ended without an answer. The messages are not queued again. */
  Schema.TaggedStruct("Dropped", { messageIds: Schema.Array(Schema.String), ...UnansweredMessages.End.fields }),
  /**
   * An agent's message is withheld, because agents have sent each other too many messages without a message from a
   * user.
   */
  Schema.TaggedStruct("Rested", { message: Message, reason: Schema.String }),
  /** The user queued unanswered messages again, each under a new id. */
  Schema.TaggedStruct("AskedAgain", {
    messages: Schema.Array(Schema.Struct({ messageId: Schema.String, as: Schema.String })),
    by: Schema.String,
    at: Schema.Finite
  }),
  /** The user discarded unanswered messages. */
  Schema.TaggedStruct("Dismissed", {
    messageIds: Schema.Array(Schema.String),
    /** True if the older messages, which are only counted, are discarded too. */
    all: Schema.Boolean,
    by: Schema.String
  })
])
export type Event = typeof Event.Type

/** The inbox event in a turn's rune: a starting turn takes its messages. Undefined for other runes. */
export const joins = (rune: Said): Event | undefined => {
  const event = readTurn(rune)?.payload.event
  if (rune.kind !== "turn.started" || (event?._tag !== "start_turn" && event?._tag !== "steer")) return undefined
  return { _tag: "Delivered", runId: event.turnId, messageIds: event.messageIds }
}

export interface Data {
  /** Waiting messages, oldest first. Includes urgent messages. */
  readonly waiting: ReadonlyArray<Message>
  readonly carried: ReadonlyArray<Message>
  readonly runId: string | null
  /** Ids of recently withdrawn messages, which are not accepted again. */
  readonly withdrawn?: ReadonlyArray<string>
  /** Messages that were not answered, with the reasons. */
  readonly dropped?: UnansweredMessages.Kept
  /** Number of messages from agents since the last message from a user, channel or plan. */
  readonly relayed?: number
  /** Limits that the agent has reached since the last message from a user. */
  readonly bounds?: ReadonlyArray<Bound>
  /** Open questions to the user, oldest first. The user's next message answers them. */
  readonly questions?: ReadonlyArray<Question>
}

/** A question of the agent to the user. The user's next message is the answer. */
export interface Question {
  readonly eventId: number
  readonly question: string
  /** When the question was asked, ms since the epoch. */
  readonly at: number
}

/** A reached limit that protects against endless agent work. */
export interface Bound {
  readonly eventId: number
  readonly text: string
  /** When the limit was reached, ms since the epoch. */
  readonly at: number
  /** True if the agent starts no turn until the user answers. */
  readonly holds?: boolean
}

/** The limit that prevents turns of the agent; undefined if there is none. */
export const heldBy = ({ bounds = [] }: Data): Bound | undefined => bounds.find(({ holds }) => holds === true)

const MAX_BOUNDS = 10

export const isKnownBound = ({ bounds = [] }: Data, text: string): boolean => bounds.some((one) => one.text === text)

export const bounding = (data: Data, bound: Bound): Data => ({
  ...data,
  bounds: [...(data.bounds ?? []), bound].slice(-MAX_BOUNDS)
})

/** Limits on messages between agents without a message from the user. */
export interface Rest {
  /** Maximum length of a chain of messages in which each message caused the next. */
  readonly relays: number
  /** Maximum number of messages from agents to one agent. */
  readonly messages: number
}

const isAgent = (from: string): boolean => from.startsWith("agent:")

/** How many messages from agents led to a message that the agent sends now, this message included. */
export const hopsOf = ({ carried }: Data): number => 1 + Math.max(0, ...carried.map(({ hops = 0 }) => hops))

/** Why a message is withheld; undefined if it is delivered. */
export const restsFor = ({ relayed = 0 }: Data, { from, hops = 0 }: Message, rest: Rest): string | undefined => {
  if (!isAgent(from)) return undefined
  if (hops > rest.relays)
    return `${rest.relays} agent messages, each caused by the one before, without a message from a person`
  return relayed >= rest.messages ? `${rest.messages} agent messages without a message from a person` : undefined
}

/**
 * Resets the count of messages from agents after a message from outside, so that agents can exchange messages again.
 */
const stirred = (data: Data): Data => (data.relayed === undefined ? data : { ...data, relayed: 0 })

const MAX_QUESTIONS = 20
/** Maximum number of characters stored for a question; the log contains the complete text. */
const MAX_QUESTION = 4_000

/** Maximum number of stored questions; the newest are kept. */
export const asking = (data: Data, { at, eventId, question }: Question): Data => ({
  ...data,
  questions: [
    ...(data.questions ?? []),
    { eventId, question: question.slice(0, MAX_QUESTION).toWellFormed(), at }
  ].slice(-MAX_QUESTIONS)
})

/**
 * Whether the sender is a user. All other senders (agents, channels, plans, schedules, assistants and agentd) have
 * names with a prefix.
 */
export const isPerson = (from: string): boolean =>
  from !== "agentd" && !/^(agent|channel|plan|schedule):/.test(from) && !isAssistant(from)

export const initial: Data = { waiting: [], carried: [], runId: null, withdrawn: [] }

const MAX_WITHDRAWN = 100

export const isWithdrawn = (data: Data, messageId: string): boolean => data.withdrawn?.includes(messageId) ?? false

/** The messages that a turn carries and those that wait, oldest first. */
export const known = (data: Data): ReadonlyArray<Message> => [...data.carried, ...data.waiting]

export const droppedOf = ({ dropped = UnansweredMessages.none }: Data): UnansweredMessages.Kept => dropped

export const kinds = [
  "inbox.received",
  "inbox.delivered",
  "inbox.withdrawn",
  "inbox.rested",
  "inbox.dropped",
  "inbox.asked_again",
  "inbox.dismissed"
] as const

const isDropped = (data: Data, id: string): boolean =>
  droppedOf(data).dropped.some(({ message }) => message.messageId === id)

/** Adds a received message. A user's message also answers the agent's questions and removes its reached limits. */
const received = (data: Data, message: Message): Data => {
  const { from, hops = 0 } = message
  const waiting = [...data.waiting, message]
  if (isAgent(from)) return { ...data, waiting, ...(hops > 0 ? { relayed: (data.relayed ?? 0) + 1 } : {}) }
  if (from === "agentd") return { ...data, waiting }
  const { bounds, questions } = data
  const isAnswer = isPerson(from) && (questions !== undefined || bounds !== undefined)
  return { ...stirred(data), waiting, ...(isAnswer ? { questions: [], bounds: [] } : {}) }
}

export const Inbox = define<"Open", Event, Data, never, (typeof kinds)[number]>()({
  name: "inbox",
  initial: "Open",
  final: [],
  rune: "inbox.received",
  fenced: (data, event) => {
    switch (event._tag) {
      case "Received":
      case "Rested": {
        const { messageId } = event.message
        const isKnown = known(data).some((message) => message.messageId === messageId)
        return isKnown || isWithdrawn(data, messageId) || isDropped(data, messageId)
      }
      case "Delivered":
        return event.runId === data.runId
      case "Withdrawn":
        return !known(data).some(({ messageId }) => messageId === event.messageId)
      case "Dropped":
        return !data.carried.some(
          ({ messageId }) => event.messageIds.includes(messageId) && !isDropped(data, messageId)
        )
      case "AskedAgain":
        return !event.messages.every(({ messageId }) => isDropped(data, messageId))
      case "Dismissed":
        return !event.all && !event.messageIds.some((messageId) => isDropped(data, messageId))
    }
  },
  guards: {},
  updates: {
    receive: (data, event) => (event._tag === "Received" ? received(data, event.message) : data),
    rest: (data, event) => {
      if (event._tag !== "Rested") return data
      const { message, reason } = event
      return {
        ...data,
        dropped: UnansweredMessages.add(droppedOf(data), [message], UnansweredMessages.resting(message, reason))
      }
    },
    deliver: (data, event) => {
      if (event._tag !== "Delivered") return data
      const carried = new Set(event.messageIds)
      return {
        ...data,
        waiting: data.waiting.filter((message) => !carried.has(message.messageId)),
        carried: known(data).filter((message) => carried.has(message.messageId)),
        runId: event.runId
      }
    },
    withdraw: (data, event) =>
      event._tag === "Withdrawn"
        ? {
            ...data,
            waiting: data.waiting.filter(({ messageId }) => messageId !== event.messageId),
            carried: data.carried.filter(({ messageId }) => messageId !== event.messageId),
            withdrawn: [...(data.withdrawn ?? []), event.messageId].slice(-MAX_WITHDRAWN)
          }
        : data,
    drop: (data, event) => {
      if (event._tag !== "Dropped") return data
      const asked = data.carried.filter(({ messageId }) => event.messageIds.includes(messageId))
      return { ...data, dropped: UnansweredMessages.add(droppedOf(data), asked, event) }
    },
    askAgain: (data, event) => {
      if (event._tag !== "AskedAgain") return data
      const { dropped } = droppedOf(data)
      const again = event.messages.flatMap(({ as, messageId }) => {
        const found = dropped.find(({ message }) => message.messageId === messageId)
        if (found === undefined) return []
        const { hops: _, steer: __, ...message } = found.message
        return [{ ...message, messageId: as, first: message.first ?? messageId, at: event.at }]
      })
      const left = UnansweredMessages.without(
        droppedOf(data),
        event.messages.map(({ messageId }) => messageId)
      )
      return { ...stirred(data), waiting: [...data.waiting, ...again], dropped: left, bounds: [] }
    },
    dismiss: (data, event) => {
      if (event._tag !== "Dismissed") return data
      const left = UnansweredMessages.without(droppedOf(data), event.messageIds)
      return event.all
        ? { ...stirred(data), dropped: { ...left, more: 0 }, questions: [], bounds: [] }
        : { ...data, dropped: left }
    }
  },
  actions: {},
  timers: {},
  fields: {},
  states: { Open: {} },
  table: {
    Open: {
      Received: to("Open", { set: "receive" }),
      Delivered: to("Open", { set: "deliver", rune: "inbox.delivered" }),
      Withdrawn: to("Open", { set: "withdraw", rune: "inbox.withdrawn" }),
      Rested: to("Open", { set: "rest", rune: "inbox.rested" }),
      Dropped: to("Open", { set: "drop", rune: "inbox.dropped" }),
      AskedAgain: to("Open", { set: "askAgain", rune: "inbox.asked_again" }),
      Dismissed: to("Open", { set: "dismiss", rune: "inbox.dismissed" })
    }
  }
})
