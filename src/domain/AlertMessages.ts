/** AlertMessages: alerts and whether they were delivered, as they cross the control socket. */
import { Schema } from "effect"
import { Word } from "./BoardMessages.ts"

export const ALERT_STATES = ["waiting", "failed", "sent", "given up", "nobody"] as const

/** A problem that people are notified of. */
export const AlertRow = Schema.Struct({
  /** Time of the newest cause, ms since the epoch. */
  at: Schema.Finite,
  word: Word,
  /** The kind of trouble: `agent.stopped`, else the kind of its rune. */
  kind: Schema.String,
  /** Null: no longer known. */
  project: Schema.NullOr(Schema.String),
  /** `project/agent` that the alert is about; null: no agent. */
  agent: Schema.NullOr(Schema.String),
  /** `project/goal`; null: no goal. */
  goal: Schema.NullOr(Schema.String),
  /** The subject of the mail. */
  subject: Schema.String,
  reason: Schema.String,
  remedy: Schema.NullOr(Schema.String),
  /** How often it occurred within this mail. */
  count: Schema.Int,
  /** eventId of the rune that caused it. */
  restsOn: Schema.Int,
  /**
   * `nobody`: no address is configured; `failed`: will be retried; `waiting`: until its time, or to be sent together
   * with others.
   */
  state: Schema.Literals(ALERT_STATES),
  /** Addresses that have accepted the mail, or will be tried. */
  to: Schema.Array(Schema.String),
  /** Addresses that the mail server rejected. */
  rejected: Schema.Array(Schema.String),
  /** ms since the epoch; null: not sent, or too long ago to be known. */
  sentAt: Schema.NullOr(Schema.Finite),
  attempts: Schema.Int,
  /** Error of the last attempt. */
  error: Schema.NullOr(Schema.String),
  /** Time of the next attempt, ms since the epoch. */
  nextAt: Schema.NullOr(Schema.Finite)
})
export type AlertRow = typeof AlertRow.Type

/** A way to notify people, in addition to the mail section of a project. */
export const NotifyRow = Schema.Struct({
  name: Schema.String,
  type: Schema.String,
  kinds: Schema.Array(Schema.String),
  /** Whether it could be used now; checked without sending a message. */
  ok: Schema.Boolean,
  /** Plain text: where notifications go, or what is wrong. */
  detail: Schema.String,
  /** The remedy, with a command; null: nothing is wrong. */
  remedy: Schema.NullOr(Schema.String),
  /** Queued notices: they wait for their time or for a retry. */
  waiting: Schema.Int,
  /** The newest error among those; null: none has failed. */
  error: Schema.NullOr(Schema.String),
  quiet: Schema.Boolean
})
export type NotifyRow = typeof NotifyRow.Type

export const MOST_ALERTS = 500
