/**
 * Ids: ids for things that the daemon creates while it runs.
 *
 * Guarantees: ids of runs, turns and messages sort by the millisecond in which they were created. Each also has 80
 * random bits. They are safe in a path, a URL and an environment variable.
 */
import { Clock, Effect, Random } from "effect"
import { createHash } from "node:crypto"

/** Crockford's alphabet in lower case: no i, l, o, u. */
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

/** Derives an id in code that must not use randomness. For each `n` the id is as unique as `salt`, which was random. */
export const derived = (salt: string, at: number, n: number): string => {
  const digest = createHash("sha256").update(`${salt}#${n}`).digest()
  let text = timePart(at)
  for (let index = 0; index < CHANCE_CHARS; index++) text += ALPHABET[digest[index]! % 32]!
  return text
}

/** Id of a run, never used twice. */
export const runId: Effect.Effect<string> = unique

/** Id of a turn, never used twice. */
export const turnId: Effect.Effect<string> = unique

export const messageId: Effect.Effect<string> = unique
