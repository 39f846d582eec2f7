/**
 * LogEvent: marks those lines of the daemon's log to which monitoring programs can react. Each of these lines has an
 * event name, an id and fields.
 *
 * Guarantees: an event's name, id and meaning never change.
 */
import { Effect } from "effect"

/** Names of the events, with their MESSAGE_ID in systemd's journal. */
export const messageIds = {
  /** An agent has stopped permanently and waits for the user. */
  "agent.failed": "f644104b282c4fda89fe7b88061c6c34",
  /** The log of a conversation is damaged, so the conversation was not loaded. */
  "conversation.apart": "3564f85d72eb42a9b73eb2810a2d78f6",
  /** agentd has given up sending an alert by mail. */
  "mail.failed": "941cf0372f5a44d38d95c08750613a62"
} as const

export type LogEvent = keyof typeof messageIds

/** Names of the log annotations that contain the event's name (`EVENT`) and its fields (`FACTS`). */
export const EVENT = "event"
export const FACTS = ["agent", "conversation"] as const

/** Adds the event's name and fields to all lines that `log` writes. */
export const noted =
  (event: LogEvent, facts: { readonly [fact in (typeof FACTS)[number]]?: string } = {}) =>
  (log: Effect.Effect<void>): Effect.Effect<void> =>
    Effect.annotateLogs(log, { [EVENT]: event, ...facts })
