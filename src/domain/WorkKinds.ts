/**
 * WorkKinds: runes of an agent's work that other features read: its reports, the messages of each turn, whether a turn
 * completed, and why it has no answer. The agents' own table has these kinds with all fields.
 */
import { Schema } from "effect"
import { kind, reader } from "../core/event-log/EventKinds.ts"
import { Report } from "./Messages.ts"

const text = Schema.String

/** Payload fields at the end of a turn, in addition to the machine's event. */
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

/** Calls of a turn: which turn each belongs to, and its result. */
export const readCall = reader({
  "tool.call": kind(Schema.Struct({ event: Schema.Struct({ turnId: text }) })),
  "tool.result": kind(Schema.Struct({ status: text, event: Schema.Struct({ _tag: text }) }))
})
