/**
 * StoredRune: a rune as a store keeps it: the payload as text, with its hash and the
 * rune's. Only `verify`, the archive and the store itself see it.
 */
import { Effect, Result } from "effect"
import { type Selection, StorageError } from "./EventLog.ts"
import type { Header } from "./HashChain.ts"
import type { Payload, Rune, Visibility } from "./Rune.ts"

export interface StoredRune extends Header {
  /** The position of the rune before it in its stream; 0 for the first. It is not hashed: `verify` compares it. */
  readonly prev: number
  readonly visibility: Visibility
  /** JSON; null once it was erased, or when the reader did not ask for it. */
  readonly payload: string | null
  readonly payloadHash: string
  readonly hash: string
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

/** As they are read; a damaged one fails the reader rather than being skipped. */
export const toRunes = (stored: ReadonlyArray<StoredRune>): Effect.Effect<ReadonlyArray<Rune>, StorageError> =>
  Effect.fromResult(Result.all(stored.map(toRune)))

const isOneOf = (actors: ReadonlyArray<string>, actor: string): boolean =>
  actors.some((name) => (name.endsWith("/") ? actor.startsWith(name) : actor === name))

/** Whether a rune is selected, apart from the cursor. */
export const matches = (selection: Selection, rune: Pick<Rune, "stream" | "actor" | "kind" | "at">): boolean =>
  (selection.stream === undefined || rune.stream === selection.stream) &&
  (selection.actor === undefined || rune.actor === selection.actor) &&
  (selection.actors === undefined || isOneOf(selection.actors, rune.actor)) &&
  (selection.kinds === undefined || selection.kinds.includes(rune.kind)) &&
  (selection.since === undefined || rune.at >= selection.since)
