/**
 * AlertKinds: the kinds of runes of the outbox: an alert is queued, a message was sent, a message could not be sent, a
 * notice was answered, a notice is outdated.
 *
 * Guarantees: a rune of a newer shape is ignored, so that an older agentd keeps working.
 */
import { Schema } from "effect"
import { NOTICE_KINDS } from "../config/NotifyConfig.ts"
import { checkedReader, kind } from "../core/event-log/EventKinds.ts"
import { Alert } from "./Alert.ts"
import { FailureClass } from "./Retry.ts"

export const Queued = Schema.Struct({
  alertId: Schema.String,
  /** Id of the batch, which is the id of the batch's first alert. */
  batch: Schema.String,
  /** Opaque name of the receiver. While no mail is configured, the alert's stream. */
  destination: Schema.String,
  /** False if no mail was configured when the alert was queued. */
  routed: Schema.Boolean,
  /** Earliest time at which the batch is sent, in ms since the epoch. */
  dueAt: Schema.Finite,
  /** Event id of the newest rune that the alerter has examined. */
  upTo: Schema.Int,
  /** The channel in `notify` that sends the alert. If absent, the mail section of the alert's project sends it. */
  channel: Schema.optionalKey(Schema.String),
  /** Position of the channel in the list of escalation channels, from 1; absent if the alert is not an escalation. */
  step: Schema.optionalKey(Schema.Int),
  /**
   * Recipients of a mail channel, except those to whom the mail section already sends the alert. If absent, those in
   * the config.
   */
  to: Schema.optionalKey(Schema.Array(Schema.String)),
  /** True if the user postponed the notice, so that it is sent again. */
  putOff: Schema.optionalKey(Schema.Boolean),
  alert: Alert
})

export const Sent = Schema.Struct({
  batch: Schema.String,
  destination: Schema.String,
  messageId: Schema.String,
  alertIds: Schema.Array(Schema.String),
  to: Schema.Array(Schema.String),
  /** Addresses that the server refused permanently. */
  rejected: Schema.Array(Schema.String),
  response: Schema.String,
  /** The server's code for each refused recipient; absent if none was refused, or if an older daemon wrote the rune. */
  refused: Schema.optionalKey(Schema.Array(Schema.Struct({ to: Schema.String, code: Schema.NullOr(Schema.Int) }))),
  /** Recipients that were refused temporarily, and the time of the next attempt, in ms since the epoch. */
  later: Schema.optionalKey(
    Schema.Struct({ to: Schema.Array(Schema.String), attempt: Schema.Int, error: Schema.String, nextAt: Schema.Finite })
  ),
  channel: Schema.optionalKey(Schema.String),
  /** The receiver's id for the message, if the message can be withdrawn. */
  handle: Schema.optionalKey(Schema.String)
})

export const Failed = Schema.Struct({
  batch: Schema.String,
  destination: Schema.String,
  messageId: Schema.String,
  alertIds: Schema.Array(Schema.String),
  attempt: Schema.Int,
  class: FailureClass,
  permanent: Schema.Boolean,
  error: Schema.String,
  remedy: Schema.String,
  /** Time of the next attempt, in ms since the epoch; null if the message is given up. */
  nextAt: Schema.NullOr(Schema.Finite),
  channel: Schema.optionalKey(Schema.String),
  /** True if the failed message was itself about unsent messages: then nobody is notified of this failure. */
  silent: Schema.optionalKey(Schema.Boolean)
})

export const Answered = Schema.Struct({
  about: Schema.String,
  /** Name of the user who answered; null if nobody answered and the question needs no answer any more. */
  by: Schema.NullOr(Schema.String),
  /** Time of the answer, or when the question needed no answer any more, in ms since the epoch. */
  at: Schema.Finite,
  /** Event id of the newest rune that the alerter has examined. */
  upTo: Schema.Int,
  /** Ids of the batches from which the notice is removed. */
  drops: Schema.Array(Schema.String),
  /** Messages to withdraw: the channel, the message's id (`of`), and the receiver's id for the message (`handle`). */
  withdraws: Schema.Array(
    Schema.Struct({ channel: Schema.String, of: Schema.String, handle: Schema.String, title: Schema.String })
  )
})

export const Overtaken = Schema.Struct({
  /** The agent or session that the dropped notices are about. */
  about: Schema.String,
  /** Kind of the notices that were dropped, such as `done`. */
  kind: Schema.Literals(NOTICE_KINDS),
  /** Event id of the newest rune that the alerter has examined. */
  upTo: Schema.Int,
  /** Ids of the batches from which the notices are removed, and of the removed alerts. */
  drops: Schema.Array(Schema.String),
  alertIds: Schema.Array(Schema.String),
  /**
   * `once` keys of the dropped notices. A new notice may use them again, because its facts can be newer than its rune.
   */
  once: Schema.optionalKey(Schema.Array(Schema.String))
})

export const alertKinds = {
  /** A notice that needed no answer was dropped, because it became outdated before it was sent. */
  "alert.overtaken": kind(Overtaken),
  /** The user answered a notice, or its question needs no answer any more. */
  "alert.answered": kind(Answered),
  "alert.queued": kind(Queued),
  "alert.sent": kind(Sent),
  "alert.failed": kind(Failed)
}

export const readAlert = checkedReader(alertKinds)
