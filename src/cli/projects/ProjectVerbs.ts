/** ProjectVerbs: the commands for projects as a whole. */
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { commandOf, commandsOf } from "../parse/DeclaredCommand.ts"
import { isOne, oneOf } from "../parse/DeclaredVerb.ts"
import * as Declared from "../parse/DeclaredVerbs.ts"
import { archive, close } from "./ConversationEnd.ts"
import { stop } from "./Project.ts"
import { spanOf } from "../parse/SpanFlag.ts"
import { maybe, off, verb, yes, readFlag } from "../parse/Verb.ts"

const name = Argument.String("project").pipe(Argument.withDescription("The project's name, or its conversation's id"))

/** The verb `stop`, which asks the user first if agents are working, unless --yes was passed. */
const stopping = commandOf(stop, {
  before: ({ names, yes }) =>
    yes || !isOne({ names })
      ? Effect.void
      : Effect.flatMap(
          Effect.promise(() => import("./ProjectLife.ts")),
          ({ ask }) => ask("stop", oneOf(names), yes)
        )
})

/** Makes a verb that asks the user first, unless --yes was passed. */
const asked = (
  action: "close" | "archive",
  { names, yes }: { readonly names: ReadonlyArray<string>; readonly yes: boolean }
) =>
  yes || !isOne({ names })
    ? Effect.void
    : Effect.flatMap(
        Effect.promise(() => import("./ConversationLife.ts")),
        ({ ask }) => ask(action, oneOf(names))
      )

const closing = commandOf(close, { before: (input) => asked("close", input) })
const archiving = commandOf(archive, { before: (input) => asked("archive", input) })

const restart = Command.make(
  "restart",
  {
    name: name.pipe(Argument.optional, Argument.map(Option.getOrUndefined)),
    rolling: off("rolling", "Restart one agent after the other, each when the previous agent runs again"),
    timeout: readFlag(
      "timeout",
      ["TIME", "With --rolling: maximum time for one agent to start, such as 30s or 2m"],
      spanOf
    ).pipe(Flag.withDefault(120_000)),
    yes
  },
  verb(() => import("./ProjectRestart.ts"))
).pipe(
  Command.withDescription("Restart all agents of a project with fresh error counters, except stopped ones"),
  Command.withExamples([
    {
      command: "agentd project restart shop --rolling",
      description: "Restart one agent after the other; stop at the first that does not start"
    }
  ])
)

const rename = Command.make(
  "rename",
  { from: name, to: Argument.String("name").pipe(Argument.withDescription("New name of the project")) },
  verb(() => import("./ProjectRename.ts"))
).pipe(
  Command.withDescription("Rename a project in its agentd.jsonc; the project keeps its history"),
  Command.withExamples([
    {
      command: "agentd project rename shop store",
      description: "Rename the project shop to store; its agents keep running"
    }
  ])
)

const remove = Command.make(
  "remove",
  {
    name,
    reason: maybe("reason", "TEXT", "Reason for the removal, which is written to the log"),
    yes,
    force: off("force", "Do not wait for turns in progress")
  },
  verb(() => import("./ProjectRemove.ts"))
).pipe(
  Command.withDescription("End a project permanently; its log is kept, and its folder is not changed"),
  Command.withExamples([
    { command: "agentd project remove shop", description: "Show what ends and what is kept, then ask for confirmation" }
  ])
)

export const project = Command.make("project").pipe(
  Command.withDescription("List, start, stop, rename or remove whole projects"),
  Command.withSubcommands(commandsOf(Declared.projects, [stopping, closing, archiving, restart, rename, remove]))
)
