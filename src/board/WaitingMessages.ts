/**
 * WaitingMessages: a matter that needs the user, in the form in which it is sent over the control socket: its
 * description, and commands to deal with it.
 */
import { Schema } from "effect"

export const WAITING_KINDS = [
  /** A conversation whose log is damaged. */
  "damage",
  /** A tool call that waits for approval, by an agent or in a session. */
  "approval",
  /** A call or a session that asks the user to choose, or an agent that asks the user a question. */
  "question",
  /** A session that waits for the user, but cannot be answered through agentd. */
  "session",
  /** Messages that ended without an answer. */
  "dropped",
  /** Queued messages that no agent works on. */
  "held",
  /** A limit that an agent has reached, such as its budget. */
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
  /** The disk that contains the log is almost full. */
  "disk",
  /** The installed agentd is newer than the one that runs as the daemon. */
  "program"
] as const

export const WaitingRow = Schema.Struct({
  /** Id of the matter, which is unique and does not change. */
  id: Schema.String,
  kind: Schema.Literals(WAITING_KINDS),
  /** Id of the board row that the matter is about; undefined if the matter has a row of its own. */
  of: Schema.optionalKey(Schema.String),
  /** The agent, channel or other part that the matter is about: `project/agent`, `#channel of project` … */
  who: Schema.String,
  /** The matter in one line of plain text. */
  text: Schema.String,
  /** More about the matter, truncated: arguments, options, messages. */
  details: Schema.Array(Schema.String),
  /** When the matter began, ms since the epoch; 0 if unknown. */
  since: Schema.Finite,
  /** When the matter ends without the user, ms since the epoch; null if it does not. */
  until: Schema.NullOr(Schema.Finite),
  /** Commands that can be run unchanged, the most useful first. */
  commands: Schema.Array(Schema.Struct({ does: Schema.String, command: Schema.String }))
})
export type WaitingRow = typeof WaitingRow.Type

/** Calls of one kind that wait for approval: the same rule would allow them, for the same reasons. */
export const CallBatch = Schema.Struct({
  /** Hash of the ids and hashes of the calls. */
  hash: Schema.String,
  /** Common words of the calls: `npm run …`. */
  words: Schema.String,
  /** The calls, oldest first, each with its own hash. */
  calls: Schema.Array(Schema.Struct({ id: Schema.String, hash: Schema.String }))
})
export type CallBatch = typeof CallBatch.Type

export const WaitingReply = Schema.Struct({
  rows: Schema.Array(WaitingRow),
  more: Schema.Int,
  /** The calls of agents that wait for approval, by kind. Undefined: none waits. */
  batches: Schema.optionalKey(Schema.Array(CallBatch)),
  /** True if the daemon is still reading its log, so that rows can be missing. */
  reading: Schema.optionalKey(Schema.Boolean)
})
export type WaitingReply = typeof WaitingReply.Type
