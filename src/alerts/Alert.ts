/**
 * Alert: a piece of news for the user, as the outbox stores it. Alerts with equal keys are sent as one. Pure.
 */
import { Schema } from "effect"
import { Notice } from "./Notice.ts"

export const Alert = Schema.Struct({
  /** The kind of news, such as `agent.stopped`; by default, the kind of the rune. */
  kind: Schema.String,
  key: Schema.String,
  /** Stream and actor of the rune that caused the alert. */
  stream: Schema.String,
  actor: Schema.String,
  /** The conversation whose mail section sends the alert, if it is not the rune's stream. */
  of: Schema.optionalKey(Schema.String),
  /** Name of the agent or goal, without its project: `builder`. */
  name: Schema.String,
  /** A headline, short enough for a mail's subject: `builder has failed: 5 errors in a row`. */
  headline: Schema.String,
  reason: Schema.String,
  remedy: Schema.NullOr(Schema.String),
  /** Number of consecutive errors, and of all errors; null if the alert is not about errors. */
  errors: Schema.NullOr(Schema.Struct({ row: Schema.Int, all: Schema.Int })),
  runId: Schema.NullOr(Schema.String),
  /** Event id of the rune that caused the alert. If alerts were folded, of the newest such rune. */
  cause: Schema.Int,
  /** Sequence number, in its stream, of the rune that caused the alert; absent in alerts of an older agentd. */
  seq: Schema.optionalKey(Schema.Int),
  /** Time of the rune that caused the alert, in ms since the epoch. */
  at: Schema.Finite,
  /** Number of equal alerts that were folded into this one, including the alert itself. */
  count: Schema.Int,
  /** The notice that channels send; absent in alerts that a mail section sends. */
  notice: Schema.optionalKey(Notice)
})
export type Alert = typeof Alert.Type

export const together = (older: Alert, newer: Alert): Alert => ({ ...newer, count: older.count + newer.count })
