/**
 * Inbox: the messages that wait for an agent, as a machine of one state.
 *
 * A message waits until a turn that carries it has begun (`Delivered`), so a spawn
 * that fails loses none. What a turn carries is kept until the next one takes
 * over, so that work cut short can be taken up again under the same id. A message id that is known already changes nothing.
 */
import { Schema } from "effect"
import type { Said } from "../event-log/EventKinds.ts"
import { define, to } from "../event-actor/StateMachine.ts"
import { readTurn } from "./TurnKinds.ts"

/** Most messages that wait at one agent. */
export const MAX_WAITING = 1000

export const Message = Schema.Struct({
  messageId: Schema.String,
  /** The sender: a person's login, or `agent:<name>`. */
  from: Schema.String,
  text: Schema.String,
  urgent: Schema.Boolean,
  /** A channel's or a plan's: a turn of its own; after an error its sender asks again, not agentd. */
  alone: Schema.optional(Schema.Boolean),
  /** True: the message goes before the waiting ones, and steers the present turn away. */
  steer: Schema.optional(Schema.Boolean),
  /** ms since the epoch */
  at: Schema.Finite
})
export type Message = typeof Message.Type

export const Event = Schema.Union([
  Schema.TaggedStruct("Received", { message: Message }),
  /** A turn has begun: these it carries, and nothing else. `runId` is the turn's id. */
  Schema.TaggedStruct("Delivered", { runId: Schema.String, messageIds: Schema.Array(Schema.String) }),
  /** The sender takes the message back. */
  Schema.TaggedStruct("Withdrawn", { messageId: Schema.String })
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
}

export const initial: Data = { waiting: [], carried: [], runId: null, withdrawn: [] }

const MAX_WITHDRAWN = 100

export const isWithdrawn = (data: Data, messageId: string): boolean => data.withdrawn?.includes(messageId) ?? false

/** Both, oldest first. */
export const known = (data: Data): ReadonlyArray<Message> => [...data.carried, ...data.waiting]

export const kinds = ["inbox.received", "inbox.delivered", "inbox.withdrawn"] as const

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
        : data
  },
  actions: {},
  timers: {},
  fields: {},
  states: { Open: {} },
  table: {
    Open: {
      Received: to("Open", { set: "receive" }),
      Delivered: to("Open", { set: "deliver", rune: "inbox.delivered" }),
      Withdrawn: to("Open", { set: "withdraw", rune: "inbox.withdrawn" })
    }
  }
})
