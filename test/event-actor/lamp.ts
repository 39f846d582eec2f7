/**
 * A small machine that has everything an animated machine can have: a state with
 * an enter activity, two timeouts, postponed, stale and illegal events, a move to
 * the same state, a reenter, a step that crashes, a final state.
 */
import { Deferred, Effect, Exit, Layer, type Scope, Stream } from "effect"
import type { ChildHandle, ChildSpec } from "../../src/supervision/Child.ts"
import * as DeadLetters from "../../src/event-actor/DeadLetters.ts"
import * as MachineActor from "../../src/event-actor/MachineActor.ts"
import { define, fold, illegal, postpone, stale, to } from "../../src/event-actor/StateMachine.ts"
import { layerMemory } from "../../src/app/DaemonLog.ts"
import { EventLog } from "../../src/event-log/EventLog.ts"

export type State = "Off" | "On" | "Dim" | "Gone"
export type Event =
  | { readonly _tag: "Toggle" }
  /** Too early while off. */
  | { readonly _tag: "Poke"; readonly n: number }
  | { readonly _tag: "Relight" }
  | { readonly _tag: "Dimmed" }
  | { readonly _tag: "Timeout" }
  | { readonly _tag: "Extend"; readonly ms: number }
  | { readonly _tag: "Bang" }
  | { readonly _tag: "Late" }
  | { readonly _tag: "Smash" }
export interface Data {
  readonly pokes: ReadonlyArray<number>
  readonly timeouts: number
  readonly limit: number
}
export type Action = { readonly _tag: "Say"; readonly word: string } | { readonly _tag: "Shout"; readonly n: number }
export type Lamp = MachineActor.MachineActor<State, Event, Data>

const bang = (): Data => {
  throw new Error("bang")
}

export const lamp = define<State, Event, Data, Action, "worktree.kept">()({
  name: "lamp",
  initial: "Off",
  final: ["Gone"],
  // A kind that takes any machine event.
  rune: "worktree.kept",
  guards: {},
  updates: {
    poke: (data, event) => (event._tag === "Poke" ? { ...data, pokes: [...data.pokes, event.n] } : data),
    count: (data) => ({ ...data, timeouts: data.timeouts + 1 }),
    extend: (data, event) => (event._tag === "Extend" ? { ...data, limit: event.ms } : data),
    bang
  },
  actions: {
    Say: (data) => ({ _tag: "Say", word: `${data.pokes.length}` }),
    Shout: (_, event) => ({ _tag: "Shout", n: event._tag === "Poke" ? event.n : 0 })
  },
  timers: {
    burn: { after: (data) => data.limit, fires: () => ({ _tag: "Timeout" }) },
    now: { after: () => 0, fires: () => ({ _tag: "Timeout" }) }
  },
  fields: { "worktree.kept": () => ({ path: "lamp" }) },
  states: { Off: {}, On: { timeout: "burn", enter: "shine" }, Dim: { timeout: "now", enter: "glow" }, Gone: {} },
  table: {
    Off: {
      Toggle: to("On", { act: ["Say"] }),
      ...postpone("Poke"),
      ...illegal("Relight", "Timeout"),
      Dimmed: to("Dim"),
      Extend: to("Off", { set: "extend" }),
      Bang: to("Off", { set: "bang" }),
      ...stale("Late"),
      Smash: to("Gone", { act: ["Say"] })
    },
    On: {
      Toggle: to("Off"),
      Poke: to("On", { set: "poke", act: ["Shout"] }),
      Relight: to("On", { reenter: true }),
      Dimmed: to("Dim"),
      Timeout: to("Off", { set: "count" }),
      Extend: to("On", { set: "extend" }),
      Bang: to("On", { set: "bang" }),
      ...stale("Late"),
      Smash: to("Gone", { act: ["Say"] })
    },
    Dim: {
      ...postpone("Toggle"),
      Poke: to("Dim", { set: "poke" }),
      ...illegal("Relight", "Dimmed", "Extend", "Bang"),
      Timeout: to("On", { set: "count" }),
      ...stale("Late"),
      Smash: to("Gone")
    },
    Gone: stale("Toggle", "Poke", "Relight", "Dimmed", "Timeout", "Extend", "Bang", "Late", "Smash")
  }
})

export const dark: Data = { pokes: [], timeouts: 0, limit: 1_000 }

/** What happened outside the machine, in order. */
export interface Seen {
  readonly said: Array<string>
  /** `+shine 3`: begun by rune 3; `-shine 3`: ended. */
  readonly activities: Array<string>
}

export interface LampOptions {
  readonly snapshot?: Lamp["snapshot"]
  readonly log?: (log: EventLog["Service"]) => EventLog["Service"]
  readonly perform?: (action: Action, context: MachineActor.Context<State, Event, Data>) => Effect.Effect<void, unknown>
  readonly shine?: (context: MachineActor.Context<State, Event, Data>) => Effect.Effect<void, unknown, Scope.Scope>
  readonly capacity?: number
  readonly restart?: "permanent" | "transient" | "temporary"
  readonly endsWhenFinal?: boolean
}

export const make = (options: LampOptions = {}) =>
  Effect.gen(function* () {
    const seen: Seen = { said: [], activities: [] }
    const log = yield* EventLog
    const noted = (name: string, run?: LampOptions["shine"]) => (context: MachineActor.Context<State, Event, Data>) => {
      seen.activities.push(`+${name} ${context.cause.eventId}`)
      return Effect.ensuring(
        run === undefined ? Effect.never : run(context),
        Effect.sync(() => seen.activities.push(`-${name} ${context.cause.eventId}`))
      )
    }
    const kind = yield* MachineActor.kind({
      machine: lamp,
      log: options.log === undefined ? log : options.log(log),
      deadLetters: yield* DeadLetters.DeadLetters,
      perform: (action, context) => {
        const said = Effect.sync(
          () => void seen.said.push(action._tag === "Say" ? `say ${action.word}` : `shout ${action.n}`)
        )
        return options.perform === undefined ? said : Effect.andThen(said, options.perform(action, context))
      },
      activities: { shine: noted("shine", options.shine), glow: noted("glow") },
      ...(options.capacity === undefined ? {} : { capacity: options.capacity }),
      ...(options.restart === undefined ? {} : { restart: options.restart }),
      ...(options.endsWhenFinal === undefined ? {} : { endsWhenFinal: options.endsWhenFinal })
    })
    const actor: Lamp = yield* kind.make({
      address: "p/lamp/a",
      actor: "lamp/a",
      stream: "p",
      snapshot: options.snapshot ?? MachineActor.start(lamp, dark)
    })
    return { actor, seen }
  })

/** Starts it as a supervisor would. */
export const run = (spec: ChildSpec) =>
  Effect.gen(function* () {
    const handle = (yield* Effect.scoped(
      spec.start as Exclude<ChildSpec["start"], (by: never) => unknown>
    )) as ChildHandle
    const end = yield* Deferred.make<Exit.Exit<unknown, unknown>>()
    handle.onExit({ childExited: (exit) => Deferred.doneUnsafe(end, Effect.succeed(exit)) })
    return { handle, end: Deferred.await(end) }
  })

export const runes = Effect.gen(function* () {
  const log = yield* EventLog
  return Array.from(yield* Stream.runCollect(log.read({ stream: "p", actor: "lamp/a" })))
})

export const folded = Effect.map(runes, (all) => fold(lamp, dark, all))

/** Lets everything run until it is so; the test's own limit ends what never is. */
export const until = (condition: () => boolean) =>
  Effect.gen(function* () {
    while (!condition()) yield* Effect.yieldNow
  })

/** Lets everything run that can run without the clock. */
export const settled = Effect.gen(function* () {
  for (let n = 0; n < 50; n++) yield* Effect.yieldNow
})

/** A log that answers some appends otherwise. */
export const intercepted =
  (
    answer: (
      drafts: Parameters<EventLog["Service"]["append"]>[0]
    ) => ReturnType<EventLog["Service"]["append"]> | undefined
  ) =>
  (log: EventLog["Service"]): EventLog["Service"] => ({
    ...log,
    append: (drafts) => Effect.suspend(() => answer(drafts) ?? log.append(drafts))
  })

export const layer = Layer.merge(DeadLetters.layerMemory(), layerMemory)
export type Services = DeadLetters.DeadLetters | EventLog
