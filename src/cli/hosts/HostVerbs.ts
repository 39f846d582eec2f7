/** HostVerbs: the commands that save, list and remove hosts. */
import { Argument, Command } from "effect/cli"
import { off, verb, yes } from "../parse/Verb.ts"

const name = Argument.String("name").pipe(
  Argument.withDescription("Name of the host: lower-case letters, digits and hyphens")
)

const add = Command.make(
  "add",
  {
    name,
    url: Argument.String("address").pipe(
      Argument.withDescription("ssh://user@machine, with :port or /STATE-DIRECTORY if they are not the default ones")
    ),
    force: off("force", "Replace the saved address of a host with this name"),
    yes
  },
  verb(() => import("./HostAdd.ts"))
).pipe(
  Command.withDescription("Save a host, after a try to reach its daemon through ssh"),
  Command.withExamples([
    {
      command: "agentd host add cellar ssh://ada@cellar.local",
      description: "From now on: agentd --host cellar ps, or agentd send cellar:shop/builder 'Go on'"
    }
  ])
)

const ls = Command.make(
  "ls",
  {},
  verb(() => import("./HostList.ts"))
).pipe(
  Command.withDescription("List the saved hosts, and whether each one answers"),
  Command.withExamples([{ command: "agentd host ls", description: "Ask all hosts at once; wait at most 3 s" }])
)

const rm = Command.make(
  "rm",
  { name },
  verb(() => import("./HostRemove.ts"))
).pipe(
  Command.withDescription("Remove a saved host; nothing changes on the host"),
  Command.withExamples([{ command: "agentd host rm cellar", description: "Forget the host cellar" }])
)

export const host = Command.make("host").pipe(
  Command.withDescription("Other machines on which you run agentd, reached through ssh"),
  Command.withExamples([
    { command: "agentd --host cellar ps", description: "List what runs on the host cellar" },
    { command: "agentd ps --all-hosts", description: "List what runs on this machine and on all saved hosts" }
  ]),
  Command.withSubcommands([add, ls, rm])
)
