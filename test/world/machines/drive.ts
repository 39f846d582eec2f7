/**
 * Drives a machine through events, one after another, and keeps what it did.
 */
import { type AnyMachine, step } from "../../../src/core/event-actor/StateMachine.ts"

export interface Driven<S, D, A> {
  readonly state: S
  readonly data: D
  /** Of the last event that moved it. */
  readonly actions: ReadonlyArray<A>
  readonly kinds: ReadonlyArray<string>
  readonly payloads: ReadonlyArray<{ readonly [field: string]: unknown }>
  /** Why the last event was refused; null when it moved the machine. */
  readonly refused: string | null
}

/** A machine that stands at its beginning. */
export const begin = <S, D, A>(machine: AnyMachine, data: D): Driven<S, D, A> => ({
  state: machine.initial as S,
  data,
  actions: [],
  kinds: [],
  payloads: [],
  refused: null
})

/** The machine after the events; refused ones change nothing but `refused`. */
export const drive = <S, E extends { readonly _tag: string }, D, A>(
  machine: AnyMachine,
  from: Driven<S, D, A>,
  events: ReadonlyArray<E>
): Driven<S, D, A> =>
  events.reduce<Driven<S, D, A>>((driven, event) => {
    const result = step(machine, driven.state as string, driven.data, event)
    if (result._tag === "Refused") return { ...driven, refused: result.why }
    return {
      state: result.state as S,
      data: result.data as D,
      actions: result.actions as ReadonlyArray<A>,
      kinds: [...driven.kinds, result.kind],
      payloads: [...driven.payloads, result.payload],
      refused: null
    }
  }, from)
