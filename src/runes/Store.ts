/**
 * Store: what a rune log needs of the place that keeps its records. The log's
 * behaviour (order, groups, guard, subscriptions) is the same over every store.
 *
 * A store keeps these: `persist` is atomic and durable when it returns, and
 * records come back as they went in, ordered by eventId.
 */
import type { Effect } from "effect"
import type { Payload, Rune, Visibility } from "../domain/Rune.ts"
import type { Header } from "./HashChain.ts"
import type { Selection, StorageError } from "./RuneLog.ts"

/** A rune as it is stored. */
export interface StoredRune extends Header {
  readonly visibility: Visibility
  /** JSON; null once it was erased, or when the reader did not ask for it. */
  readonly payload: string | null
  readonly payloadHash: string
  readonly hash: string
}

/** Some runes, and how far the store has been searched for them. */
export interface Page {
  readonly runes: ReadonlyArray<StoredRune>
  readonly cursor: number
}

export interface Store {
  /** All or none. Retries what may pass by itself; what it fails with is final. */
  readonly persist: (runes: ReadonlyArray<StoredRune>) => Effect.Effect<void, StorageError>
  /** Matches with `after` < eventId ≤ `upTo`, oldest first; a bounded piece of work, so the cursor may stop short. */
  readonly page: (selection: Selection, after: number, upTo: number) => Effect.Effect<Page, StorageError>
  /** Matches with `downTo` < eventId ≤ `before`, newest first, at most `count`; as bounded as `page`. */
  readonly pageBack: (
    selection: Selection,
    before: number,
    downTo: number,
    count: number
  ) => Effect.Effect<Page, StorageError>
  /** Every rune after `after`, oldest first: its header and, for the kinds asked for, its payload. */
  readonly scan: (
    after: number,
    payloadOf: ReadonlyArray<string> | "all"
  ) => Effect.Effect<ReadonlyArray<StoredRune>, StorageError>
  /** Housekeeping between groups: at leisure when `idle`, else only what cannot wait. Never fails. */
  readonly tidy: (idle: boolean) => Effect.Effect<void>
  /** The eventId that the last commit ended with, as the store itself remembers it. */
  readonly lastCommitted: Effect.Effect<number, StorageError>
}

/** An erased payload reads as an empty one. */
export const toRune = (stored: StoredRune): Rune => ({
  eventId: stored.eventId,
  stream: stored.stream,
  at: stored.at,
  kind: stored.kind,
  actor: stored.actor,
  from: stored.from,
  to: stored.to,
  trigger: stored.trigger,
  cause: stored.cause,
  visibility: stored.visibility,
  payload: stored.payload === null ? {} : (JSON.parse(stored.payload) as Payload),
  hash: stored.hash
})

/** Whether a rune is selected, apart from the cursor. */
export const matches = (selection: Selection, rune: Omit<Header, "visibility">): boolean =>
  (selection.stream === undefined || rune.stream === selection.stream) &&
  (selection.actor === undefined || rune.actor === selection.actor) &&
  (selection.kinds === undefined || selection.kinds.includes(rune.kind)) &&
  (selection.since === undefined || rune.at >= selection.since)
