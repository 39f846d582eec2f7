/** ProjectKinds: runes of a conversation's stream about its project. Agents and channels read them. */
import { Schema } from "effect"
import { kind } from "../core/event-log/EventKinds.ts"

const text = Schema.String
/** The agents that the config file names. */
const agents = Schema.optional(Schema.Array(text))

export const projectKinds = {
  "project.registered": kind(Schema.Struct({ config: text, name: text, by: Schema.optional(text), agents })),
  /** `name`: the project's name from now on. */
  "project.config_changed": kind(Schema.Struct({ config: text, name: Schema.optional(text), agents })),
  /** A person has stopped the whole project: its agents end, and none starts, also after a restart of the daemon. */
  "project.stopped": kind(Schema.Struct({ name: text, by: text })),
  "project.started": kind(Schema.Struct({ name: text, by: text })),
  /**
   * Written to the daemon's stream: the conversation's own stream is damaged, and a person has given the conversation
   * up.
   */
  "conversation.given_up": kind(Schema.Struct({ conversation: text, config: text, name: text, by: text, reason: text }))
}
