/**
 * StateMachineActor: a table machine as an event-sourced actor. One rune a move, with the
 * whole event in it; or no rune of its own, where it *joins* the rune of a sibling and
 * makes its own event of that fact.
 *
 * Guarantees: its state is the fold of the runes that name it, as actor or in `moves`; the
 * state's timeout and enter activity are those of the table, the activity keyed by the
 * rune that entered the state.
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
  Refuse,
  type Timer
} from "./EventSourcedActor.ts"
import { refused } from "./Refused.ts"
import { type Machine, type Snapshot, step, type Step, type Tagged } from "./StateMachine.ts"

/** Where the machine stands. */
export interface MachineState<S, D> extends Snapshot<S, D> {
  /** The rune that entered the state, by its seq in the stream; 0 before the first one. */
  readonly seq: number
}

/** One move, as siblings and other scopes hear of it. */
export interface Moved<S, E, D> {
  readonly before: MachineState<S, D>
  readonly after: MachineState<S, D>
  readonly event: E
  readonly context: Context
  /** The sibling's rune, where the machine joined one. */
  readonly joined: Rune | undefined
}

/** What follows from a move besides what the table says. */
export interface Follow<X> extends Following<X> {
  /** Siblings that the same fact moves: they join the rune. */
  readonly moves?: ReadonlyArray<string>
}

export interface Parts<S extends string, E extends Tagged, D, A extends Tagged, X extends Tagged, F, R> {
  readonly machine: Machine<S, E, D, A>
  /** Before the first rune. */
  readonly data: D
  /** What siblings and other scopes hear of a move, what is done besides the table's own actions, what an asker is told. */
  readonly follow?: (move: Moved<S, E, D>) => Follow<X> | Refuse<F> | undefined
  /** The event that a sibling's rune is to this machine; undefined where the rune does not concern it. Pure. */
  readonly joins?: (rune: Rune, state: MachineState<S, D>) => E | undefined
  /** Actions of the table and of `follow`, after the commit. */
  readonly perform?: (action: A | X, acting: Acting<MachineState<S, D>, E, F>) => Effect.Effect<void, unknown, R> | void
  /** The enter activities of the table, by name. */
  readonly run?: (
    activity: Activity,
    acting: Acting<MachineState<S, D>, E, F>
  ) => Effect.Effect<void, unknown, R | Scope.Scope>
  /** The scope ends (normally) once a final state is committed and acted on; default: the machine stays and refuses. */
  readonly endsWhenFinal?: boolean
}

const NONE: ReadonlyArray<never> = []

/** Where a machine stands before its first rune. */
export const start = <S extends string, E extends Tagged, D, A extends Tagged>(
  machine: Machine<S, E, D, A>,
  data: D
): MachineState<S, D> => ({ state: machine.initial, data, entered: 0, at: 0, seq: 0 })

type Went<S, D, A> = Extract<Step<S, D, A>, { _tag: "Moved" }>

const next = <S, D, A>(
  before: MachineState<S, D>,
  moved: Went<S, D, A>,
  eventId: number,
  seq: number,
  at: number
): MachineState<S, D> => {
  const isSame = moved.state === before.state
  const stays = isSame && !moved.reenter
  return {
    state: moved.state,
    data: moved.data,
    entered: stays ? before.entered : eventId,
    at: isSame ? before.at : at,
    seq: stays ? before.seq : seq
  }
}

/** Whether some state has one. */
const has = (states: object, what: "timeout" | "enter"): boolean =>
  Object.values(states).some((spec: { readonly timeout?: string; readonly enter?: string }) => spec[what] !== undefined)

class TableActor<S extends string, E extends Tagged, D, A extends Tagged, X extends Tagged, F, R> {
  readonly parts: Parts<S, E, D, A, X, F, R>

  constructor(parts: Parts<S, E, D, A, X, F, R>) {
    this.parts = parts
  }

  decide(before: MachineState<S, D>, event: E, context: Context) {
    const { machine } = this.parts
    const moved = step(machine, before.state, before.data, event)
    if (moved._tag === "Refused") return moved.why
    const after = next(before, moved, context.nextId, context.nextSeq, context.now)
    const more = this.follow(before, after, event, context, undefined)
    if (more instanceof Refuse) return more
    const { kind, payload } = moved
    const rune: Draft = { kind, from: before.state, to: moved.state, trigger: event._tag, payload }
    // nearly always; a spread costs as much as the step
    if (more === undefined) return { runes: [rune], state: after, acts: moved.actions }
    const runes = [more.moves === undefined ? rune : { ...rune, moves: more.moves }]
    return { runes, state: after, ...more, acts: actsOf(moved.actions, more.acts) }
  }

  join(before: MachineState<S, D>, rune: Rune, context: Context) {
    const event = this.parts.joins?.(rune, before)
    if (event === undefined) return undefined
    const moved = step(this.parts.machine, before.state, before.data, event)
    if (moved._tag === "Refused") return moved.why
    const after = next(before, moved, rune.eventId, rune.seq, rune.at)
    const more = this.follow(before, after, event, context, rune)
    if (more instanceof Refuse) return more
    return { state: after, ...more, acts: actsOf(moved.actions, more?.acts) }
  }

  apply(before: MachineState<S, D>, rune: Rune, isJoined: boolean): MachineState<S, D> {
    const { joins, machine } = this.parts
    const event = isJoined ? joins?.(rune, before) : (rune.payload["event"] as E)
    const moved = event === undefined ? undefined : step(machine, before.state, before.data, event)
    if (moved?._tag === "Moved") return next(before, moved, rune.eventId, rune.seq, rune.at)
    const why = moved === undefined ? `is nothing that ${machine.name} joins` : `is ${moved.why} in ${before.state}`
    throw new Error(`${machine.name}: rune ${rune.eventId} (${rune.kind}) ${why}: the log does not fold`)
  }

  private follow(
    before: MachineState<S, D>,
    after: MachineState<S, D>,
    event: E,
    context: Context,
    joined: Rune | undefined
  ): Follow<X> | Refuse<F> | undefined {
    return this.parts.follow?.({ before, after, event, context, joined })
  }

  timers({ at, data, entered, seq, state }: MachineState<S, D>, began: number): ReadonlyArray<Timer<E>> {
    const { machine } = this.parts
    const timeout = machine.states[state].timeout
    if (timeout === undefined) return NONE
    const { after, fires } = machine.timers[timeout]!
    const since = entered === 0 && at === 0 ? began : at
    return [{ key: `${timeout}/${entered}`, since, after: after(data, since), message: fires(data), seq }]
  }

  activities({ entered, seq, state }: MachineState<S, D>): ReadonlyArray<Activity> {
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
): EventSourcedActor<MachineState<S, D>, E, A | X, F, R> => {
  const { endsWhenFinal, joins, machine, perform, run } = parts
  const of = new TableActor(parts)
  return actor<MachineState<S, D>, E, A | X, F, R>({
    initial: start(machine, parts.data),
    decide: (before, event, context) => of.decide(before, event, context),
    apply: (before, rune, isJoined) => of.apply(before, rune, isJoined),
    comesBack: (before, after) => before.state !== after.state,
    refused: (actor, { state }, event, why) => refused(machine, actor, state, event._tag, why),
    ...(joins && {
      join: (before: MachineState<S, D>, rune: Rune, context: Context) => of.join(before, rune, context)
    }),
    ...(has(machine.states, "timeout") && {
      timers: (state: MachineState<S, D>, began: number) => of.timers(state, began)
    }),
    ...(has(machine.states, "enter") && run && { activities: (state: MachineState<S, D>) => of.activities(state) }),
    ...(endsWhenFinal === true && { ends: ({ state }: MachineState<S, D>) => machine.final.includes(state) }),
    ...(perform && { perform }),
    ...(run && { run })
  })
}
