/**
 * ScheduleMessages: the shapes of schedules that cross a boundary: the log, the control socket.
 */
import { Schema } from "effect"

const text = Schema.String
/** ms since the epoch */
const time = Schema.Finite

/** A goal as a schedule submits it: what is left out is as the project's config says. */
const Goal = Schema.Struct({
  text,
  planner: Schema.optionalKey(text),
  critic: Schema.optionalKey(text),
  checks: Schema.optionalKey(Schema.Array(text)),
  autoStart: Schema.optionalKey(Schema.Boolean),
  rounds: Schema.optionalKey(Schema.Int),
  target: Schema.optionalKey(text)
})

/** The work that is due: one of the two. */
export const Work = Schema.Struct({
  send: Schema.optionalKey(Schema.Struct({ agent: text, text })),
  goal: Schema.optionalKey(Goal)
})
export type Work = typeof Work.Type

/** Characters of a text in a row; the log, or the file, has all of it. */
const MAX_SHOWN = 500

export const shown = ({ goal, send }: Work): Work => {
  const cut = (text: string) => (text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN).toWellFormed()}…`)
  return {
    ...(send === undefined ? {} : { send: { ...send, text: cut(send.text) } }),
    ...(goal === undefined ? {} : { goal: { ...goal, text: cut(goal.text) } })
  }
}

/** The newest run of a schedule. */
const Run = Schema.Struct({
  /** When it was due; of one that a person asked for, when that was. */
  due: time,
  at: time,
  /** The rune that is both the run and what it sent. */
  eventId: Schema.Int,
  asked: Schema.Boolean,
  /** The message, or the goal. */
  messageId: Schema.NullOr(text),
  goalId: Schema.NullOr(text),
  /** Whether what it sent is not over: the message waits or is worked on, the goal goes on. */
  underWay: Schema.Boolean
})

/** The newest of its times that passed without a run. */
export const Skipped = Schema.Struct({
  due: time,
  /** So many times, this the last of them; 100 stands for more, too. */
  count: Schema.Int,
  reason: text,
  at: time
})
export type Skipped = typeof Skipped.Type

export const SCHEDULE_STATES = ["waits", "paused", "held", "done"] as const

export const ScheduleInfo = Schema.Struct({
  name: text,
  conversation: text,
  project: text,
  /** Null: it is for one time. */
  cron: Schema.NullOr(text),
  timeZone: text,
  work: Work,
  catchUp: Schema.Literals(["once", "all", "none"]),
  /** held: its conversation takes no work. done: it was for one time, which is over. */
  state: Schema.Literals(SCHEDULE_STATES),
  /** When it is due next; null: never again. */
  next: Schema.NullOr(time),
  /** The person who made it, where it is not in the project's file; the one who paused it. */
  by: Schema.NullOr(text),
  pausedBy: Schema.NullOr(text),
  last: Schema.NullOr(Run),
  /** Null: none since the last run. */
  skipped: Schema.NullOr(Skipped)
})
export type ScheduleInfo = typeof ScheduleInfo.Type
