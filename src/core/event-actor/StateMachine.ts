/**
 * A state machine is a total table of plain data: state × event → cell.
 *
 * Nothing here runs effects or reads a clock: ids and times arrive in the event.
 * `step` is the only interpreter; diagrams, transition tables and the laws read
 * the same table that it reads. A machine's runes carry the whole event, so
 * `fold` over them gives the live state.
 */
import type { Payload, Rune } from "../event-log/Rune.ts"

export type Tagged = { readonly _tag: string }

/** Why an event did not move the machine. */
export type Refusal =
  /** Too early: kept until the state changes. */
  | "postpone"
  /** Lost a race: dropped with a trace. */
  | "stale"
  /** The sender's bug: refused to an asker, dead-lettered for a teller. */
  | "illegal"

/** A row of a transition table: names, never closures, so that it can be printed. */
export interface Branch<S, G, A, K> {
  readonly to: S
  readonly when?: G
  readonly act?: ReadonlyArray<A>
  /** The kind of the rune this move appends; the machine's `rune` where left out. */
  readonly rune?: K
  /** A move to the same state that starts the state's enter activity again. */
  readonly reenter?: true
}

/** The first branch whose guard holds wins; the last one has no guard. */
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

/** A state's properties besides its row: a time limit and one enter activity, both by name. */
export interface StateSpec<T, V> {
  readonly timeout?: T
  readonly enter?: V
}

/**
 * A state timeout: how long from entering the state, and the event that it fires.
 * Read it again after every move: where the data moved the deadline, it moves.
 */
export interface Timer<E, D> {
  /** ms from `at`, the moment the state was entered (ms since the epoch); infinite for no limit. */
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
  /** The kind of rune that a move appends unless its branch names another. */
  readonly rune: K
  /** True for an event that belongs to the past (an older run, an older time): stale in every state. */
  readonly fenced?: (data: D, event: E) => boolean
  readonly guards: { readonly [g in G]: (data: D, event: E) => boolean }
  readonly updates: { readonly [u in U]: (data: D, event: E) => D }
  readonly actions: { readonly [a in A["_tag"]]: (data: D, event: E) => Extract<A, { _tag: a }> }
  readonly timers: { readonly [t in T]: Timer<E, D> }
  /** States that nothing waits in: the rune that enters one also leaves it, by this event of its own. */
  readonly passing?: { readonly [s in S]?: (data: D) => E }
  /** Fields of a kind of rune, besides the whole event. */
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
 * Code for the named events only; any other event leaves the data as it is. Where an
 * update or a guard needs an event's own fields, this narrows it.
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
      /** Where the machine is then: further on where it passes through `to`. */
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

/** The first branch whose guard holds. */
const takenOf = <S extends string, E extends Tagged, D, A extends Tagged>(
  { guards }: Machine<S, E, D, A>,
  then: Then<S, string, A["_tag"], string>,
  data: D,
  event: E
): Branch<S, string, A["_tag"], string> => {
  if ("to" in then) return then
  return then.find(({ when }) => when === undefined || guards[when]!(data, event))!
}

/** Steps an event. Pure and total: the same pair always steps the same, a refusal changes no data. */
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

/** On from a state that nothing waits in. */
const through = <S extends string, E extends Tagged, D, A extends Tagged>(
  machine: Machine<S, E, D, A>,
  moved: Went<S, D, A>,
  event: E
): Step<S, D, A> => {
  const on = step(machine, moved.to, moved.data, event)
  if (on._tag === "Refused") return moved
  return { ...moved, state: on.state, data: on.data, actions: [...moved.actions, ...on.actions] }
}

/** Where a machine stands: what a fold yields. */
export interface Snapshot<S, D> {
  readonly state: S
  readonly data: D
  /** The eventId of the rune that entered the state; 0 before the first one. */
  readonly entered: number
  /** The rune's seq in its stream. */
  readonly seq: number
  /** When that was, ms since the epoch. */
  readonly at: number
}

/** The part of a rune that a fold reads. */
export interface Moved {
  readonly eventId: number
  readonly seq: number
  readonly at: number
  readonly payload: Payload
}

/** Folds in a rune of the machine's own. A rune that does not step is a broken log: it throws. */
export const evolve = <S extends string, E extends Tagged, D, A extends Tagged>(
  machine: Machine<S, E, D, A>,
  snapshot: Snapshot<S, D>,
  rune: Moved
): Snapshot<S, D> => evolveBy(machine, snapshot, rune.payload["event"] as E, rune)

/** A rune that is this event to the machine: its own, or one that it joined. */
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

/** A rune names a machine that it does not concern: a broken log. */
export const notJoined = ({ name }: { readonly name: string }, { eventId, kind }: Pick<Rune, "eventId" | "kind">) =>
  new Error(`${name}: rune ${eventId} (${kind}) is nothing that it joins: the log does not fold`)

/** Where a step leads that this rune states. */
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

/** The fold of a machine: `step` over its own runes. */
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
