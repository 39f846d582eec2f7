/** AlertMessages: schemas of the control socket for alerts, their delivery status, and notification channels. */
import { Schema } from "effect"
import { Word } from "./BoardMessages.ts"

export const ALERT_STATES = ["waiting", "failed", "sent", "given up", "nobody"] as const

export const AlertRow = Schema.Struct({
  /** Time of the newest rune that caused the alert, in ms since the epoch. */
  at: Schema.Finite,
  word: Word,
  /** The kind of problem: `agent.stopped`, or otherwise the kind of the rune that caused the alert. */
  kind: Schema.String,
  /** Name of the project; null: unknown, because agentd no longer has the project. */
  project: Schema.NullOr(Schema.String),
  /** The agent that the alert is about, as `project/agent`; null: the alert is not about an agent. */
  agent: Schema.NullOr(Schema.String),
  /** The goal that the alert is about, as `project/goal`; null: the alert is not about a goal. */
  goal: Schema.NullOr(Schema.String),
  subject: Schema.String,
  reason: Schema.String,
  remedy: Schema.NullOr(Schema.String),
  /** Number of occurrences that this mail reports. */
  count: Schema.Int,
  /** eventId of the rune that caused the alert. */
  restsOn: Schema.Int,
  /**
   * Delivery status. `nobody`: no address is configured. `failed`: the last attempt failed and will be retried.
   * `waiting`: the mail is queued until its scheduled time, or to be sent together with others.
   */
  state: Schema.Literals(ALERT_STATES),
  /** Addresses that have received the mail, or to which it will be sent. */
  to: Schema.Array(Schema.String),
  /** Addresses that the mail server rejected. */
  rejected: Schema.Array(Schema.String),
  /** In ms since the epoch. Null: not sent yet, or the record was deleted because it is too old. */
  sentAt: Schema.NullOr(Schema.Finite),
  attempts: Schema.Int,
  /** Error message of the last attempt to send the mail; null: it did not fail. */
  error: Schema.NullOr(Schema.String),
  /** Time of the next attempt to send the mail, in ms since the epoch; null: no attempt is planned. */
  nextAt: Schema.NullOr(Schema.Finite)
})
export type AlertRow = typeof AlertRow.Type

/** A configured notification channel, in addition to the mail settings of a project. */
export const NotifyRow = Schema.Struct({
  name: Schema.String,
  type: Schema.String,
  kinds: Schema.Array(Schema.String),
  /** Whether the channel works now, as far as agentd can check that without sending a message. */
  ok: Schema.Boolean,
  /** Plain text: where the channel sends notifications, or why it does not work. */
  detail: Schema.String,
  /** How to fix the problem, with a command; null: there is no problem. */
  remedy: Schema.NullOr(Schema.String),
  /** Number of queued notifications: they wait for their scheduled time or for a retry. */
  waiting: Schema.Int,
  /** The newest error of the queued notifications; null: none has failed. */
  error: Schema.NullOr(Schema.String),
  quiet: Schema.Boolean
})
export type NotifyRow = typeof NotifyRow.Type

export const MOST_ALERTS = 500
