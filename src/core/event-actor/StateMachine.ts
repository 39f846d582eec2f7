/**
 * StateMachine: a state machine as a total table of plain data: state × event → cell.
 *
 * Nothing here runs effects or reads a clock: ids and times arrive in the event. `step` is the only
 * interpreter. Diagrams, transition tables and the laws read the same table. A machine's runes
 * contain the whole event, so `fold` over them gives the live state.
 */
import type { Payload, Rune } from "../event-log/Rune.ts"

export type Tagged = { readonly _tag: string }

/** Why an event did not move the machine. */
export type Refusal =
  /** Too early: kept until the state changes. */
  | "postpone"
  /** The event lost a race: dropped, counted, and logged at debug level. */
  | "stale"
  /** A bug of the sender: an ask is refused, a tell is dead-lettered. */
  | "illegal"

/** A row of a transition table: names, never closures, so that it can be printed. */
export interface Branch<S, G, A, K> {
  readonly to: S
  readonly when?: G
  readonly act?: ReadonlyArray<A>
  /** The kind of the rune that this move appends; if omitted, the machine's `rune`. */
  readonly rune?: K
  /** A move to the same state that restarts the state's enter activity. */
  readonly reenter?: true
}

/** The first branch whose guard returns true wins. The last one has no guard. */
export type Then<S, G, A, K> =
  | (Branch<S, never, A, K> & { readonly when?: never })
  | readonly [
      ...ReadonlyArray<Branch<S, G, A, K> & { readonly when: G }>,
      Branch<S, never, A, K> & { readonly when?: never }
    ]

/** The data update runs first; guards and actions see its result. */
export interface Move<S, G, U, A, K> {
  readonly set?: U
  readonly then: Then<S, G, A, K>
}

export type Cell<S, G, U, A, K> = Move<S, G, U, A, K> | Refusal

/** Properties of a state besides its row: a timeout and an enter activity, both by name. */
export interface StateSpec<T, V> {
  readonly timeout?: T
  readonly enter?: V
}

/**
 * A state timeout: its length, and the event that it fires. Read it again after every move, because
 * the data can change the deadline.
 */
export interface Timer<E, D> {
  /** ms from `at`, the moment the state was entered (ms since the epoch); Infinity for no limit. */
  readonly after: (data: D, at: number) => number
  readonly fires: (data: D) => E
}

export interface Machine<
  S extends string,
  E extends Tagged,
  D,
  A extends Tagged,
  G extends string = string,
  U extends string = string,
  K extends string = string,
  T extends string = string,
  V extends string = string
> {
  readonly name: string
  readonly initial: NoInfer<S>
  readonly final: ReadonlyArray<NoInfer<S>>
  /** The rune kind of a move, unless its branch names another. */
  readonly rune: K
  /** True for an event of the past (an older run, an earlier time): it is stale in every state. */
  readonly fenced?: (data: D, event: E) => boolean
  readonly guards: { readonly [g in G]: (data: D, event: E) => boolean }
  readonly updates: { readonly [u in U]: (data: D, event: E) => D }
  readonly actions: { readonly [a in A["_tag"]]: (data: D, event: E) => Extract<A, { _tag: a }> }
  readonly timers: { readonly [t in T]: Timer<E, D> }
  /** States in which the machine never stays: the rune that enters one also leaves it, by this event. */
  readonly passing?: { readonly [s in S]?: (data: D) => E }
  /** Fields of a kind of rune in addition to the whole event. */
  readonly fields: { readonly [k in K]?: (data: D, event: E) => Payload }
  readonly states: { readonly [s in S]: StateSpec<NoInfer<T>, V> }
  readonly table: {
    readonly [s in S]: {
      readonly [e in E["_tag"]]: Cell<S, NoInfer<G>, NoInfer<U>, A["_tag"], K>
    }
  }
}

/** Any machine, for code that only reads tables. */
// oxlint-disable-next-line no-explicit-any
export type AnyMachine = Machine<any, any, any, any, any, any, any, any, any>

/** `define<State, Event, Data, Action, RuneKind>()({ … })`: the names are inferred, the cells are checked. */
export const define =
  <S extends string, E extends Tagged, D, A extends Tagged, K extends string>() =>
  <const G extends string, const U extends string, const T extends string, const V extends string>(
    machine: Machine<S, E, D, A, G, U, K, T, V>
  ): Machine<S, E, D, A, G, U, K, T, V> =>
    machine

/** A cell with one unguarded branch. */
export const to = <const S extends string, const O extends object = {}>(
  target: S,
  options?: O
): { readonly then: { readonly to: S } & Omit<O, "set"> } & (O extends { readonly set: infer U }
  ? { readonly set: U }
  : {}) => {
  const { set, ...branch } = (options ?? {}) as { set?: string }
  return { ...(set === undefined ? {} : { set }), then: { to: target, ...branch } } as never
}

/**
 * Applies `change` to the named events only; other events leave the data unchanged. Narrows the
 * event's type, so that an update can use the event's own fields.
 */
export const on =
  <E extends Tagged, D>() =>
  <const T extends E["_tag"]>(
    tags: T | ReadonlyArray<T>,
    change: (data: D, event: Extract<E, { _tag: T }>) => D
  ): ((data: D, event: E) => D) => {
    const handled: ReadonlyArray<string> = typeof tags === "string" ? [tags] : tags
    return (data, event) => (handled.includes(event._tag) ? change(data, event as Extract<E, { _tag: T }>) : data)
  }

const fill =
  <V extends string>(value: V) =>
  <const K extends string>(...tags: ReadonlyArray<K>) =>
    Object.fromEntries(tags.map((tag) => [tag, value])) as { readonly [k in K]: V }
export const postpone = fill("postpone")
export const stale = fill("stale")
export const illegal = fill("illegal")

export type Step<S, D, A> =
  | {
      readonly _tag: "Moved"
      readonly to: S
      /** The state after the move; differs from `to` if the machine passes through `to`. */
      readonly state: S
      readonly data: D
      readonly kind: string
      readonly payload: Payload
      readonly actions: ReadonlyArray<A>
      readonly reenter: boolean
    }
  | { readonly _tag: "Refused"; readonly why: Refusal }

export type Went<S, D, A> = Extract<Step<S, D, A>, { readonly _tag: "Moved" }>

const refused = {
  postpone: { _tag: "Refused", why: "postpone" },
  stale: { _tag: "Refused", why: "stale" },
  illegal: { _tag: "Refused", why: "illegal" }
} as const

/** The branches of a cell, in the order in which they are tried; none for a refusal. */
export const branchesOf = <S, G, U, A, K>(cell: Cell<S, G, U, A, K>): ReadonlyArray<Branch<S, G, A, K>> =>
  typeof cell === "string" ? [] : "to" in cell.then ? [cell.then as Branch<S, G, A, K>] : cell.then

const NONE: ReadonlyArray<never> = []

/** The first branch whose guard returns true. */
const takenOf = <S extends string, E extends Tagged, D, A extends Tagged>(
  { guards }: Machine<S, E, D, A>,
  then: Then<S, string, A["_tag"], string>,
  data: D,
  event: E
): Branch<S, string, A["_tag"], string> => {
  if ("to" in then) return then
  return then.find(({ when }) => when === undefined || guards[when]!(data, event))!
}

/** Steps an event. Pure and total: the same input always gives the same result, and a refusal changes no data. */
export const step = <S extends string, E extends Tagged, D, A extends Tagged>(
  machine: Machine<S, E, D, A>,
  state: S,
  data: D,
  event: E
): Step<S, D, A> => {
  if (machine.fenced?.(data, event) === true) return refused.stale
  const cell: Cell<S, string, string, A["_tag"], string> | undefined = machine.table[state][event._tag as E["_tag"]]
  if (cell === undefined) return refused.illegal
  if (typeof cell === "string") return refused[cell]
  const next = cell.set === undefined ? data : machine.updates[cell.set]!(data, event)
  const taken = takenOf(machine, cell.then, next, event)
  const kind = taken.rune ?? machine.rune
  const moved: Went<S, D, A> = {
    _tag: "Moved",
    to: taken.to,
    state: taken.to,
    data: next,
    kind,
    payload: { ...machine.fields[kind]?.(next, event), event },
    actions: taken.act === undefined ? NONE : taken.act.map((tag) => machine.actions[tag](next, event)),
    reenter: taken.reenter === true
  }
  const passes = machine.passing?.[taken.to]
  return passes === undefined ? moved : through(machine, moved, passes(next))
}

/** Continues from a state in which the machine never stays. */
const through = <S extends string, E extends Tagged, D, A extends Tagged>(
  machine: Machine<S, E, D, A>,
  moved: Went<S, D, A>,
  event: E
): Step<S, D, A> => {
  const on = step(machine, moved.to, moved.data, event)
  if (on._tag === "Refused") return moved
  return { ...moved, state: on.state, data: on.data, actions: [...moved.actions, ...on.actions] }
}

/** The state of a machine, as a fold computes it. */
export interface Snapshot<S, D> {
  readonly state: S
  readonly data: D
  /** The eventId of the rune that entered the state; 0 before the first one. */
  readonly entered: number
  /** The seq of that rune in its stream. */
  readonly seq: number
  /** Time at which the state was entered, ms since the epoch. */
  readonly at: number
}

/** The part of a rune that a fold reads. */
export interface Moved {
  readonly eventId: number
  readonly seq: number
  readonly at: number
  readonly payload: Payload
}

/** Folds in one of the machine's own runes. Throws if the rune does not step: the log is broken. */
export const evolve = <S extends string, E extends Tagged, D, A extends Tagged>(
  machine: Machine<S, E, D, A>,
  snapshot: Snapshot<S, D>,
  rune: Moved
): Snapshot<S, D> => evolveBy(machine, snapshot, rune.payload["event"] as E, rune)

/** Folds in a rune that means this event to the machine: one of its own, or one that it joined. */
export const evolveBy = <S extends string, E extends Tagged, D, A extends Tagged>(
  machine: Machine<S, E, D, A>,
  snapshot: Snapshot<S, D>,
  event: E,
  rune: Pick<Moved, "at" | "eventId" | "seq">
): Snapshot<S, D> => {
  const result = step(machine, snapshot.state, snapshot.data, event)
  if (result._tag === "Moved") return advance(snapshot, result, rune)
  throw new Error(
    `${machine.name}: rune ${rune.eventId} (${event?._tag}) is ${result.why} in ${snapshot.state}: the log does not fold`
  )
}

/** The error for a rune that names a machine which it does not concern: the log is broken. */
export const notJoined = ({ name }: { readonly name: string }, { eventId, kind }: Pick<Rune, "eventId" | "kind">) =>
  new Error(`${name}: rune ${eventId} (${kind}) is nothing that it joins: the log does not fold`)

/** The snapshot after a step that this rune records. */
export const advance = <S, D, A>(
  before: Snapshot<S, D>,
  moved: Went<S, D, A>,
  { at, eventId, seq }: Pick<Moved, "at" | "eventId" | "seq">
): Snapshot<S, D> => {
  const isSame = moved.state === before.state
  const stays = isSame && !moved.reenter
  return {
    state: moved.state,
    data: moved.data,
    entered: stays ? before.entered : eventId,
    seq: stays ? before.seq : seq,
    at: isSame ? before.at : at
  }
}

/** Folds a machine's own runes with `step`. */
export const fold = <S extends string, E extends Tagged, D, A extends Tagged>(
  machine: Machine<S, E, D, A>,
  initial: D,
  runes: Iterable<Moved>
): Snapshot<S, D> => {
  let snapshot: Snapshot<S, D> = { state: machine.initial, data: initial, entered: 0, seq: 0, at: 0 }
  for (const rune of runes) snapshot = evolve(machine, snapshot, rune)
  return snapshot
}

type Table = { readonly [state: string]: { readonly [event: string]: Cell<string, string, string, string, string> } }

/** Every edge of a machine, one row per branch. */
export const edges = (machine: AnyMachine) =>
  Object.entries(machine.table as Table).flatMap(([from, row]) =>
    Object.entries(row).flatMap(([event, cell]) =>
      branchesOf(cell).map((branch) => ({
        from,
        event,
        set: typeof cell === "string" ? undefined : cell.set,
        ...branch
      }))
    )
  )
