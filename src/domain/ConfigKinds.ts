/**
 * ConfigKinds: rune kinds for a project's config file: which content of the file the user has approved, and whether the
 * file has changed since. The log stores only hashes, never the content, because a config file can contain secrets.
 */
import { Schema } from "effect"
import { kind } from "../core/event-log/EventKinds.ts"

const text = Schema.String

/** The reason why a config file is not in force: no user has approved it, it is invalid, or it is missing. */
export const UNTRUSTED = ["untrusted", "broken", "missing"] as const
export type Untrusted = (typeof UNTRUSTED)[number]

const noticed = {
  config: text,
  /** Hash of the file's content; null: the file has no content that the user can approve. */
  hash: Schema.NullOr(text),
  /** Error message if the file is invalid; null: the file is valid. */
  problem: Schema.NullOr(text)
}

export const configKinds = {
  /**
   * A user has approved the file content with this hash, which stays in force after a restart. `how: "first"`: no
   * content had been approved before.
   */
  "config.trusted": kind(
    Schema.Struct({ config: text, hash: text, by: text, how: Schema.Literals(["first", "start", "trust"]) })
  ),
  /** The config file now differs from the approved content that is in force, or no longer differs from it. */
  "config.changed": kind(Schema.Struct({ ...noticed, state: Schema.Literals([...UNTRUSTED, "in_force"]) })),
  /**
   * A user has put aside the text with this hash and keeps the version in force. agentd does not ask again until the
   * file changes.
   */
  "config.kept": kind(Schema.Struct({ config: text, hash: text, by: text })),
  /** The config file has been in this state for some time, so agentd notifies the user. */
  "config.waits": kind(
    Schema.Struct({ ...noticed, state: Schema.Literals(UNTRUSTED), name: text, since: Schema.Finite })
  )
}
