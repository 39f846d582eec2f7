/**
 * StateMachineActor: makes an event-sourced actor from the table of a state machine. Each transition writes one rune
 * that contains the whole event. If the machine joins a rune of a sibling, it derives its event from that rune, and
 * writes no rune of its own.
 *
 * Guarantees: the actor's state is the fold of all runes that name the actor, either as their actor or in `moves`. The
 * table defines the timeout and the enter activity of each state. The key of the activity is the eventId of the rune
 * that entered the state.
 */
import type { Effect, Scope } from "effect"
import type { Rune } from "../event-log/Rune.ts"
import {
  type Acting,
  actor,
  type Activity,
  type Context,
  type Draft,
  type EventSourcedActor,
  type Following,
  type Refusal,
  Refuse,
  type Timer
} from "./EventSourcedActor.ts"
import { refused } from "./Refused.ts"
import { advance, evolve, evolveBy, type Machine, notJoined, type Snapshot, step, type Tagged } from "./StateMachine.ts"

/** A transition of the machine, passed to `follow`. */
export interface Moved<S, E, D> {
  readonly before: Snapshot<S, D>
  readonly after: Snapshot<S, D>
  readonly event: E
  readonly context: Context
  /** The sibling's rune, if the machine joined one; otherwise undefined. */
  readonly joined: Rune | undefined
}

/** Consequences of a transition in addition to the actions in the table. */
export interface Follow<X> extends Following<X> {
  /** Names of siblings whose state the same rune can change. Each of them joins the rune. */
  readonly moves?: ReadonlyArray<string>
}

export interface Parts<S extends string, E extends Tagged, D, A extends Tagged, X extends Tagged, F, R> {
  readonly machine: Machine<S, E, D, A>
  /** The machine's data before its first rune. */
  readonly data: D
  /** Returns the consequences of a transition in addition to the actions in the table. */
  readonly follow?: (move: Moved<S, E, D>) => Follow<X> | Refuse<F> | undefined
  /** Derives an event from a sibling's rune; returns undefined if the rune does not concern this machine. Pure. */
  readonly joins?: (rune: Rune, state: Snapshot<S, D>) => E | undefined
  /** Performs the actions of the table and of `follow`, after the macrostep is committed. */
  readonly perform?: (action: A | X, acting: Acting<Snapshot<S, D>, E, F>) => Effect.Effect<void, unknown, R> | void
  /** Runs an enter activity of the machine's table. */
  readonly run?: (
    activity: Activity,
    acting: Acting<Snapshot<S, D>, E, F>
  ) => Effect.Effect<void, unknown, R | Scope.Scope>
  /**
   * True: the scope ends normally when a final state is committed and all actions are done. Default: the actor stays
   * and refuses all further events.
   */
  readonly endsWhenFinal?: boolean
}

const NONE: ReadonlyArray<never> = []

/** Returns the snapshot of a machine before its first rune. */
export const start = <S extends string, E extends Tagged, D, A extends Tagged>(
  machine: Machine<S, E, D, A>,
  data: D
): Snapshot<S, D> => ({ state: machine.initial, data, entered: 0, at: 0, seq: 0 })

export interface Move<S, D, A> {
  readonly draft: Draft
  readonly after: Snapshot<S, D>
  readonly actions: ReadonlyArray<A>
}

/** Applies an event and creates its rune. `index`: number of runes before this rune in the same decision. */
export const move = <S extends string, E extends Tagged, D, A extends Tagged>(
  machine: Machine<S, E, D, A>,
  before: Snapshot<S, D>,
  event: E,
  { nextId, nextSeq, now }: Pick<Context, "nextId" | "nextSeq" | "now">,
  index = 0
): Move<S, D, A> | Refusal => {
  const moved = step(machine, before.state, before.data, event)
  if (moved._tag === "Refused") return moved.why
  const { actions, kind, payload, to } = moved
  return {
    draft: { kind, from: before.state, to, trigger: event._tag, payload },
    after: advance(before, moved, { eventId: nextId + index, seq: nextSeq + index, at: now }),
    actions
  }
}

/** Applies an event that was derived from a sibling's rune. Unlike `move`, this creates no rune. */
export const joined = <S extends string, E extends Tagged, D, A extends Tagged>(
  machine: Machine<S, E, D, A>,
  before: Snapshot<S, D>,
  event: E,
  rune: Pick<Rune, "eventId" | "seq" | "at">
): Omit<Move<S, D, A>, "draft"> | Refusal => {
  const moved = step(machine, before.state, before.data, event)
  return moved._tag === "Refused" ? moved.why : { after: advance(before, moved, rune), actions: moved.actions }
}

const has = (states: object, what: "timeout" | "enter"): boolean =>
  Object.values(states).some((spec: { readonly timeout?: string; readonly enter?: string }) => spec[what] !== undefined)

class TableActor<S extends string, E extends Tagged, D, A extends Tagged, X extends Tagged, F, R> {
  readonly parts: Parts<S, E, D, A, X, F, R>

  constructor(parts: Parts<S, E, D, A, X, F, R>) {
    this.parts = parts
  }

  decide(before: Snapshot<S, D>, event: E, context: Context) {
    const moved = move(this.parts.machine, before, event, context)
    if (typeof moved === "string") return moved
    const { actions, after, draft } = moved
    const more = this.follow(before, after, event, context, undefined)
    if (more instanceof Refuse) return more
    // the most frequent case; it avoids a spread, which costs as much as the step
    if (more === undefined) return { runes: [draft], state: after, acts: actions }
    const runes = [more.moves === undefined ? draft : { ...draft, moves: more.moves }]
    return { runes, state: after, ...more, acts: actsOf(actions, more.acts) }
  }

  join(before: Snapshot<S, D>, rune: Rune, context: Context) {
    const event = this.parts.joins?.(rune, before)
    if (event === undefined) return undefined
    const moved = joined(this.parts.machine, before, event, rune)
    if (typeof moved === "string") return moved
    const more = this.follow(before, moved.after, event, context, rune)
    if (more instanceof Refuse) return more
    return { state: moved.after, ...more, acts: actsOf(moved.actions, more?.acts) }
  }

  apply(before: Snapshot<S, D>, rune: Rune, isJoined: boolean): Snapshot<S, D> {
    const { joins, machine } = this.parts
    if (!isJoined) return evolve(machine, before, rune)
    const event = joins?.(rune, before)
    if (event === undefined) throw notJoined(machine, rune)
    return evolveBy(machine, before, event, rune)
  }

  private follow(
    before: Snapshot<S, D>,
    after: Snapshot<S, D>,
    event: E,
    context: Context,
    joined: Rune | undefined
  ): Follow<X> | Refuse<F> | undefined {
    return this.parts.follow?.({ before, after, event, context, joined })
  }

  timers({ at, data, entered, seq, state }: Snapshot<S, D>, began: number): ReadonlyArray<Timer<E>> {
    const { machine } = this.parts
    const timeout = machine.states[state].timeout
    if (timeout === undefined) return NONE
    const { after, fires } = machine.timers[timeout]!
    const since = entered === 0 && at === 0 ? began : at
    return [{ key: `${timeout}/${entered}`, since, after: after(data, since), message: fires(data), seq }]
  }

  activities({ entered, seq, state }: Snapshot<S, D>): ReadonlyArray<Activity> {
    const name = this.parts.machine.states[state].enter
    return name === undefined ? NONE : [{ name, key: entered, seq }]
  }
}

const actsOf = <A, X>(own: ReadonlyArray<A>, more: ReadonlyArray<X> | undefined): ReadonlyArray<A | X> =>
  more === undefined || more.length === 0 ? own : [...own, ...more]

export const stateMachineActor = <
  S extends string,
  E extends Tagged,
  D,
  A extends Tagged,
  X extends Tagged = never,
  F = never,
  R = never
>(
  parts: Parts<S, E, D, A, X, F, R>
): EventSourcedActor<Snapshot<S, D>, E, A | X, F, R> => {
  const { endsWhenFinal, joins, machine, perform, run } = parts
  const of = new TableActor(parts)
  return actor<Snapshot<S, D>, E, A | X, F, R>({
    initial: start(machine, parts.data),
    decide: (before, event, context) => of.decide(before, event, context),
    apply: (before, rune, isJoined) => of.apply(before, rune, isJoined),
    comesBack: (before, after) => before.state !== after.state,
    refused: (actor, { state }, event, why) => refused(machine, actor, state, event._tag, why),
    ...(joins && {
      join: (before: Snapshot<S, D>, rune: Rune, context: Context) => of.join(before, rune, context)
    }),
    ...(has(machine.states, "timeout") && {
      timers: (state: Snapshot<S, D>, began: number) => of.timers(state, began)
    }),
    ...(has(machine.states, "enter") && run && { activities: (state: Snapshot<S, D>) => of.activities(state) }),
    ...(endsWhenFinal === true && { ends: ({ state }: Snapshot<S, D>) => machine.final.includes(state) }),
    ...(perform && { perform }),
    ...(run && { run })
  })
}
