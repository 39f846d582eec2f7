/**
 * ScheduleProtocol: procedures for schedules: messages and goals that are due at certain times.
 *
 * A schedule's message counts as input from outside, which allows agents to continue sending messages to each other.
 * Therefore no agent may create or run a schedule.
 */
import { Schema } from "effect"
import { Rpc } from "effect/rpc"
import { MAX_CHECKS } from "../../config/GoalConfig.ts"
import { CatchUp } from "../../config/ScheduleConfig.ts"
import { Done } from "../../domain/Messages.ts"
import { ScheduleInfo } from "../../domain/ScheduleMessages.ts"
import * as Bounds from "../../board/Bounds.ts"
import { Limits } from "../../board/Limits.ts"
import { command, error, input, procedure, Speaks } from "./Procedure.ts"

/** The latest due time of a schedule: the end of the year 9999, in ms since the epoch. */
const LAST = 253_402_300_799_000

const work = Schema.Struct({
  send: Schema.optionalKey(Schema.Struct({ agent: Bounds.agentName, text: Bounds.text(Limits.scheduled) })),
  goal: Schema.optionalKey(
    Schema.Struct({
      text: Bounds.text(Limits.scheduled, "Put the long part into a file, and name it."),
      planner: Schema.optionalKey(Bounds.name),
      critic: Schema.optionalKey(Bounds.name),
      target: Schema.optionalKey(Bounds.name),
      checks: Schema.optionalKey(
        Bounds.list(Bounds.text(Limits.check, "Put it into a script."), MAX_CHECKS, "Put them into a script.")
      ),
      autoStart: Schema.optionalKey(Schema.Boolean),
      rounds: Schema.optionalKey(Bounds.between(1, Limits.rounds, "Leave it out for the default."))
    })
  )
})

export const schedules = [
  /** Adds a message or a goal that is due once. The due time is in ms since the epoch. */
  procedure(
    Rpc.make("ScheduleAdd", {
      payload: input({
        due: Bounds.between(0, LAST, "Name a time in the future."),
        timeZone: Bounds.name,
        work,
        catchUp: CatchUp,
        caller: Bounds.caller
      }),
      success: Schema.Struct({ ...Done.fields, name: Schema.String }),
      error
    }).annotate(Speaks, "decides"),
    ({ schedules }, { caller, ...request }) => schedules.add(request, caller)
  ),
  /** Lists the schedules of the caller's project, or of all projects, by their next due times. */
  procedure(
    Rpc.make("Schedules", {
      payload: input({ all: Schema.Boolean, caller: Bounds.caller }),
      success: Schema.Array(ScheduleInfo),
      error
    }),
    ({ schedules }, { all, caller }) => schedules.list({ all }, caller)
  ),
  /** Removes a one-time schedule. Schedules in a config file cannot be removed this way. */
  procedure(command("ScheduleRemove", {}, "decides"), ({ schedules }, { caller, name }) =>
    schedules.remove(name, caller)
  ),
  /** Runs a schedule now, in addition to its due times. */
  procedure(command("ScheduleRun", {}, "decides"), ({ schedules }, { caller, name }) => schedules.run(name, caller)),
  procedure(command("SchedulePause", {}, "decides"), ({ schedules }, { caller, name }) =>
    schedules.pause(name, caller)
  ),
  procedure(command("ScheduleResume", {}, "decides"), ({ schedules }, { caller, name }) =>
    schedules.resume(name, caller)
  )
] as const
