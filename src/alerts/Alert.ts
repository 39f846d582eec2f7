/** Alert: what the outbox holds of one piece of news. Pure. Alerts with the same key are one trouble and are sent together. */
import { Schema } from "effect"
import { Notice } from "./Notice.ts"

export const Alert = Schema.Struct({
  /** The kind of trouble: `agent.stopped`, else the kind of the rune. */
  kind: Schema.String,
  /** Equal keys are one trouble. */
  key: Schema.String,
  /** Of the rune that caused it. */
  stream: Schema.String,
  actor: Schema.String,
  /** The conversation whose mail section takes it, where that is not the rune's stream. */
  of: Schema.optionalKey(Schema.String),
  /** Of whom it tells, without its project: `builder`. */
  name: Schema.String,
  /** Fits a subject: `builder stopped: 5 errors in a row`. */
  headline: Schema.String,
  reason: Schema.String,
  remedy: Schema.NullOr(Schema.String),
  /** Counters, for those who have some. */
  errors: Schema.NullOr(Schema.Struct({ row: Schema.Int, all: Schema.Int })),
  runId: Schema.NullOr(Schema.String),
  /** The rune that caused it, the newest where it is there several times. */
  cause: Schema.Int,
  /** The cause's place in the stream; not there in alerts that an older agentd queued. */
  seq: Schema.optionalKey(Schema.Int),
  /** Of the cause, ms since the epoch. */
  at: Schema.Finite,
  /** Number of equal alerts. */
  count: Schema.Int,
  /** As channels tell it; not there in alerts that a mail section mails. */
  notice: Schema.optionalKey(Notice)
})
export type Alert = typeof Alert.Type

/** Two of one key: the newer one's words, both counted. */
export const together = (older: Alert, newer: Alert): Alert => ({ ...newer, count: older.count + newer.count })
