/**
 * Store: what a rune log needs of the place that keeps its records. The log's
 * behaviour (order, groups, guard, subscriptions) is the same over every store.
 *
 * A store keeps these: `persist` is atomic and durable when it returns, and
 * records come back as they went in, ordered by eventId.
 */
import { Effect, Result } from "effect"
import type { Payload, Rune, Visibility } from "./Rune.ts"
import type { Header } from "./HashChain.ts"
import { type Selection, StorageError } from "./EventLog.ts"

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
  /** Payloads of a stream with `after` < eventId ≤ `upTo` are gone; the rest of the runes stays. */
  readonly erase: (stream: string, after: number, upTo: number) => Effect.Effect<void, StorageError>
  /** How much housekeeping commits have left behind: some is done when nobody writes, much cannot wait. */
  readonly backlog: () => "none" | "some" | "much"
  /** Does it. Never fails: what stands in its way is met by the next commit too, and said there. */
  readonly tidy: Effect.Effect<void>
  /** The eventId that the last commit ended with, as the store itself remembers it. */
  readonly lastCommitted: Effect.Effect<number, StorageError>
}

/** The payload as it was appended; empty once it was erased, undefined where it is damaged. */
export const parsePayload = ({ payload }: StoredRune): Payload | undefined => {
  if (payload === null) return {}
  try {
    return JSON.parse(payload) as Payload
  } catch {
    return undefined
  }
}

const toRune = (stored: StoredRune): Result.Result<Rune, StorageError> => {
  const payload = parsePayload(stored)
  if (payload === undefined) {
    return Result.fail(
      new StorageError({
        reason: "corrupt",
        message: `The payload of rune ${stored.eventId} (${stored.stream}) is damaged.`,
        remedy: "`agentd verify` says what else is; put back a backup."
      })
    )
  }
  return Result.succeed({
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
    payload,
    hash: stored.hash
  })
}

/** As they are read; a damaged one fails the reader rather than being skipped. */
export const toRunes = (stored: ReadonlyArray<StoredRune>): Effect.Effect<ReadonlyArray<Rune>, StorageError> =>
  Effect.fromResult(Result.all(stored.map(toRune)))

/** Whether a rune is selected, apart from the cursor. */
export const matches = (selection: Selection, rune: Omit<Header, "visibility">): boolean =>
  (selection.stream === undefined || rune.stream === selection.stream) &&
  (selection.actor === undefined || rune.actor === selection.actor) &&
  (selection.kinds === undefined || selection.kinds.includes(rune.kind)) &&
  (selection.since === undefined || rune.at >= selection.since)
