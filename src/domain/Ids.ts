/**
 * Ids: how things get their names.
 *
 * Guarantees: the same config path always names the same conversation; ids of
 * runs and messages sort by the millisecond in which they were made, hold 80 bits
 * of chance besides, and are safe in a path, an address and an environment.
 */
import { createHash } from "node:crypto"
import { basename, dirname } from "node:path"
import { Clock, Effect, Random } from "effect"

/** Crockford's alphabet in lower case: no i, l, o, u. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
const TIME_CHARS = 10
const CHANCE_CHARS = 16
const SLUG_CHARS = 40

/** A name that config, paths and addresses take, out of any text. */
export const slug = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, "-")
    .replace(/^[^a-z0-9]+/, "")
    .slice(0, SLUG_CHARS)
    .replace(/[^a-z0-9]+$/, "") || "project"

/** What a project is called that does not say so: after the folder of its config. */
export const projectName = (configPath: string): string => slug(basename(dirname(configPath)))

/** A project's conversation, by the absolute path of its config: `myproj-1a2b3c4d`. */
export const conversationId = (configPath: string): string =>
  `${projectName(configPath)}-${createHash("sha256").update(configPath).digest("hex").slice(0, 8)}`

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

/** A run's, never used twice. */
export const runId: Effect.Effect<string> = unique

/** A turn's, never used twice. */
export const turnId: Effect.Effect<string> = unique

/** An inbox message's. */
export const messageId: Effect.Effect<string> = unique
