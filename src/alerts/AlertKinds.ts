/**
 * AlertKinds: the kinds of runes of the outbox: an alert that waits for its mail or another message, a message
 * that was sent, one that was not, that somebody has answered, and that it is news no more.
 *
 * Guarantees: a rune of a newer shape is read as none, so that an older agentd goes on.
 */
import { Schema } from "effect"
import { NOTICE_KINDS } from "../config/NotifyConfig.ts"
import { checkedReader, kind } from "../core/event-log/EventKinds.ts"
import { Alert } from "./Alert.ts"
import { FailureClass } from "./Retry.ts"

export const Queued = Schema.Struct({
  alertId: Schema.String,
  /** The first alert's id. */
  batch: Schema.String,
  /** To whom, as an opaque name; while no mail is configured, the stream. */
  destination: Schema.String,
  /** False while no mail is configured. */
  routed: Schema.Boolean,
  /** Nothing joins the batch from then on, and it is mailed; ms since the epoch. */
  dueAt: Schema.Finite,
  /** Runes up to here have been looked at. */
  upTo: Schema.Int,
  /** The channel of `notify` that it is told by; not there: it is mailed by the mail section of its project. */
  channel: Schema.optionalKey(Schema.String),
  /** Of the channels that are told when nobody answers it is the so-manieth. */
  step: Schema.optionalKey(Schema.Int),
  /** The addresses that a channel mails to, where others of its config are told by the mail section. */
  to: Schema.optionalKey(Schema.Array(Schema.String)),
  /** A person has put it off: it is told again. */
  putOff: Schema.optionalKey(Schema.Boolean),
  alert: Alert
})

export const Sent = Schema.Struct({
  batch: Schema.String,
  destination: Schema.String,
  messageId: Schema.String,
  alertIds: Schema.Array(Schema.String),
  to: Schema.Array(Schema.String),
  /** Addresses that the server did not take. */
  rejected: Schema.Array(Schema.String),
  response: Schema.String,
  /** The server's code for each recipient that was not taken. Not there: it took all, or an older daemon. */
  refused: Schema.optionalKey(Schema.Array(Schema.Struct({ to: Schema.String, code: Schema.NullOr(Schema.Int) }))),
  /** Recipients that were refused for now, and when they are tried again, ms since the epoch. */
  later: Schema.optionalKey(
    Schema.Struct({ to: Schema.Array(Schema.String), attempt: Schema.Int, error: Schema.String, nextAt: Schema.Finite })
  ),
  channel: Schema.optionalKey(Schema.String),
  /** By which its receiver knows it, where it can be withdrawn. */
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
  /** ms since the epoch; null: given up. */
  nextAt: Schema.NullOr(Schema.Finite),
  channel: Schema.optionalKey(Schema.String),
  /** The message told of such failures itself: nobody is told of this one. */
  silent: Schema.optionalKey(Schema.Boolean)
})

export const Answered = Schema.Struct({
  about: Schema.String,
  /** Null: nobody: it is over. */
  by: Schema.NullOr(Schema.String),
  /** ms since the epoch */
  at: Schema.Finite,
  /** Runes up to here have been looked at. */
  upTo: Schema.Int,
  /** Batches that tell of it no more. */
  drops: Schema.Array(Schema.String),
  /** Messages that are taken back: by which channel, their ids, and by what their receivers know them. */
  withdraws: Schema.Array(
    Schema.Struct({ channel: Schema.String, of: Schema.String, handle: Schema.String, title: Schema.String })
  )
})

export const Overtaken = Schema.Struct({
  /** The thing that notices were about, and their kind. */
  about: Schema.String,
  kind: Schema.Literals(NOTICE_KINDS),
  /** Runes up to here have been looked at. */
  upTo: Schema.Int,
  /** Batches that tell of it no more, and the alerts that they held. */
  drops: Schema.Array(Schema.String),
  alertIds: Schema.Array(Schema.String),
  /** Facts that may be told again: facts of the moment are newer than the rune that they are told for. */
  once: Schema.optionalKey(Schema.Array(Schema.String))
})

export const alertKinds = {
  /** A notice that was not sent yet is none any more, though nobody was asked: it is dropped. */
  "alert.overtaken": kind(Overtaken),
  /** A person has answered what people were told, or it is over. */
  "alert.answered": kind(Answered),
  "alert.queued": kind(Queued),
  "alert.sent": kind(Sent),
  "alert.failed": kind(Failed)
}

export const readAlert = checkedReader(alertKinds)
