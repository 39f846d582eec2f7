/** ScheduleVerbs: the commands for schedules. */
import { Command } from "effect/cli"
import { commandsOf } from "../parse/DeclaredCommand.ts"
import * as Declared from "../parse/DeclaredVerbs.ts"

export const daily = [
  ...commandsOf(Declared.at),
  Command.make("schedule").pipe(
    Command.withDescription("Messages and goals that are due at certain times"),
    Command.withExamples([{ command: "agentd schedule ls", description: "When each is due next" }]),
    Command.withSubcommands(commandsOf(Declared.schedules))
  )
] as const
