/**
 * PlateId: creates and checks the ids of plates.
 *
 * Guarantees: ids made here differ from each other in their first characters, so that the user can type a short prefix.
 * A plate id cannot be mistaken for another stream of the log: the daemon's, or a conversation's.
 */
import { Effect, Random } from "effect"
import * as ConversationId from "../domain/ConversationId.ts"
import { DAEMON_STREAM } from "../core/event-log/Rune.ts"

/** Crockford's base 32 alphabet in lower case, which has no i, l, o and u. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
const CHARS = 12

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

export const FORM =
  "Leave it out, or send 1 to 64 letters, digits, '.', '_' and '-', such as a UUID. The daemon's name and ids that end like a conversation's are not allowed."

/** True for an id that a client may choose for a plate. */
export const isValid = (id: string): boolean => NAME.test(id) && !ConversationId.isValid(id) && id !== DAEMON_STREAM

/** A new id with 60 random bits. */
export const fresh: Effect.Effect<string> = Effect.gen(function* () {
  let id = ""
  for (let index = 0; index < CHARS; index++) id += ALPHABET[yield* Random.nextIntBetween(0, 32, { halfOpen: true })]!
  return id
})
