/**
 * Inbox: the messages that wait for an agent, as a machine of one state.
 *
 * A message waits until a run that carries it has confirmed its start
 * (`Delivered`), so a spawn that fails loses none. What a run carries is kept
 * until the next one takes over, so that work cut short can be taken up again
 * under the same id. A message id that is known already changes nothing.
 */
import { Schema } from "effect"
import { define, to } from "../machines/Machine.ts"

/** Most messages that wait at one agent. */
export const MAX_WAITING = 1000
/** Longest text of one message, UTF-8 bytes. */
export const MAX_MESSAGE_BYTES = 256 * 1024

export const Message = Schema.Struct({
  messageId: Schema.String,
  /** Who sent it: a person's login, or `agent:<name>`. */
  from: Schema.String,
  text: Schema.String,
  urgent: Schema.Boolean,
  /** ms since the epoch */
  at: Schema.Finite
})
export type Message = typeof Message.Type

export const Event = Schema.Union([
  Schema.TaggedStruct("Received", { message: Message }),
  /** A run has confirmed its start: these it carries, and nothing else. */
  Schema.TaggedStruct("Delivered", { runId: Schema.String, messageIds: Schema.Array(Schema.String) })
])
export type Event = typeof Event.Type

export interface Data {
  /** Oldest first; urgent ones among them in their turn. */
  readonly waiting: ReadonlyArray<Message>
  /** What the newest run carries. */
  readonly carried: ReadonlyArray<Message>
  readonly runId: string | null
}

export const initial: Data = { waiting: [], carried: [], runId: null }

/** Both, oldest first. */
export const known = (data: Data): ReadonlyArray<Message> => [...data.carried, ...data.waiting]

export const kinds = ["inbox.received", "inbox.delivered"] as const

export const Inbox = define<"Open", Event, Data, never, (typeof kinds)[number]>()({
  name: "inbox",
  initial: "Open",
  final: [],
  rune: "inbox.received",
  fenced: (data, event) =>
    event._tag === "Received"
      ? known(data).some((message) => message.messageId === event.message.messageId)
      : event.runId === data.runId,
  guards: {},
  updates: {
    receive: (data, event) =>
      event._tag === "Received" ? { ...data, waiting: [...data.waiting, event.message] } : data,
    deliver: (data, event) => {
      if (event._tag !== "Delivered") return data
      const carried = new Set(event.messageIds)
      return {
        waiting: data.waiting.filter((message) => !carried.has(message.messageId)),
        carried: known(data).filter((message) => carried.has(message.messageId)),
        runId: event.runId
      }
    }
  },
  actions: {},
  timers: {},
  fields: {},
  states: { Open: {} },
  table: {
    Open: {
      Received: to("Open", { set: "receive" }),
      Delivered: to("Open", { set: "deliver", rune: "inbox.delivered" })
    }
  }
})
