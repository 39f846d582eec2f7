/**
 * ScheduleKinds: the kinds of runes of schedules.
 *
 * A run has no rune of its own: it is recorded by the rune of its message or goal. That rune's key (ScheduleKey) names
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
  /** The schedule is active with this cron expression. Only due times after `from` count. */
  "schedule.set": kind(Schema.Struct({ ...of, cron: text, time_zone: text, from: time })),
  /** A user added a one-time schedule. */
  "schedule.added": kind(
    Schema.Struct({ ...of, due: time, time_zone: text, work: Work, catch_up: CatchUp, by: text, from: time })
  ),
  /** A schedule was removed. `by`: null if it was removed from the project's file. */
  "schedule.removed": kind(Schema.Struct({ ...of, by: Schema.NullOr(text) })),
  "schedule.paused": kind(Schema.Struct({ ...of, by: text })),
  /** A paused schedule is active again. Only due times after `from` count. */
  "schedule.resumed": kind(Schema.Struct({ ...of, by: text, from: time })),
  /** `count` due times up to `due` passed without a run. */
  "schedule.skipped": kind(Schema.Struct({ ...of, due: time, count: Schema.Int, reason: text }))
}

/** Kinds of runes that record the runs of schedules. Inboxes and goals write them, and define these kinds in full. */
const runs = {
  "inbox.received": kind(
    Schema.Struct({ event: Schema.Struct({ message: Schema.Struct({ messageId: text, from: text }) }) })
  ),
  "plan.goal_received": kind(Schema.Struct({ event: Schema.Struct({ key: Schema.optionalKey(text) }) }))
}

export const read = reader({ ...scheduleKinds, ...runs })

export const ACTOR = "schedules"
