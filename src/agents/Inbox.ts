/**
 * Inbox: the messages that wait for an agent, as a machine of one state.
 *
 * A message waits until a turn that carries it has begun (`Delivered`), so a spawn
 * that fails loses none. What a turn carries is kept until the next one takes
 * over, so that work cut short can be taken up again under the same id. A message id that is known already changes nothing.
 * What came to no answer is kept beside them, bounded, until a person asks it again or lets it go.
 */
import { Schema } from "effect"
import type { Said } from "../event-log/EventKinds.ts"
import { define, to } from "../event-actor/StateMachine.ts"
import * as Dropped from "./Dropped.ts"
import { readTurn } from "./TurnKinds.ts"

/** Most messages that wait at one agent. */
export const MAX_WAITING = 1000

export const Message = Dropped.Message
export type Message = Dropped.Message

export const Event = Schema.Union([
  Schema.TaggedStruct("Received", { message: Message }),
  /** A turn has begun: these it carries, and nothing else. `runId` is the turn's id. */
  Schema.TaggedStruct("Delivered", { runId: Schema.String, messageIds: Schema.Array(Schema.String) }),
  /** The sender takes the message back. */
  Schema.TaggedStruct("Withdrawn", { messageId: Schema.String }),
  /** The turn that carried these came to no answer, and they are not offered again. */
  Schema.TaggedStruct("Dropped", { messageIds: Schema.Array(Schema.String), ...Dropped.End.fields }),
  /** Dropped ones are asked again, each under a new id. */
  Schema.TaggedStruct("AskedAgain", {
    messages: Schema.Array(Schema.Struct({ messageId: Schema.String, as: Schema.String })),
    by: Schema.String,
    at: Schema.Finite
  }),
  /** Dropped ones are let go. */
  Schema.TaggedStruct("Dismissed", {
    messageIds: Schema.Array(Schema.String),
    /** True: the older ones that were only counted, too. */
    all: Schema.Boolean,
    by: Schema.String
  })
])
export type Event = typeof Event.Type

/** A turn that begins takes over what it carries. */
export const joins = (rune: Said): Event | undefined => {
  const event = readTurn(rune)?.payload.event
  if (rune.kind !== "turn.started" || (event?._tag !== "start_turn" && event?._tag !== "steer")) return undefined
  return { _tag: "Delivered", runId: event.turnId, messageIds: event.messageIds }
}

export interface Data {
  /** Oldest first; urgent ones among them in their turn. */
  readonly waiting: ReadonlyArray<Message>
  /** Messages that the newest turn carries. */
  readonly carried: ReadonlyArray<Message>
  /** The run of that turn. */
  readonly runId: string | null
  /** The last ones that were taken back: they may not come again. */
  readonly withdrawn?: ReadonlyArray<string>
  /** Work that came to no answer. */
  readonly dropped?: Dropped.Kept
}

export const initial: Data = { waiting: [], carried: [], runId: null, withdrawn: [] }

const MAX_WITHDRAWN = 100

export const isWithdrawn = (data: Data, messageId: string): boolean => data.withdrawn?.includes(messageId) ?? false

/** Both, oldest first. */
export const known = (data: Data): ReadonlyArray<Message> => [...data.carried, ...data.waiting]

/** Work that came to no answer, and waits for a person. */
export const droppedOf = ({ dropped = Dropped.none }: Data): Dropped.Kept => dropped

export const kinds = [
  "inbox.received",
  "inbox.delivered",
  "inbox.withdrawn",
  "inbox.dropped",
  "inbox.asked_again",
  "inbox.dismissed"
] as const

const isDropped = (data: Data, id: string): boolean =>
  droppedOf(data).dropped.some(({ message }) => message.messageId === id)

export const Inbox = define<"Open", Event, Data, never, (typeof kinds)[number]>()({
  name: "inbox",
  initial: "Open",
  final: [],
  rune: "inbox.received",
  fenced: (data, event) => {
    switch (event._tag) {
      case "Received": {
        const { messageId } = event.message
        return known(data).some((message) => message.messageId === messageId) || isWithdrawn(data, messageId)
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
    receive: (data, event) =>
      event._tag === "Received" ? { ...data, waiting: [...data.waiting, event.message] } : data,
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
      return { ...data, dropped: Dropped.add(droppedOf(data), asked, event) }
    },
    askAgain: (data, event) => {
      if (event._tag !== "AskedAgain") return data
      const { dropped } = droppedOf(data)
      const again = event.messages.flatMap(({ as, messageId }) => {
        const found = dropped.find(({ message }) => message.messageId === messageId)
        if (found === undefined) return []
        const { steer: _, ...message } = found.message
        return [{ ...message, messageId: as, first: message.first ?? messageId, at: event.at }]
      })
      const left = Dropped.without(
        droppedOf(data),
        event.messages.map(({ messageId }) => messageId)
      )
      return { ...data, waiting: [...data.waiting, ...again], dropped: left }
    },
    dismiss: (data, event) => {
      if (event._tag !== "Dismissed") return data
      const left = Dropped.without(droppedOf(data), event.messageIds)
      return { ...data, dropped: event.all ? { ...left, more: 0 } : left }
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
      Dropped: to("Open", { set: "drop", rune: "inbox.dropped" }),
      AskedAgain: to("Open", { set: "askAgain", rune: "inbox.asked_again" }),
      Dismissed: to("Open", { set: "dismiss", rune: "inbox.dismissed" })
    }
  }
})
