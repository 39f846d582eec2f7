/**
 * Counter: the actors that the benches of the core measure. Each message is one rune of
 * some 40 bytes of payload, as a worker's or an inbox's plain move makes it.
 */
import { Effect } from "effect"
import type { Ref } from "../../src/core/event-actor/ActorHandle.ts"
import { actor, later, type EventSourcedActor } from "../../src/core/event-actor/EventSourcedActor.ts"
import { type Snapshot, define, to } from "../../src/core/event-actor/StateMachine.ts"
import { stateMachineActor } from "../../src/core/event-actor/StateMachineActor.ts"

/** An inbox's own event, so that its rune is one that the daemon's log takes. */
interface Withdrawn {
  readonly _tag: "Withdrawn"
  readonly messageId: string
}

export type Message =
  | Withdrawn
  /** Goes on to the next one of the ring until nothing is left. */
  | {
      readonly _tag: "Hop"
      readonly left: number
      readonly ring: ReadonlyArray<Ref<Message>>
      readonly end: () => void
    }
  /** Works a little, and tells itself to go on. */
  | { readonly _tag: "Busy" }
  | { readonly _tag: "Crash" }

export const hello: Withdrawn = { _tag: "Withdrawn", messageId: "message" }
const busy: Message = { _tag: "Busy" }
/** Made once: what an Error costs to make is not what a restart costs. */
const crash = new Error("crash")

const spin = (turns: number): number => {
  let sum = 0
  for (let n = 0; n < turns; n++) sum += n
  return sum
}

const decide: Counter["decide"] = (count, message, { self }) => {
  if (message._tag === "Crash") throw crash
  const event = { _tag: "Withdrawn", messageId: `${count}` }
  const runes = [{ kind: "inbox.withdrawn", from: "Open", to: "Open", trigger: "Withdrawn", payload: { event } }]
  const state = count + 1
  if (message._tag === "Withdrawn") return { runes, state }
  if (message._tag === "Busy") {
    spin(100)
    return { runes, state, tells: [later(self as Ref<Message>, busy)] }
  }
  const { end, left, ring } = message
  if (left === 0) return { runes, state, acts: [end] }
  return { runes, state, tells: [later(ring[left % ring.length]!, { ...message, left: left - 1 })] }
}

type Counter = EventSourcedActor<number, Message, () => void>

/** By functions. */
export const counter = actor<number, Message, () => void>({
  initial: 0,
  decide,
  apply: (count) => count + 1,
  perform: (end) => end()
})

/** A counter whose incarnation is a fiber: it runs something all its life. */
export const running = actor<number, Message, () => void>({
  ...counter,
  activities: () => [{ name: "stays", key: 0 }],
  run: () => Effect.never
})

const machine = define<"Open", Withdrawn, number, never, "inbox.withdrawn">()({
  name: "counter",
  initial: "Open",
  final: [],
  rune: "inbox.withdrawn",
  guards: {},
  updates: { count: (count) => count + 1 },
  actions: {},
  timers: {},
  fields: {},
  states: { Open: {} },
  table: { Open: { Withdrawn: to("Open", { set: "count" }) } }
})

export type Table = Snapshot<"Open", number>

/** By a table. */
export const table = stateMachineActor({ machine, data: 0 })
