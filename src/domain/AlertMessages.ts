/** AlertMessages: schemas of the control socket for alerts, the delivery status of mails, and notification channels. */
import { Schema } from "effect"
import { Word } from "./BoardMessages.ts"

export const ALERT_STATES = ["waiting", "failed", "sent", "given up", "nobody"] as const

export const AlertRow = Schema.Struct({
  /** Time of the newest rune that caused the alert, in ms since the epoch. */
  at: Schema.Finite,
  word: Word,
  /** The kind of problem: `agent.stopped`, or the kind of the rune that caused the alert. */
  kind: Schema.String,
  /** Name of the project; null: unknown, because the project no longer exists in agentd. */
  project: Schema.NullOr(Schema.String),
  /** The agent that the alert is about, as `project/agent`; null: the alert is not about an agent. */
  agent: Schema.NullOr(Schema.String),
  /** The goal that the alert is about, as `project/goal`; null: the alert is not about a goal. */
  goal: Schema.NullOr(Schema.String),
  subject: Schema.String,
  reason: Schema.String,
  remedy: Schema.NullOr(Schema.String),
  /** Number of occurrences of the problem that this mail reports. */
  count: Schema.Int,
  /** eventId of the rune that caused the alert. */
  restsOn: Schema.Int,
  /**
   * Delivery status of the mail. `nobody`: no address is configured. `failed`: the last attempt failed and will be
   * retried. `waiting`: the mail is queued until its scheduled time, or to be sent together with others.
   */
  state: Schema.Literals(ALERT_STATES),
  /** Addresses to which the mail was or will be sent. */
  to: Schema.Array(Schema.String),
  /** Addresses that the mail server rejected. */
  rejected: Schema.Array(Schema.String),
  /**
   * When the mail was sent, in ms since the epoch. Null: the mail was not sent yet, or the record of the time was
   * deleted because it was too old.
   */
  sentAt: Schema.NullOr(Schema.Finite),
  attempts: Schema.Int,
  /** Error message of the last attempt to send the mail; null: that attempt did not fail. */
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
  /** True: the channel works now, as far as agentd can check that without sending a message. */
  ok: Schema.Boolean,
  /** Plain text: where the channel sends notifications, or why it does not work. */
  detail: Schema.String,
  /** How to fix the problem, with a command; null: the channel has no problem. */
  remedy: Schema.NullOr(Schema.String),
  /** Number of queued notifications, which wait for their scheduled time or for a retry. */
  waiting: Schema.Int,
  /** The newest error of the queued notifications; null: no attempt to send them has failed. */
  error: Schema.NullOr(Schema.String),
  quiet: Schema.Boolean
})
export type NotifyRow = typeof NotifyRow.Type

export const MOST_ALERTS = 500
