/**
 * InvariantGuard: holds the checkers against every rune before it is appended. Its state
 * is immutable, so what was not committed leaves no trace, and kept per stream,
 * so that a stream that is closed takes no memory. Pure.
 */
import { HashMap, Option } from "effect"
import { type Checker, floors, runs, type Seen, tasks, tools, turns, type Violation } from "../app/InvariantCheckers.ts"
import { parsePayload, type StoredRune } from "./Store.ts"

/** One stream's: the states of the checkers, in their order. */
type States = ReadonlyArray<unknown>

export type State = HashMap.HashMap<string, States>

export const initial: State = HashMap.empty()

/** Checkers with their state's type forgotten: each sees only what it made itself. */
const checkers: ReadonlyArray<Checker<unknown>> = [turns, tools, runs, floors, tasks].map(
  (checker) => checker as Checker<unknown>
)

const fresh: States = checkers.map((checker) => checker.initial)

/** Which checkers look at a kind. */
const interested = new Map<string, ReadonlyArray<number>>()
for (const [index, checker] of checkers.entries()) {
  for (const kind of checker.kinds) interested.set(kind, [...(interested.get(kind) ?? []), index])
}

/** Whose payloads a restore must see. */
export const kinds: ReadonlyArray<string> = [...interested.keys()]

/** The kind after which nothing of the stream is open. */
const CLOSES = "session.closed"

const statesOf = (state: State, stream: string): States => Option.getOrElse(HashMap.get(state, stream), () => fresh)

export const check = (state: State, stream: string, rune: Seen): Violation | undefined => {
  const indexes = interested.get(rune.kind)
  if (indexes === undefined) return undefined
  const states = statesOf(state, stream)
  for (const index of indexes) {
    const violation = checkers[index]!.check(states[index], rune)
    if (violation !== undefined) return violation
  }
  return undefined
}

export const apply = (state: State, stream: string, rune: Seen): State => {
  if (rune.kind === CLOSES) return HashMap.remove(state, stream)
  const indexes = interested.get(rune.kind)
  if (indexes === undefined) return state
  const states = statesOf(state, stream).slice()
  for (const index of indexes) states[index] = checkers[index]!.apply(states[index], rune)
  return HashMap.set(state, stream, states)
}

/** A stored rune as a checker sees it. A payload that was erased or damaged says nothing. */
export const seen = (stored: StoredRune): Seen => ({
  kind: stored.kind,
  actor: stored.actor,
  to: stored.to,
  payload: parsePayload(stored) ?? {}
})
