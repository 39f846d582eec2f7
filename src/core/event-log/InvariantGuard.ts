/**
 * InvariantGuard: runs checkers on every rune before it is appended. The program provides the checkers; the guard has
 * none of its own.
 *
 * The states are immutable, so runes that were not committed leave no trace. Each stream has its own states, which are
 * dropped when the stream is sealed. Pure.
 */
import type { Payload, Rune } from "./Rune.ts"
import type { StreamFold } from "./StreamFold.ts"

/** The fields of a rune that checkers can read. */
export interface Seen {
  readonly kind: string
  readonly actor: string
  readonly moves: ReadonlyArray<string>
  readonly to: string | null
  readonly payload: Payload
}

export interface Violation {
  readonly rule: string
  readonly message: string
}

/** Checks an invariant in the runes of one stream, in order. */
export interface Checker<S> {
  readonly kinds: ReadonlyArray<string>
  readonly initial: S
  // Declared as methods, so that a guard can contain checkers with states of different types.
  check(state: S, rune: Seen): Violation | undefined
  apply(state: S, rune: Seen): S
}

/** A checker whose type of state is not known. It only receives states that it has returned itself. */
export type AnyChecker = Checker<unknown>

/** The states of all checkers for one stream, in the order of the checkers. */
export type States = ReadonlyArray<unknown>

export class InvariantGuard {
  /** Kinds of runes that at least one checker reads. */
  readonly kinds: ReadonlyArray<string>
  readonly initial: States
  private readonly checkers: ReadonlyArray<AnyChecker>
  /** Indexes (in `checkers`) of the checkers that read a kind, by the kind's name. */
  private readonly interested = new Map<string, ReadonlyArray<number>>()

  constructor(checkers: ReadonlyArray<AnyChecker>) {
    this.checkers = checkers
    this.initial = checkers.map(({ initial }) => initial)
    for (const [index, { kinds }] of checkers.entries()) {
      for (const kind of kinds) this.interested.set(kind, [...(this.interested.get(kind) ?? []), index])
    }
    this.kinds = [...this.interested.keys()]
  }

  sees(kind: string): boolean {
    return this.interested.has(kind)
  }

  check(states: States, rune: Seen): Violation | undefined {
    for (const index of this.interested.get(rune.kind) ?? []) {
      const violation = this.checkers[index]!.check(states[index], rune)
      if (violation !== undefined) return violation
    }
    return undefined
  }

  /** Returns the states after the rune: the same object if no checker reads the rune's kind. */
  apply(states: States, rune: Seen): States {
    const indexes = this.interested.get(rune.kind)
    if (indexes === undefined) return states
    const next = states.slice()
    for (const index of indexes) next[index] = this.checkers[index]!.apply(states[index], rune)
    return next
  }
}

export const foldOf = (guard: InvariantGuard): StreamFold<States> => ({
  name: "guard",
  version: 1,
  initial: guard.initial,
  apply: (states, rune) => guard.apply(states, rune)
})

export const none = (): InvariantGuard => new InvariantGuard([])

export const seen = ({ actor, kind, moves, payload, to }: Rune): Seen => ({ kind, actor, moves, to, payload })
