/**
 * ScheduleKinds: the kinds of runes of schedules.
 *
 * A run has no rune of its own: the message in the inbox, or the goal, is the rune. Its key (ScheduleKey) says which
 * time of which schedule it is, so that a time has run if and only if what it sends is there.
 */
import { Schema } from "effect"
import { kind, reader } from "../core/event-log/EventKinds.ts"
import { Work } from "../domain/ScheduleMessages.ts"
import { CatchUp } from "../config/ScheduleConfig.ts"

const text = Schema.String
/** ms since the epoch */
const time = Schema.Finite
const of = { name: text }

export const scheduleKinds = {
  /** In force with these times; those after `from` count. */
  "schedule.set": kind(Schema.Struct({ ...of, cron: text, time_zone: text, from: time })),
  /** For one time, by a person. */
  "schedule.added": kind(
    Schema.Struct({ ...of, due: time, time_zone: text, work: Work, catch_up: CatchUp, by: text, from: time })
  ),
  /** `by`: null where the project's file has it no more. */
  "schedule.removed": kind(Schema.Struct({ ...of, by: Schema.NullOr(text) })),
  "schedule.paused": kind(Schema.Struct({ ...of, by: text })),
  /** Times after `from` count. */
  "schedule.resumed": kind(Schema.Struct({ ...of, by: text, from: time })),
  /** So many times up to `due` passed without a run. */
  "schedule.skipped": kind(Schema.Struct({ ...of, due: time, count: Schema.Int, reason: text }))
}

/** Runes of others that are runs; their own tables have these kinds with all that they say. */
const runs = {
  "inbox.received": kind(
    Schema.Struct({ event: Schema.Struct({ message: Schema.Struct({ messageId: text, from: text }) }) })
  ),
  "plan.goal_received": kind(Schema.Struct({ event: Schema.Struct({ key: Schema.optionalKey(text) }) }))
}

export const read = reader({ ...scheduleKinds, ...runs })

export const ACTOR = "schedules"
