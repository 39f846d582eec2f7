/**
 * ScheduleProtocol: the procedures on schedules: messages and goals that are due at certain times. What a schedule sends
 * is a word from outside, which lets agents among themselves go on: so no agent makes one, or runs one.
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

/** A year in which nobody who asks for it works any more. */
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
  /** A message or a goal, at one time: ms since the epoch. */
  procedure(
    Rpc.make("ScheduleAdd", {
      payload: input({
        due: Bounds.between(0, LAST, "Name a time that is to come."),
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
  /** Of the caller's project, or of all; the next one first. */
  procedure(
    Rpc.make("Schedules", {
      payload: input({ all: Schema.Boolean, caller: Bounds.caller }),
      success: Schema.Array(ScheduleInfo),
      error
    }),
    ({ schedules }, { all, caller }) => schedules.list({ all }, caller)
  ),
  /** Of those for one time; one of a file is refused. */
  procedure(command("ScheduleRemove", {}, "decides"), ({ schedules }, { caller, name }) =>
    schedules.remove(name, caller)
  ),
  /** Now, besides its times. */
  procedure(command("ScheduleRun", {}, "decides"), ({ schedules }, { caller, name }) => schedules.run(name, caller)),
  procedure(command("SchedulePause", {}, "decides"), ({ schedules }, { caller, name }) =>
    schedules.pause(name, caller)
  ),
  procedure(command("ScheduleResume", {}, "decides"), ({ schedules }, { caller, name }) =>
    schedules.resume(name, caller)
  )
] as const
