/**
 * LogEvent: the few lines of the daemon's log that are events for monitoring programs, with their names and facts.
 *
 * Guarantees: the meaning of a name and its id never changes.
 */
import { Effect } from "effect"

/** Each event with its id in systemd's journal (MESSAGE_ID). */
export const messageIds = {
  /** An agent has stopped for good and waits for a person. */
  "agent.failed": "f644104b282c4fda89fe7b88061c6c34",
  /** A conversation's log is damaged: the conversation is not loaded. */
  "conversation.apart": "3564f85d72eb42a9b73eb2810a2d78f6",
  /** agentd stopped trying to send the mail of an alert. */
  "mail.failed": "941cf0372f5a44d38d95c08750613a62"
} as const

export type LogEvent = keyof typeof messageIds

/** Names of log annotations. */
export const EVENT = "event"
export const FACTS = ["agent", "conversation"] as const

/** Marks the lines that `log` writes as lines of this event. */
export const noted =
  (event: LogEvent, facts: { readonly [fact in (typeof FACTS)[number]]?: string } = {}) =>
  (log: Effect.Effect<void>): Effect.Effect<void> =>
    Effect.annotateLogs(log, { [EVENT]: event, ...facts })
