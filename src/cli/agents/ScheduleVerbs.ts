/** ScheduleVerbs: the commands for schedules. */
import { Command } from "effect/cli"
import { commandsOf } from "../parse/DeclaredCommand.ts"
import * as Declared from "../parse/DeclaredVerbs.ts"

export const daily = [
  ...commandsOf(Declared.at),
  Command.make("schedule").pipe(
    Command.withDescription("List and control schedules: messages and goals that are due at certain times"),
    Command.withExamples([
      {
        command: "agentd schedule ls",
        description: "List the schedules of this project, with the next due time of each"
      }
    ]),
    Command.withSubcommands(commandsOf(Declared.schedules))
  )
] as const
