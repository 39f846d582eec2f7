/**
 * WorkKinds: what other features read of an agent's work: its reports, which messages a turn
 * of its carried, whether it was completed, and why it came to no answer. The agents' own table has these kinds with all that they say.
 */
import { Schema } from "effect"
import { kind, reader } from "../core/event-log/EventKinds.ts"
import { Report } from "./Messages.ts"

const text = Schema.String

/** Payload fields of the ends of turns beside the machine's event. */
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

/** The calls of a turn: what each was of, and what it came to. */
export const readCall = reader({
  "tool.call": kind(Schema.Struct({ event: Schema.Struct({ turnId: text }) })),
  "tool.result": kind(Schema.Struct({ status: text, event: Schema.Struct({ _tag: text }) }))
})
