/**
 * WorkKinds: rune kinds about an agent's work that other features read: its reports, the start and end of its turns,
 * and its tool calls. The schemas have only the fields that those features need; the agents feature defines all fields.
 */
import { Schema } from "effect"
import { kind, reader } from "../core/event-log/EventKinds.ts"
import { Report } from "./Messages.ts"

const text = Schema.String

/** Payload fields of the runes that end a turn, in addition to the event of the state machine. */
export const turnEnds = {
  "turn.interrupted": {
    turn_id: text,
    reason: text,
    partial_output: Schema.optional(Schema.NullOr(text))
  },
  "turn.error": {
    turn_id: text,
    error_type: text,
    message: Schema.NullOr(text),
    partial_output: Schema.optional(Schema.NullOr(text))
  }
} as const

export const workKinds = {
  "agent.reported": kind(
    Schema.Struct({
      agent_id: text,
      turn_id: Schema.optional(Schema.NullOr(text)),
      parent_id: Schema.optional(Schema.NullOr(text)),
      ...Report.fields
    })
  ),
  "turn.started": kind(Schema.Struct({ turn_id: text, event: Schema.Struct({ messageIds: Schema.Array(text) }) })),
  "turn.completed": kind(Schema.Struct({ turn_id: text })),
  "turn.interrupted": kind(Schema.Struct(turnEnds["turn.interrupted"])),
  "turn.error": kind(Schema.Struct(turnEnds["turn.error"]))
}

export const readWork = reader(workKinds)

export const readCall = reader({
  "tool.call": kind(Schema.Struct({ event: Schema.Struct({ turnId: text }) })),
  "tool.result": kind(Schema.Struct({ status: text, event: Schema.Struct({ _tag: text }) }))
})
