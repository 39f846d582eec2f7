/**
 * Repeats: the runes of a stream that hold a text of one of its runes once more: a message that is
 * sent stands in its turn's prompt, too, and may come back in what an agent answers.
 *
 * Guarantees: a rune is found where one of its texts holds one of those, or is held by one, as it
 * stands; a short text is one only where it stands alone, since words are met everywhere; so many
 * are told at most, the oldest first, and whether there are more.
 */
import { Effect, Stream } from "effect"
import type { EventLog, StorageError } from "./EventLog.ts"
import { textsIn, valueAt } from "./Erasure.ts"
import type { Rune } from "./Rune.ts"

export const MAX_REPEATS = 100
/** A shorter text is a word more often than a matter. */
const MIN_WITHIN = 12

export interface Repeats {
  readonly runes: ReadonlyArray<{ readonly eventId: number; readonly kind: string }>
  readonly more: boolean
}

/** Texts of a payload; what is no text as its JSON. */
const textsOf = ({ payload }: Rune): ReadonlyArray<string> =>
  textsIn(payload).map((path) => {
    const value = valueAt(payload, path)
    return typeof value === "string" ? value : JSON.stringify(value ?? null)
  })

const isWithin = (text: string, longer: string): boolean =>
  text.length >= MIN_WITHIN && (longer.includes(text) || longer.includes(inJson(text)))

const holds = (sought: ReadonlyArray<string>) => (text: string) =>
  sought.some((one) => text === one || isWithin(one, text) || isWithin(text, one))

/** As it stands within the JSON of something else. */
const inJson = (text: string): string => JSON.stringify(text).slice(1, -1)

export const repeatsOf = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  eventId: number
): Effect.fn.Return<Repeats, StorageError> {
  const rune = yield* log.get(eventId)
  const sought = rune === undefined ? [] : textsOf(rune)
  if (rune === undefined || sought.length === 0) return { runes: [], more: false }
  const isRepeat = holds(sought)
  const found = yield* log.read({ stream: rune.stream }).pipe(
    Stream.filter((one) => one.eventId !== eventId && textsOf(one).some(isRepeat)),
    Stream.map(({ eventId, kind }) => ({ eventId, kind })),
    Stream.take(MAX_REPEATS + 1),
    Stream.runCollect
  )
  return { runes: found.slice(0, MAX_REPEATS), more: found.length > MAX_REPEATS }
})
