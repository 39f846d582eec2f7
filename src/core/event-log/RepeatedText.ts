/**
 * RepeatedText: finds runes that repeat text from another rune of their stream. For example, the text of a sent message
 * is also in the prompt of its turn, and an agent's answer can repeat it.
 *
 * Guarantees: a rune is found if one of its text fields contains a text field of the first rune, or is contained in
 * one, character for character. A short text must equal a whole field, because single words occur everywhere. At most
 * `MAX_REPEATS` runes are returned, oldest first. The result says whether there are more.
 */
import { Effect, Stream } from "effect"
import type { EventLog, StorageError } from "./EventLog.ts"
import { textsIn, valueAt } from "./Erasure.ts"
import type { Rune } from "./Rune.ts"

export const MAX_REPEATS = 100
/** Minimum length (characters) of text that is searched for within other text. Shorter text is usually just a word. */
const MIN_WITHIN = 12

export interface RepeatedText {
  readonly runes: ReadonlyArray<{ readonly eventId: number; readonly kind: string }>
  readonly more: boolean
}

/** Returns the erasable fields of a payload as text. A value that is not a string becomes its JSON. */
const textsOf = ({ payload }: Rune): ReadonlyArray<string> =>
  textsIn(payload).map((path) => {
    const value = valueAt(payload, path)
    return typeof value === "string" ? value : JSON.stringify(value ?? null)
  })

const isWithin = (text: string, longer: string): boolean =>
  text.length >= MIN_WITHIN && (longer.includes(text) || longer.includes(inJson(text)))

const holds = (sought: ReadonlyArray<string>) => (text: string) =>
  sought.some((one) => text === one || isWithin(one, text) || isWithin(text, one))

/** Returns the text in the form that it has inside a JSON string. */
const inJson = (text: string): string => JSON.stringify(text).slice(1, -1)

export const repeatsOf = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  eventId: number
): Effect.fn.Return<RepeatedText, StorageError> {
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
