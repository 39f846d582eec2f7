/**
 * AccessKinds: the rune kinds for access over HTTP, which the daemon writes to its own stream. The runes contain a
 * token's hash, never the token.
 */
import { Schema } from "effect"
import { kind } from "../core/event-log/EventKinds.ts"

const text = Schema.String

/** `view` allows reading; `act` allows every action that a user can take. */
export const Right = Schema.Literals(["view", "act"])
export type Right = typeof Right.Type

export const accessKinds = {
  /**
   * `hash`: the token's SHA-256 in hexadecimal; empty for a page, which authenticates with a key. `port`: the page's
   * own port, if it has one.
   */
  "access.granted": kind(
    Schema.Struct({ id: text, right: Right, label: text, hash: text, by: text, port: Schema.optional(Schema.Int) }),
    { visibility: "internal" }
  ),
  "access.revoked": kind(Schema.Struct({ id: text, by: text }), { visibility: "internal" })
}
