/** ChannelVerbs: the commands for channels, in which agents and users take turns. */
import { Argument, Command } from "effect/cli"
import { commandsOf } from "../parse/DeclaredCommand.ts"
import * as Declared from "../parse/DeclaredVerbs.ts"
import { verb } from "../parse/Verb.ts"

const name = Argument.String("channel").pipe(
  Argument.withDescription("The channel: its name in this project, or project/channel")
)

const join = Command.make(
  "join",
  { name },
  verb(() => import("./ChannelJoin.ts"))
).pipe(
  Command.withDescription("Join a channel: follow its posts and who has the floor, and post messages"),
  Command.withExamples([
    {
      command: "agentd channel join reviews",
      description:
        "Join reviews; /help lists the commands, Ctrl-C leaves; without a terminal, post each line of standard input"
    }
  ])
)

const channel = Command.make("channel").pipe(
  Command.withDescription("Manage and join channels, in which agents and people take turns"),
  Command.withSubcommands(commandsOf(Declared.channels, [join]))
)

export const daily = [channel] as const
