/**
 * AlertMessages: what people were told, and whether it came to them, as the daemon says it.
 */
import { Schema } from "effect"
import { Word } from "./BoardMessages.ts"

export const ALERT_STATES = ["waiting", "failed", "sent", "given up", "nobody"] as const

/** A trouble of which people are told. */
export const AlertRow = Schema.Struct({
  /** Of the newest cause, ms since the epoch. */
  at: Schema.Finite,
  word: Word,
  /** The kind of trouble: `agent.stopped`, else the kind of its rune. */
  kind: Schema.String,
  /** Null: not known any more. */
  project: Schema.NullOr(Schema.String),
  /** `project/agent` of whom it tells; null: of none. */
  agent: Schema.NullOr(Schema.String),
  /** `project/goal`; null: of none. */
  goal: Schema.NullOr(Schema.String),
  /** As the mail's subject has it. */
  subject: Schema.String,
  reason: Schema.String,
  remedy: Schema.NullOr(Schema.String),
  /** So often within its mail. */
  count: Schema.Int,
  /** Of the rune that caused it. */
  restsOn: Schema.Int,
  /** `nobody`: no address is configured; `failed`: it is tried again; `waiting`: for its time, or for others to be told with. */
  state: Schema.Literals(ALERT_STATES),
  /** Addresses that have taken it, or will be tried. */
  to: Schema.Array(Schema.String),
  /** Addresses that the server did not take. */
  rejected: Schema.Array(Schema.String),
  /** ms since the epoch; null: not, or too long ago to say. */
  sentAt: Schema.NullOr(Schema.Finite),
  attempts: Schema.Int,
  /** The last attempt's. */
  error: Schema.NullOr(Schema.String),
  /** When it is tried next, ms since the epoch. */
  nextAt: Schema.NullOr(Schema.Finite)
})
export type AlertRow = typeof AlertRow.Type

/** A way in which people are told besides by the mail section of a project. */
export const NotifyRow = Schema.Struct({
  name: Schema.String,
  type: Schema.String,
  kinds: Schema.Array(Schema.String),
  /** Whether it could be used now, without a message being sent. */
  ok: Schema.Boolean,
  /** In words: where it goes, or what is wrong. */
  detail: Schema.String,
  /** The remedy, with a command; null: nothing is wrong. */
  remedy: Schema.NullOr(Schema.String),
  /** Notices that wait for it: for their time, or to be tried again. */
  waiting: Schema.Int,
  /** The newest failure of those; null: none has failed. */
  error: Schema.NullOr(Schema.String),
  quiet: Schema.Boolean
})
export type NotifyRow = typeof NotifyRow.Type

export const MOST_ALERTS = 500
