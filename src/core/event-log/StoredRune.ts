/**
 * StoredRune: a rune in the form in which a store has it: the payload as text, the payload's hash and the rune's hash.
 * Only `verify`, the archive and the store itself use it.
 */
import { Effect, Result } from "effect"
import { type Selection, StorageError } from "./EventLog.ts"
import type { Header } from "./HashChain.ts"
import type { Payload, Rune, Visibility } from "./Rune.ts"

export interface StoredRune extends Header {
  /** Position of the previous rune of the stream; 0 for the first. Not hashed, so `verify` checks it separately. */
  readonly prev: number
  readonly visibility: Visibility
  /** The payload as JSON; null if it was erased, or if it was not read. */
  readonly payload: string | null
  readonly payloadHash: string
  readonly hash: string
}

/** Returns the parsed payload: empty if no payload is stored, undefined if it is damaged. */
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
        remedy: "`agentd verify` says what else is; once the daemon is stopped, mend it: agentd repair"
      })
    )
  }
  return Result.succeed({
    format: stored.format,
    eventId: stored.eventId,
    seq: stored.seq,
    stream: stored.stream,
    at: stored.at,
    kind: stored.kind,
    actor: stored.actor,
    from: stored.from,
    to: stored.to,
    trigger: stored.trigger,
    cause: stored.cause,
    moves: stored.moves,
    visibility: stored.visibility,
    payload
  })
}

/** Converts stored runes. Fails if the payload of a rune is damaged; such a rune is not skipped. */
export const toRunes = (stored: ReadonlyArray<StoredRune>): Effect.Effect<ReadonlyArray<Rune>, StorageError> =>
  Effect.fromResult(Result.all(stored.map(toRune)))

const isOneOf = (actors: ReadonlyArray<string>, actor: string): boolean =>
  actors.some((name) => (name.endsWith("/") ? actor.startsWith(name) : actor === name))

/** Returns true if the rune matches the selection. The selection's `after` is ignored. */
export const matches = (selection: Selection, rune: Pick<Rune, "stream" | "actor" | "kind" | "at">): boolean =>
  (selection.stream === undefined || rune.stream === selection.stream) &&
  (selection.actor === undefined || rune.actor === selection.actor) &&
  (selection.actors === undefined || isOneOf(selection.actors, rune.actor)) &&
  (selection.kinds === undefined || selection.kinds.includes(rune.kind)) &&
  (selection.since === undefined || rune.at >= selection.since)
