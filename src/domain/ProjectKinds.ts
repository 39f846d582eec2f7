/**
 * ProjectKinds: rune kinds that record changes of a project in its conversation's stream. Agents and channels read
 * them.
 */
import { Schema } from "effect"
import { kind } from "../core/event-log/EventKinds.ts"

const text = Schema.String
/** Names of the agents in the project's config file; undefined: an older agentd version wrote the rune. */
const agents = Schema.optional(Schema.Array(text))

export const projectKinds = {
  "project.registered": kind(Schema.Struct({ config: text, name: text, by: Schema.optional(text), agents })),
  /** The project's config changed. `name`: the new name of the project. */
  "project.config_changed": kind(Schema.Struct({ config: text, name: Schema.optional(text), agents })),
  /**
   * A user has stopped the whole project: its agents end, and none starts again, even after a restart of the daemon.
   */
  "project.stopped": kind(Schema.Struct({ name: text, by: text })),
  "project.started": kind(Schema.Struct({ name: text, by: text })),
  /**
   * A user has abandoned a conversation whose stream is damaged. Because of the damage, this rune is in the daemon's
   * stream.
   */
  "conversation.given_up": kind(Schema.Struct({ conversation: text, config: text, name: text, by: text, reason: text }))
}
