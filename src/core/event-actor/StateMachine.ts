/**
 * StateMachine: defines a state machine as a table of plain data, with one cell for each pair of state and event.
 *
 * Nothing in this file runs effects or reads a clock: ids and times arrive in the event. Only `step` interprets the
 * table. The diagrams, the transition tables in the docs and the property tests read the same table. Each rune of a
 * machine contains the whole event. Therefore `fold` over the runes computes the same state as the live machine.
 */
import type { Payload, Rune } from "../event-log/Rune.ts"

export type Tagged = { readonly _tag: string }

export type Refusal =
  /** The event came too early: it is postponed until the state changes. */
  | "postpone"
  /** The event came too late: it is discarded, counted, and logged at debug level. */
  | "stale"
  /** The sender has a bug: an ask is refused, and a tell is dead-lettered. */
  | "illegal"

/** A branch of a cell. Guards and actions are given by name, not as functions, so that the table can be printed. */
export interface Branch<S, G, A, K> {
  readonly to: S
  readonly when?: G
  readonly act?: ReadonlyArray<A>
  /** The kind of the rune that this transition appends. Default: the machine's `rune`. */
  readonly rune?: K
  /** Set for a transition to the same state that must restart the state's enter activity. */
  readonly reenter?: true
}

/** The branches of a cell. The first branch whose guard returns true is taken. The last branch has no guard. */
export type Then<S, G, A, K> =
  | (Branch<S, never, A, K> & { readonly when?: never })
  | readonly [
      ...ReadonlyArray<Branch<S, G, A, K> & { readonly when: G }>,
      Branch<S, never, A, K> & { readonly when?: never }
    ]

/** A cell that accepts the event. The data update `set` runs first; guards and actions receive the updated data. */
export interface Move<S, G, U, A, K> {
  readonly set?: U
  readonly then: Then<S, G, A, K>
}

export type Cell<S, G, U, A, K> = Move<S, G, U, A, K> | Refusal

/** Names of a state's timeout and of its enter activity, which starts when the state is entered. */
export interface StateSpec<T, V> {
  readonly timeout?: T
  readonly enter?: V
}

/**
 * The timeout of a state: its duration, and the event that it sends when it ends. The timeout is computed again after
 * every event, because an event can change the data and with it the deadline.
 */
export interface Timer<E, D> {
  /** Duration in ms from `at`, the time at which the state was entered (ms since the epoch). Infinity: no timeout. */
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
  /** Default kind of the machine's runes. A branch can name another kind. */
  readonly rune: K
  /** Returns true if the event is outdated, for example from an older run. Such an event is stale in every state. */
  readonly fenced?: (data: D, event: E) => boolean
  readonly guards: { readonly [g in G]: (data: D, event: E) => boolean }
  readonly updates: { readonly [u in U]: (data: D, event: E) => D }
  readonly actions: { readonly [a in A["_tag"]]: (data: D, event: E) => Extract<A, { _tag: a }> }
  readonly timers: { readonly [t in T]: Timer<E, D> }
  /** States that are left in the rune that enters them, each with a function that returns the event that leaves it. */
  readonly passing?: { readonly [s in S]?: (data: D) => E }
  /** Computes the payload fields of each rune kind, in addition to the whole event. */
  readonly fields: { readonly [k in K]?: (data: D, event: E) => Payload }
  readonly states: { readonly [s in S]: StateSpec<NoInfer<T>, V> }
  readonly table: {
    readonly [s in S]: {
      readonly [e in E["_tag"]]: Cell<S, NoInfer<G>, NoInfer<U>, A["_tag"], K>
    }
  }
}

/** A machine of any type, for code that only reads machine tables. */
// oxlint-disable-next-line no-explicit-any
export type AnyMachine = Machine<any, any, any, any, any, any, any, any, any>

/**
 * Defines a machine: `define<State, Event, Data, Action, RuneKind>()({ … })`. TypeScript infers the names of guards and
 * updates and checks all cells.
 */
export const define =
  <S extends string, E extends Tagged, D, A extends Tagged, K extends string>() =>
  <const G extends string, const U extends string, const T extends string, const V extends string>(
    machine: Machine<S, E, D, A, G, U, K, T, V>
  ): Machine<S, E, D, A, G, U, K, T, V> =>
    machine

/** Creates a cell with one branch and no guard. */
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
 * Creates a data update that applies `change` only to events with the given tags. Other events leave the data
 * unchanged. `change` receives the event with its exact type.
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
      /** The state after the transition. It differs from `to` if the machine leaves `to` immediately (`passing`). */
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

/** Returns the branches of a cell in the order in which they are tried; an empty list if the cell is a refusal. */
export const branchesOf = <S, G, U, A, K>(cell: Cell<S, G, U, A, K>): ReadonlyArray<Branch<S, G, A, K>> =>
  typeof cell === "string" ? [] : "to" in cell.then ? [cell.then as Branch<S, G, A, K>] : cell.then

const NONE: ReadonlyArray<never> = []

const takenOf = <S extends string, E extends Tagged, D, A extends Tagged>(
  { guards }: Machine<S, E, D, A>,
  then: Then<S, string, A["_tag"], string>,
  data: D,
  event: E
): Branch<S, string, A["_tag"], string> => {
  if ("to" in then) return then
  return then.find(({ when }) => when === undefined || guards[when]!(data, event))!
}

/** Applies an event to a state. Pure: the same input always gives the same result. A refusal changes no data. */
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

/** Leaves a state in which the machine does not stay (`passing`), using the given event. */
const through = <S extends string, E extends Tagged, D, A extends Tagged>(
  machine: Machine<S, E, D, A>,
  moved: Went<S, D, A>,
  event: E
): Step<S, D, A> => {
  const on = step(machine, moved.to, moved.data, event)
  if (on._tag === "Refused") return moved
  return { ...moved, state: on.state, data: on.data, actions: [...moved.actions, ...on.actions] }
}

/** The state of a machine, computed from its runes. */
export interface Snapshot<S, D> {
  readonly state: S
  readonly data: D
  /** eventId of the rune that entered the state; 0: the machine has no rune yet. */
  readonly entered: number
  /** Sequence number in its stream of the rune that entered the state. */
  readonly seq: number
  /** When the state was entered, in ms since the epoch. */
  readonly at: number
}

/** The fields of a rune that a fold reads. */
export interface Moved {
  readonly eventId: number
  readonly seq: number
  readonly at: number
  readonly payload: Payload
}

/** Applies one of the machine's own runes. Throws if the machine refuses its event, because the log is then damaged. */
export const evolve = <S extends string, E extends Tagged, D, A extends Tagged>(
  machine: Machine<S, E, D, A>,
  snapshot: Snapshot<S, D>,
  rune: Moved
): Snapshot<S, D> => evolveBy(machine, snapshot, rune.payload["event"] as E, rune)

/** Applies an event. `rune` records the event: it is the machine's own rune, or a sibling's rune that it joined. */
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

/** Error for a rune whose `moves` names this machine although the rune does not concern it. The log is then damaged. */
export const notJoined = ({ name }: { readonly name: string }, { eventId, kind }: Pick<Rune, "eventId" | "kind">) =>
  new Error(`${name}: rune ${eventId} (${kind}) does not concern this machine: the log does not fold`)

/** Returns the snapshot after a transition. The last argument is the rune that records the transition. */
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

/** Returns every transition of a machine, one entry for each branch. */
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
