/** ScheduleMessages: schemas of schedules, used in the log and on the control socket. */
import { Schema } from "effect"

const text = Schema.String
/** A time in ms since the epoch. */
const time = Schema.Finite

/** A goal that a schedule submits. For missing fields, the values in the project's config are used. */
const Goal = Schema.Struct({
  text,
  planner: Schema.optionalKey(text),
  critic: Schema.optionalKey(text),
  checks: Schema.optionalKey(Schema.Array(text)),
  autoStart: Schema.optionalKey(Schema.Boolean),
  rounds: Schema.optionalKey(Schema.Int),
  target: Schema.optionalKey(text)
})

/** The work of a schedule: either a message to send or a goal to submit. Exactly one of the two fields is set. */
export const Work = Schema.Struct({
  send: Schema.optionalKey(Schema.Struct({ agent: text, text })),
  goal: Schema.optionalKey(Goal)
})
export type Work = typeof Work.Type

/** Maximum length of a displayed text in characters. The whole text is in the log or in the config file. */
const MAX_SHOWN = 500

export const shown = ({ goal, send }: Work): Work => {
  const cut = (text: string) => (text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN).toWellFormed()}…`)
  return {
    ...(send === undefined ? {} : { send: { ...send, text: cut(send.text) } }),
    ...(goal === undefined ? {} : { goal: { ...goal, text: cut(goal.text) } })
  }
}

/** The most recent run of a schedule. */
const Run = Schema.Struct({
  /** When the run was due or, if a user requested the run, the time of the request. */
  due: time,
  at: time,
  /** eventId of the rune that records the run and the message or goal that it created. */
  eventId: Schema.Int,
  asked: Schema.Boolean,
  messageId: Schema.NullOr(text),
  goalId: Schema.NullOr(text),
  /** True: the message of the run has not been answered yet, or its goal is not finished yet. */
  underWay: Schema.Boolean
})

/** The most recent time at which the schedule was due but did not run. */
export const Skipped = Schema.Struct({
  due: time,
  /** Number of consecutive skipped times, including the most recent one. 100 means 100 or more. */
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
  /** Cron expression of the schedule; null: the schedule is due only once. */
  cron: Schema.NullOr(text),
  timeZone: text,
  work: Work,
  catchUp: Schema.Literals(["once", "all", "none"]),
  /** `held`: the schedule's conversation accepts no work now. `done`: the schedule was due only once, in the past. */
  state: Schema.Literals(SCHEDULE_STATES),
  /** When the schedule is due next; null: never again. */
  next: Schema.NullOr(time),
  /** The user who created the schedule; not set if it is in the config file. `pausedBy`: the user who paused it. */
  by: Schema.NullOr(text),
  pausedBy: Schema.NullOr(text),
  last: Schema.NullOr(Run),
  /** The most recent time that was skipped; null: none was skipped since the last run. */
  skipped: Schema.NullOr(Skipped)
})
export type ScheduleInfo = typeof ScheduleInfo.Type
