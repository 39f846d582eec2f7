/**
 * AdmissionState: what the writer knows of the log, and the one place where a draft
 * becomes a rune: it gets the next id, the chain's next hash, and the guard's
 * consent. Pure: admitting runes yields a new ledger, and the old one is still
 * good if they are not committed after all.
 */
import { HashMap, Option, Result } from "effect"
import type { Rune } from "./Rune.ts"
import type { ReadyDraft } from "./EventDraft.ts"
import * as InvariantGuard from "./InvariantGuard.ts"
import { GENESIS, hashRune } from "./HashChain.ts"
import { RuneRefused } from "./EventLog.ts"
import type { StoredRune } from "./Store.ts"

/** Why nothing more is appended to a stream. */
export interface Stop {
  /** "sealed", or the id of a FATAL invariant. */
  readonly rule: string
  readonly message: string
}

interface Chain {
  readonly hash: string
  readonly stop: Stop | undefined
}

export interface AdmissionState {
  readonly head: number
  readonly chains: HashMap.HashMap<string, Chain>
  readonly guard: InvariantGuard.State
}

export const empty: AdmissionState = { head: 0, chains: HashMap.empty(), guard: InvariantGuard.initial }

/** The kind that ends a conversation: its stream takes nothing more. */
const SEALS = "session.closed"

const SEALED: Stop = { rule: "sealed", message: "the conversation is closed, and its stream is sealed" }

/** A rune, in the two forms in which it leaves the ledger. */
export interface Admitted {
  readonly rune: Rune
  readonly stored: StoredRune
}

/** Folds in a rune that the log holds already: nothing is checked but the chain's last link is kept. */
export const restore = (ledger: AdmissionState, stored: StoredRune): AdmissionState => ({
  head: stored.eventId,
  chains: HashMap.set(ledger.chains, stored.stream, {
    hash: stored.hash,
    stop: stored.kind === SEALS ? SEALED : undefined
  }),
  guard: InvariantGuard.apply(ledger.guard, stored.stream, InvariantGuard.seen(stored))
})

/** Nothing is appended to the stream from here on. */
export const halt = (ledger: AdmissionState, stream: string, stop: Stop): AdmissionState => ({
  ...ledger,
  chains: HashMap.modifyAt(ledger.chains, stream, (chain) =>
    Option.some({ hash: Option.match(chain, { onNone: () => GENESIS, onSome: ({ hash }) => hash }), stop })
  )
})

/** Whether the stream takes runes at all. */
export const open = (ledger: AdmissionState, stream: string): boolean =>
  Option.match(HashMap.get(ledger.chains, stream), { onNone: () => true, onSome: ({ stop }) => stop === undefined })

/** Whether its conversation is closed. */
export const sealed = (ledger: AdmissionState, stream: string): boolean =>
  Option.match(HashMap.get(ledger.chains, stream), { onNone: () => false, onSome: ({ stop }) => stop === SEALED })

export const admit = (
  ledger: AdmissionState,
  drafts: ReadonlyArray<ReadyDraft>,
  at: number
): Result.Result<readonly [AdmissionState, ReadonlyArray<Admitted>], RuneRefused> => {
  let { head, chains, guard } = ledger
  const admitted: Array<Admitted> = []
  for (const draft of drafts) {
    const chain = Option.getOrUndefined(HashMap.get(chains, draft.stream))
    if (chain?.stop !== undefined) return refuse(draft, chain.stop.rule, chain.stop.message)
    const violation = InvariantGuard.check(guard, draft.stream, draft)
    if (violation !== undefined) return refuse(draft, violation.rule, violation.message)
    guard = InvariantGuard.apply(guard, draft.stream, draft)
    head += 1
    const one = seal(draft, head, at, chain?.hash ?? GENESIS)
    chains = HashMap.set(chains, draft.stream, {
      hash: one.stored.hash,
      stop: draft.kind === SEALS ? SEALED : undefined
    })
    admitted.push(one)
  }
  return Result.succeed([{ head, chains, guard }, admitted] as const)
}

const refuse = (draft: ReadyDraft, rule: string, message: string) =>
  Result.fail(new RuneRefused({ kind: draft.kind, rule, message: `${draft.kind} (${draft.actor}): ${message}` }))

const seal = (draft: ReadyDraft, eventId: number, at: number, previous: string): Admitted => {
  const header = {
    eventId,
    stream: draft.stream,
    at,
    kind: draft.kind,
    actor: draft.actor,
    from: draft.from,
    to: draft.to,
    trigger: draft.trigger,
    cause: draft.cause,
    visibility: draft.visibility
  }
  const hash = hashRune(previous, header, draft.payloadHash)
  return {
    rune: { ...header, payload: draft.payload, hash },
    stored: { ...header, payload: draft.text, payloadHash: draft.payloadHash, hash }
  }
}
