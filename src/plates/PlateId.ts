/**
 * PlateId: creates and checks the ids of plates.
 *
 * Guarantees: ids made here differ from each other in their first characters, so that a person can type a short prefix.
 * No plate id can be mistaken for another stream of the log: neither the daemon's nor a conversation's.
 */
import { Effect, Random } from "effect"
import * as ConversationId from "../domain/ConversationId.ts"
import { DAEMON_STREAM } from "../core/event-log/Rune.ts"

/** Crockford's alphabet in lower case: no i, l, o, u. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
const CHARS = 12

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

export const FORM =
  "Leave it out, or give 1 to 64 letters, digits, '.', '_' and '-' that neither end like a conversation's id nor name the daemon: a UUID does."

/** True for an id that another program may give to a plate. */
export const isValid = (id: string): boolean => NAME.test(id) && !ConversationId.isValid(id) && id !== DAEMON_STREAM

/** A new id with 60 random bits. */
export const fresh: Effect.Effect<string> = Effect.gen(function* () {
  let id = ""
  for (let index = 0; index < CHARS; index++) id += ALPHABET[yield* Random.nextIntBetween(0, 32, { halfOpen: true })]!
  return id
})
