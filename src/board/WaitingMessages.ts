/**
 * WaitingMessages: a matter that needs a person as it crosses the control socket: what it is, and what to do about it.
 */
import { Schema } from "effect"

export const WAITING_KINDS = [
  /** A conversation whose log is damaged. */
  "damage",
  /** A tool call, of an agent or in a session, that waits for approval. */
  "approval",
  /** A call or a session that asks to choose, or an agent that asks a person. */
  "question",
  /** A session that waits for a person, but cannot be answered through agentd. */
  "session",
  /** Messages that ended without an answer. */
  "dropped",
  /** Queued messages that nobody works on. */
  "held",
  /** A bound on messages between agents that was reached. */
  "bound",
  "agent",
  "conversation",
  "project",
  /** A config file that waits for trust. */
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
  /** Constant while the matter exists, and unique. */
  id: Schema.String,
  kind: Schema.Literals(WAITING_KINDS),
  /** Id of the board row that it is about; undefined: it is a row of its own. */
  of: Schema.optionalKey(Schema.String),
  /** `project/agent`, `#channel of project` … */
  who: Schema.String,
  /** The matter in one line of plain words. */
  text: Schema.String,
  /** More about it, truncated: arguments, options, messages. */
  details: Schema.Array(Schema.String),
  /** When it began, ms since the epoch; 0: unknown. */
  since: Schema.Finite,
  /** When it ends by itself, ms since the epoch; null: it does not. */
  until: Schema.NullOr(Schema.Finite),
  /** Commands that can be run as they are, the most useful first. */
  commands: Schema.Array(Schema.Struct({ does: Schema.String, command: Schema.String }))
})
export type WaitingRow = typeof WaitingRow.Type

export const WaitingReply = Schema.Struct({
  rows: Schema.Array(WaitingRow),
  more: Schema.Int
})
export type WaitingReply = typeof WaitingReply.Type
