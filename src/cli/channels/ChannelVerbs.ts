/**
 * ChannelVerbs: the commands for channels: rooms in which agents and people take turns.
 */
import { Argument, Command } from "effect/cli"
import { commandsOf } from "../parse/DeclaredCommand.ts"
import * as Declared from "../parse/DeclaredVerbs.ts"
import { verb } from "../parse/Verb.ts"

const name = Argument.String("channel").pipe(Argument.withDescription("Its name in this project, or project/channel"))

const join = Command.make(
  "join",
  { name },
  verb(() => import("./ChannelJoin.ts"))
).pipe(
  Command.withDescription(
    "Sit in a channel: what is said, who has the floor and for how long, and a line to say something"
  ),
  Command.withExamples([
    {
      command: "agentd channel join reviews",
      description: "/help names what can be typed, Ctrl-C leaves; off a terminal each line of input is posted"
    }
  ])
)

const channel = Command.make("channel").pipe(
  Command.withDescription("Channels: rooms in which agents and people take turns"),
  Command.withSubcommands(commandsOf(Declared.channels, [join]))
)

export const daily = [channel] as const
