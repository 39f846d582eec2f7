/**
 * Plan: what a batch of mail does to a machine, before any of it is done.
 *
 * Guarantees: pure; events are stepped in order, each on the state that the one
 * before it leads to; the batch ends early where the order demands it: before an
 * event that breaks the step, before a timeout that a move may have cancelled, and
 * after a change of state while postponed events wait, since those come first then.
 */
import type { RuneDraft } from "../event-log/Rune.ts"
import { type Machine, type Snapshot, step, type Step, type Tagged } from "./StateMachine.ts"
import type { Envelope, Mailbox } from "./Mailbox.ts"

/** Why an event was not taken. */
export type Why = "stale" | "illegal" | "postponed-limit"

export type Outcome<S, D, A> =
  | Extract<Step<S, D, A>, { _tag: "Moved" }>
  | { readonly _tag: "Refused"; readonly why: Why }
  | { readonly _tag: "Postponed" }
  /** Its asker has gone, or its state has (a timeout of a state that was left). */
  | { readonly _tag: "Void" }

export interface Planned<S, E, D, A> {
  readonly envelope: Envelope<E>
  readonly outcome: Outcome<S, D, A>
}

export interface Plan<S, E, D, A> {
  readonly steps: ReadonlyArray<Planned<S, E, D, A>>
  /** One for each move, in order. */
  readonly drafts: ReadonlyArray<RuneDraft>
  readonly postponed: ReadonlyArray<Envelope<E>>
  /** Once it is committed the postponed events come back, in front. */
  readonly retry: boolean
}

/** Whose mail it is. */
export interface Reader<S, D> {
  readonly snapshot: Snapshot<S, D>
  readonly actor: string
  readonly stream: string
  /** The timeout in force; any other is void. */
  readonly timeout: number
}

const postponed = { _tag: "Postponed" } as const
const isVoid = { _tag: "Void" } as const
const tooMany = { _tag: "Refused", why: "postponed-limit" } as const

/** Of the first `limit` messages. Throws what the step throws if the very first one breaks it. */
export const plan = <S extends string, E extends Tagged, D, A extends Tagged>(
  machine: Machine<S, E, D, A>,
  reader: Reader<S, D>,
  mailbox: Mailbox<E>,
  limit: number
): Plan<S, E, D, A> => {
  const steps: Array<Planned<S, E, D, A>> = []
  const drafts: Array<RuneDraft> = []
  const kept: Array<Envelope<E>> = []
  // Half the room at most, so that the event that changes the state always finds some.
  const room = Math.max(1, Math.floor(mailbox.capacity / 2)) - mailbox.postponed
  let { state, data } = reader.snapshot
  let retry = false
  for (let index = 0; index < limit && !retry; index++) {
    const envelope = mailbox.at(index)
    if (envelope.timer !== 0 && drafts.length > 0) break
    if (envelope.isVoid || (envelope.timer !== 0 && envelope.timer !== reader.timeout)) {
      steps.push({ envelope, outcome: isVoid })
      continue
    }
    let result: Step<S, D, A>
    try {
      result = step(machine, state, data, envelope.message)
    } catch (defect) {
      if (index === 0) throw defect
      break
    }
    if (result._tag === "Moved") {
      steps.push({ envelope, outcome: result })
      drafts.push({
        stream: reader.stream,
        kind: result.kind,
        actor: reader.actor,
        from: state,
        to: result.state,
        trigger: envelope.message._tag,
        cause: envelope.cause ?? null,
        payload: result.payload
      })
      retry = result.state !== state && mailbox.postponed + kept.length > 0
      state = result.state
      data = result.data
    } else if (result.why !== "postpone") {
      steps.push({ envelope, outcome: { _tag: "Refused", why: result.why } })
    } else if (kept.length < room) {
      kept.push(envelope)
      steps.push({ envelope, outcome: postponed })
    } else {
      steps.push({ envelope, outcome: tooMany })
    }
  }
  return { steps, drafts, postponed: kept, retry }
}
