/**
 * WaitingMessages: a matter that needs a person, as it crosses the control socket: what it is, and
 * what to do about it.
 */
import { Schema } from "effect"

export const WAITING_KINDS = [
  /** A conversation whose log is damaged. */
  "damage",
  /** A call of an agent, or a session, that asks for leave. */
  "approval",
  /** A call or a session that asks to choose, and an agent that asks a person. */
  "question",
  /** A session that takes no answer from here. */
  "session",
  /** Work that came to no answer. */
  "dropped",
  /** Messages that nobody works on. */
  "held",
  /** A bound that agents among themselves have reached. */
  "bound",
  "agent",
  "conversation",
  "project",
  /** A file that waits for trust. */
  "config",
  "goal",
  "channel",
  "mail",
  "provider",
  /** The log's disk is about to be full. */
  "disk",
  /** A newer agentd is installed than the daemon runs. */
  "program"
] as const

export const WaitingRow = Schema.Struct({
  /** The same as long as the matter is, and no other matter's. */
  id: Schema.String,
  kind: Schema.Literals(WAITING_KINDS),
  /** The row of the board that it is about; not there: it is a row of its own. */
  of: Schema.optionalKey(Schema.String),
  /** `project/agent`, `#channel of project` … */
  who: Schema.String,
  /** In plain words: the matter, in a line. */
  text: Schema.String,
  /** More of it, bounded: arguments, options, messages. */
  details: Schema.Array(Schema.String),
  /** When it began, ms since the epoch; 0 where nobody knows. */
  since: Schema.Finite,
  /** When it ends by itself, ms since the epoch. */
  until: Schema.NullOr(Schema.Finite),
  /** Commands that work as they stand, the first one first. */
  commands: Schema.Array(Schema.Struct({ does: Schema.String, command: Schema.String }))
})
export type WaitingRow = typeof WaitingRow.Type

export const WaitingReply = Schema.Struct({
  rows: Schema.Array(WaitingRow),
  more: Schema.Int
})
export type WaitingReply = typeof WaitingReply.Type
