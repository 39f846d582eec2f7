/**
 * ProjectKinds: what a conversation's stream says of its project. Agents and channels
 * both read it.
 */
import { Schema } from "effect"
import { kind } from "../core/event-log/EventKinds.ts"

const text = Schema.String
/** As the file has them. */
const agents = Schema.optional(Schema.Array(text))

export const projectKinds = {
  "project.registered": kind(Schema.Struct({ config: text, name: text, by: Schema.optional(text), agents })),
  /** `name`: what the project is called from now on. */
  "project.config_changed": kind(Schema.Struct({ config: text, name: Schema.optional(text), agents })),
  /** A person has stopped all of it: its agents end, and none starts, also after a restart of the daemon. */
  "project.stopped": kind(Schema.Struct({ name: text, by: text })),
  "project.started": kind(Schema.Struct({ name: text, by: text })),
  /** In the daemon's stream: the conversation's own is damaged, and a person has given the conversation up. */
  "conversation.given_up": kind(Schema.Struct({ conversation: text, config: text, name: text, by: text, reason: text }))
}
