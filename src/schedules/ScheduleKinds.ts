/**
 * ScheduleKinds: the kinds of runes of schedules.
 *
 * A run has no rune of its own: the message in the inbox, or the goal, is its rune. The rune's key (ScheduleKey) names
 * the schedule and the due time. So a due time has run if and only if its message or goal exists.
 */
import { Schema } from "effect"
import { kind, reader } from "../core/event-log/EventKinds.ts"
import { Work } from "../domain/ScheduleMessages.ts"
import { CatchUp } from "../config/ScheduleConfig.ts"

const text = Schema.String
/** A time in ms since the epoch. */
const time = Schema.Finite
const of = { name: text }

export const scheduleKinds = {
  /** The schedule is active with this cron expression. Due times after `from` count. */
  "schedule.set": kind(Schema.Struct({ ...of, cron: text, time_zone: text, from: time })),
  /** A user added a one-time schedule. */
  "schedule.added": kind(
    Schema.Struct({ ...of, due: time, time_zone: text, work: Work, catch_up: CatchUp, by: text, from: time })
  ),
  /** `by`: null if the schedule was removed from the project's file. */
  "schedule.removed": kind(Schema.Struct({ ...of, by: Schema.NullOr(text) })),
  "schedule.paused": kind(Schema.Struct({ ...of, by: text })),
  /** Due times after `from` count. */
  "schedule.resumed": kind(Schema.Struct({ ...of, by: text, from: time })),
  /** `count` due times up to `due` passed without a run. */
  "schedule.skipped": kind(Schema.Struct({ ...of, due: time, count: Schema.Int, reason: text }))
}

/** Runes of other actors that are runs of schedules. Their own tables define these kinds in full. */
const runs = {
  "inbox.received": kind(
    Schema.Struct({ event: Schema.Struct({ message: Schema.Struct({ messageId: text, from: text }) }) })
  ),
  "plan.goal_received": kind(Schema.Struct({ event: Schema.Struct({ key: Schema.optionalKey(text) }) }))
}

export const read = reader({ ...scheduleKinds, ...runs })

export const ACTOR = "schedules"
