/** AccessKinds: who may come in over HTTP, in the daemon's stream. A token itself is in no rune: its hash is. */
import { Schema } from "effect"
import { kind } from "../core/event-log/EventKinds.ts"

const text = Schema.String

/** `view` reads; `act` does all that a person may. */
export const Right = Schema.Literals(["view", "act"])
export type Right = typeof Right.Type

export const accessKinds = {
  /**
   * `hash`: the token's SHA-256, in hexadecimal digits; "": it is a page, which proves itself by a key. `port`: the page's
   * own, if it has one.
   */
  "access.granted": kind(
    Schema.Struct({ id: text, right: Right, label: text, hash: text, by: text, port: Schema.optional(Schema.Int) }),
    { visibility: "internal" }
  ),
  "access.revoked": kind(Schema.Struct({ id: text, by: text }), { visibility: "internal" })
}
