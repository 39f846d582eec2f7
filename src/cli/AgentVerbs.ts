/**
 * AgentVerbs: the part of the command line that is about agents: what they do, and
 * what a person says to them; and `mcp`, by which an agent speaks itself.
 */
import { Command, Flag } from "effect/cli"
import { commandOf, commandsOf } from "./DeclaredCommand.ts"
import * as Declared from "./DeclaredVerbs.ts"
import { log } from "./LogView.ts"
import { ps } from "./Ps.ts"
import { agent, off, verb } from "./Verb.ts"

const attach = Command.make(
  "attach",
  {
    agent,
    turns: Flag.Int("turns").pipe(
      Flag.withMetavar("N"),
      Flag.withDescription("Begin with the last N turns"),
      Flag.mapTryCatch(
        (count) => {
          if (count < 0 || count > 100) throw new Error("Expected a number from 0 to 100")
          return count
        },
        (error) => (error instanceof Error ? error.message : String(error))
      ),
      Flag.withDefault(3)
    ),
    stdin: off("stdin", "Take lines of standard input, when it is no terminal, as what is typed")
  },
  verb(() => import("./Attach.ts"))
).pipe(
  Command.withDescription("Follow what an agent says and does, answer what it asks, and talk to it"),
  Command.withExamples([
    { command: "agentd attach builder", description: "Type to send; /help names the rest; Ctrl-C or /quit leaves" },
    { command: "agentd attach builder > turns.txt", description: "Plain lines, no prompt" }
  ])
)

export const mcp = Command.make(
  "mcp",
  {},
  verb(() => import("./Mcp.ts"))
).pipe(
  Command.withDescription("Let an agent speak to agentd: an MCP server on standard input and output"),
  Command.withExamples([
    { command: "agentd mcp", description: "The daemon gives it to each run; by hand it says so and ends" }
  ])
)

export const daily = commandsOf(Declared.agents, [
  commandOf(ps, {
    program: ({ watch }) =>
      watch
        ? () => import("./Watch.ts").then(({ run }) => ({ run: () => run({ bell: false, notify: false }) }))
        : undefined
  }),
  commandOf(log, { program: (input) => () => import("./Log.ts").then(({ run }) => ({ run: () => run(input) })) }),
  attach
])
