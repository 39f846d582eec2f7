/**
 * Lantern: a small machine that has everything an animated machine can have: a state with
 * an enter activity, two timeouts, postponed, stale and illegal events, a move to the same
 * state, a reenter, a step that crashes, a final state; alone in a scope on a log in memory.
 */
import { Deferred, Effect, type Exit, type Scope } from "effect"
import { type Acting } from "../../../src/core/event-actor/EventSourcedActor.ts"
import { start, stateMachineActor } from "../../../src/core/event-actor/StateMachineActor.ts"
import { type Snapshot, define, illegal, postpone, stale, to } from "../../../src/core/event-actor/StateMachine.ts"
import { fold } from "../../../src/core/event-actor/ScopeFold.ts"
import type { ScopeOptions } from "../../../src/core/event-actor/ScopeLifecycle.ts"
import type { CommitScope } from "../../../src/core/event-actor/CommitScope.ts"
import { begin, HeldLog, lab, MemoryLog, scopeIn } from "./Lab.ts"

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
export type Lit = Snapshot<State, Data>
type Given = Acting<Lit, Event>

const bang = (): Data => {
  throw new Error("bang")
}

export const lantern = define<State, Event, Data, Action, "lamp.moved">()({
  name: "lantern",
  initial: "Off",
  final: ["Gone"],
  rune: "lamp.moved",
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
  fields: {},
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

/** Deeds outside the machine, in order. */
export interface Seen {
  readonly said: Array<string>
  /** `+shine 3`: begun by rune 3; `-shine 3`: ended. */
  readonly activities: Array<string>
}

export interface LanternOptions extends Partial<ScopeOptions> {
  readonly state?: Lit
  readonly perform?: (action: Action, given: Given) => Effect.Effect<void, unknown>
  readonly shine?: (given: Given) => Effect.Effect<void, unknown, Scope.Scope>
  readonly capacity?: number
  readonly endsWhenFinal?: boolean
}

const actorOf = (seen: Seen, options: LanternOptions) => {
  const noted = (name: string, given: Given, run: Effect.Effect<void, unknown, Scope.Scope>) => {
    const seq = given.cause?.seq ?? 0
    seen.activities.push(`+${name} ${seq}`)
    return Effect.ensuring(
      run,
      Effect.sync(() => seen.activities.push(`-${name} ${seq}`))
    )
  }
  return stateMachineActor<State, Event, Data, Action>({
    machine: lantern,
    data: dark,
    perform: (action, given) => {
      seen.said.push(action._tag === "Say" ? `say ${action.word}` : `shout ${action.n}`)
      return options.perform?.(action, given)
    },
    run: (activity, given) =>
      noted(activity.name, given, activity.name === "shine" ? (options.shine?.(given) ?? Effect.never) : Effect.never),
    ...(options.endsWhenFinal !== undefined && { endsWhenFinal: options.endsWhenFinal })
  })
}

const makeOn = <L extends MemoryLog | HeldLog>(log: L, options: LanternOptions) =>
  Effect.map(Effect.context<never>(), (context) => {
    const seen: Seen = { said: [], activities: [] }
    const { letters, system } = lab(log, options.capacity === undefined ? {} : { capacity: options.capacity }, context)
    const definition = actorOf(seen, options)
    const scope = scopeIn(system, "p", { id: "lamp/a", ...options })
    const actor = scope.add("lamp/a", definition, options.state ?? start(lantern, dark))
    const folded = () => fold({ "lamp/a": definition }, log.kept)["lamp/a"]
    return { actor, scope, seen, log, letters, system, folded }
  })

/** A lantern on a log in memory. */
export const make = (options: LanternOptions = {}) => makeOn(new MemoryLog(), options)

/** A lantern on a log that lands when the test says so. */
export const makeHeld = (options: LanternOptions = {}) => makeOn(new HeldLog(), options)

/** Starts it as a supervisor would. */
export const run = (scope: CommitScope) =>
  Effect.gen(function* () {
    const handle = begin(scope, yield* Effect.context<never>())
    const end = yield* Deferred.make<Exit.Exit<unknown, unknown>>()
    handle.onExit({ childExited: (exit) => Deferred.doneUnsafe(end, Effect.succeed(exit)) })
    return { handle, end: Deferred.await(end) }
  })

/** Lets everything run until it is so; the test's own limit ends what never is. */
export const until = (condition: () => boolean) =>
  Effect.gen(function* () {
    while (!condition()) yield* Effect.yieldNow
  })

/** Lets everything run that can run without the clock. */
export const settled = Effect.gen(function* () {
  for (let n = 0; n < 50; n++) yield* Effect.yieldNow
})
