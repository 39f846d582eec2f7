/** ScheduleMessages: shapes of schedules that cross a boundary: the log, the control socket. */
import { Schema } from "effect"

const text = Schema.String
/** ms since the epoch */
const time = Schema.Finite

/** A goal that a schedule submits. Missing fields default to the project's config. */
const Goal = Schema.Struct({
  text,
  planner: Schema.optionalKey(text),
  critic: Schema.optionalKey(text),
  checks: Schema.optionalKey(Schema.Array(text)),
  autoStart: Schema.optionalKey(Schema.Boolean),
  rounds: Schema.optionalKey(Schema.Int),
  target: Schema.optionalKey(text)
})

/** The work that is due: either `send` or `goal` is set. */
export const Work = Schema.Struct({
  send: Schema.optionalKey(Schema.Struct({ agent: text, text })),
  goal: Schema.optionalKey(Goal)
})
export type Work = typeof Work.Type

/** Maximum length of a text in a row, in characters; the log or the config file has the whole text. */
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
  /** When it was due; for a run that a person requested, the time of the request. */
  due: time,
  at: time,
  /** eventId of the rune that records both the run and what it sent. */
  eventId: Schema.Int,
  asked: Schema.Boolean,
  messageId: Schema.NullOr(text),
  goalId: Schema.NullOr(text),
  /** Whether its work is not over yet: the message waits or is worked on, or the goal is not finished. */
  underWay: Schema.Boolean
})

/** The newest of the schedule's times that passed without a run. */
export const Skipped = Schema.Struct({
  due: time,
  /** Number of skipped times, of which this is the last; 100 also means more. */
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
  /** Null: the schedule has only one time. */
  cron: Schema.NullOr(text),
  timeZone: text,
  work: Work,
  catchUp: Schema.Literals(["once", "all", "none"]),
  /** `held`: the conversation takes no work now. `done`: its only time is over. */
  state: Schema.Literals(SCHEDULE_STATES),
  /** When it is due next; null: never again. */
  next: Schema.NullOr(time),
  /** The person who created it, if it is not in the project's file; the person who paused it. */
  by: Schema.NullOr(text),
  pausedBy: Schema.NullOr(text),
  last: Schema.NullOr(Run),
  /** Null: none since the last run. */
  skipped: Schema.NullOr(Skipped)
})
export type ScheduleInfo = typeof ScheduleInfo.Type
