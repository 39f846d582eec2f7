/**
 * Ids: creates ids of runs, turns and messages.
 *
 * Guarantees: ids sort by the millisecond in which they were created. Each id also has 80 random bits. Ids contain only
 * characters that are safe in a file path, a URL and an environment variable.
 */
import { Clock, Effect, Random } from "effect"
import { createHash } from "node:crypto"

/** Crockford's Base32 alphabet in lower case. It leaves out i, l, o and u. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
const TIME_CHARS = 10
const CHANCE_CHARS = 16

const timePart = (millis: number): string => {
  let rest = Math.max(0, Math.floor(millis))
  let text = ""
  for (let index = 0; index < TIME_CHARS; index++) {
    text = ALPHABET[rest % 32]! + text
    rest = Math.floor(rest / 32)
  }
  return text
}

const unique: Effect.Effect<string> = Effect.gen(function* () {
  let text = timePart(yield* Clock.currentTimeMillis)
  for (let index = 0; index < CHANCE_CHARS; index++)
    text += ALPHABET[yield* Random.nextIntBetween(0, 32, { halfOpen: true })]!
  return text
})

/**
 * Creates an id from `salt`, for code that must not generate random numbers. The ids for different `n` are as unique as
 * `salt`, which must contain a random value. `at`: ms since the epoch.
 */
export const derived = (salt: string, at: number, n: number): string => {
  const digest = createHash("sha256").update(`${salt}#${n}`).digest()
  let text = timePart(at)
  for (let index = 0; index < CHANCE_CHARS; index++) text += ALPHABET[digest[index]! % 32]!
  return text
}

export const runId: Effect.Effect<string> = unique

export const turnId: Effect.Effect<string> = unique

export const messageId: Effect.Effect<string> = unique
