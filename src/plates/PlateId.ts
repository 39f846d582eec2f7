/**
 * PlateId: how plates get their names.
 *
 * Guarantees: one of ours differs from others in its first characters already, so
 * that a person can type its beginning; none can be taken for another stream of
 * the log: neither the daemon's nor a conversation's.
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

/** True for a name that others may give a plate. */
export const isValid = (id: string): boolean => NAME.test(id) && !ConversationId.isValid(id) && id !== DAEMON_STREAM

/** 60 bits of chance. */
export const fresh: Effect.Effect<string> = Effect.gen(function* () {
  let id = ""
  for (let index = 0; index < CHARS; index++) id += ALPHABET[yield* Random.nextIntBetween(0, 32, { halfOpen: true })]!
  return id
})
