/**
 * ConfigKinds: runes about a project's config file: which text a person has agreed to, and whether the file differs
 * from it. The log has only hashes, never the text: a file can contain secrets.
 */
import { Schema } from "effect"
import { kind } from "../core/event-log/EventKinds.ts"

const text = Schema.String

/** Why a file is not in force: nobody has agreed to it, it is invalid, or it is missing. */
export const UNTRUSTED = ["untrusted", "broken", "missing"] as const
export type Untrusted = (typeof UNTRUSTED)[number]

const noticed = {
  config: text,
  /** Null: there is no text that a person could agree to. */
  hash: Schema.NullOr(text),
  /** The error, if the file is invalid. */
  problem: Schema.NullOr(text)
}

export const configKinds = {
  /**
   * A person has agreed to the text with this hash: it is in force, also after a restart. `how: "first"`: nothing was
   * agreed to before.
   */
  "config.trusted": kind(
    Schema.Struct({ config: text, hash: text, by: text, how: Schema.Literals(["first", "start", "trust"]) })
  ),
  /** The file now differs from the text in force, or is equal to it again. */
  "config.changed": kind(Schema.Struct({ ...noticed, state: Schema.Literals([...UNTRUSTED, "in_force"]) })),
  /**
   * A person has seen the text with this hash and keeps the text in force: no more requests until the file changes
   * again.
   */
  "config.kept": kind(Schema.Struct({ config: text, hash: text, by: text })),
  /** The file has stayed in this state for a while: a person must be notified. */
  "config.waits": kind(
    Schema.Struct({ ...noticed, state: Schema.Literals(UNTRUSTED), name: text, since: Schema.Finite })
  )
}
