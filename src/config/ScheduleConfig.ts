/**
 * ScheduleConfig: a project's config for messages and goals that are due at certain times. All defaults are filled in,
 * except that the machine's time zone is left out.
 */
import { Schema } from "effect"
import * as CronTimes from "./CronTimes.ts"
import { described, Name, NAME_FORM, optional, whole, withDefault, Word } from "./Fields.ts"
import { MAX_CHECKS } from "./GoalConfig.ts"
import { Zone } from "./Zone.ts"

export const MAX_SCHEDULES = 1000

export const CATCH_UPS = ["once", "all", "none"] as const
export const CatchUp = Schema.Literals(CATCH_UPS)
export type CatchUp = typeof CatchUp.Type

const CronText = Schema.String.check(
  Schema.makeFilter((cron: string) => CronTimes.problemOf(cron) ?? true, {
    toJsonSchema: () => ({ pattern: String.raw`^\s*\S+(\s+\S+){4}\s*$` })
  })
)

const SendConfig = Schema.Struct({
  agent: described(Name, "The agent that gets the message."),
  text: described(Word, "Text of the message.")
})

/** A goal that a schedule submits. Omitted settings come from the config's `goals` section. */
const ScheduledGoal = Schema.Struct({
  text: described(Word, "What is to be achieved."),
  planner: optional(Name, "The agent that writes its plan. Default: goals.planner."),
  critic: optional(Name, "The agent that reviews the result. Default: goals.critic."),
  checks: optional(
    Schema.Array(Word).check(
      Schema.isMaxLength(MAX_CHECKS, { message: `must contain at most ${MAX_CHECKS} commands` })
    ),
    "Commands that must succeed before the critic's review. Default: goals.checks."
  ),
  autoStart: optional(
    Schema.Boolean,
    "Whether its plan is carried out without a user's approval. Default: goals.autoStart."
  ),
  rounds: optional(
    whole(1, 100),
    "Number of failed reviews after which the plan waits for a user. Default: goals.rounds."
  ),
  target: optional(Word, "The branch that finished work is merged into. Default: goals.target.")
})

export const ScheduleConfig = Schema.Struct({
  cron: described(
    CronText,
    'When: minute, hour, day of the month, month, day of the week. "30 2 * * *": each night at 2:30; "0 9 * * 1-5": on weekdays at nine.'
  ),
  timeZone: optional(Zone, "The time zone of these times, such as Europe/Berlin. Default: the machine's own."),
  send: optional(SendConfig, "A message to an agent. Either this or goal."),
  goal: optional(ScheduledGoal, "A goal for the agents of the project. Either this or send."),
  catchUp: CatchUp.pipe(
    withDefault(
      "once",
      "What happens to times that were missed because the daemon was down, the machine slept or the project was paused. once: only the last one runs; all: each one runs, in order; none: no missed one runs."
    )
  )
}).check(
  Schema.makeFilter(({ goal, send }: { readonly goal?: unknown; readonly send?: unknown }) => {
    if (goal !== undefined && send !== undefined) return "has both send and goal: give one of them"
    return goal === undefined && send === undefined ? "has nothing to do: add send or goal" : true
  })
)
export type ScheduleConfig = typeof ScheduleConfig.Type

export const SchedulesConfig = Schema.Record(
  Name,
  described(ScheduleConfig, `A schedule; its name: ${NAME_FORM}.`)
).check(
  Schema.makeFilter((schedules: object) => {
    const names = Object.keys(schedules)
    const taken = names.find((name) => /^at-\d+$/u.test(name))
    if (taken !== undefined) return `must not contain "${taken}": agentd uses such names for one-time schedules`
    return names.length <= MAX_SCHEDULES ? true : `must contain at most ${MAX_SCHEDULES} schedules`
  })
)
export type SchedulesConfig = typeof SchedulesConfig.Type
