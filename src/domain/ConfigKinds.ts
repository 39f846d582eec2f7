/**
 * ConfigKinds: what a conversation's stream says of its project's file: which text a person has
 * agreed to, and that the file is another by now. The log has hashes, never the text: a file may
 * hold secrets.
 */
import { Schema } from "effect"
import { kind } from "../core/event-log/EventKinds.ts"

const text = Schema.String

/** Why a file is not in force: nobody has agreed to it, it cannot be used, or it is not there. */
export const UNTRUSTED = ["untrusted", "broken", "missing"] as const
export type Untrusted = (typeof UNTRUSTED)[number]

const noticed = {
  config: text,
  /** Null: it has no text that could be agreed to. */
  hash: Schema.NullOr(text),
  /** Of a file that cannot be used. */
  problem: Schema.NullOr(text)
}

export const configKinds = {
  /** A person has agreed to the text with this hash: it is in force, also after a restart. `how`: first: nothing was agreed to before. */
  "config.trusted": kind(
    Schema.Struct({ config: text, hash: text, by: text, how: Schema.Literals(["first", "start", "trust"]) })
  ),
  /** The file is no longer, or again, the one that is in force. */
  "config.changed": kind(Schema.Struct({ ...noticed, state: Schema.Literals([...UNTRUSTED, "in_force"]) })),
  /** A person has seen the text with this hash and keeps what is in force: it asks no more until the file changes again. */
  "config.kept": kind(Schema.Struct({ config: text, hash: text, by: text })),
  /** The file has stayed so: a person must hear of it. */
  "config.waits": kind(
    Schema.Struct({ ...noticed, state: Schema.Literals(UNTRUSTED), name: text, since: Schema.Finite })
  )
}
