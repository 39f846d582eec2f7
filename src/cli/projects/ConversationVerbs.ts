/**
 * ConversationVerbs: the part of the command line that is about conversations as
 * wholes: what they are, and their pauses and ends.
 */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { archive, close } from "./ConversationEnd.ts"
import { commandOf, commandsOf } from "../parse/DeclaredCommand.ts"
import { isOne, oneOf } from "../parse/DeclaredVerb.ts"
import * as Declared from "../parse/DeclaredVerbs.ts"

const conversation = Command.make("conversation").pipe(
  Command.withDescription("A project's conversation: its agents, budget and log, as one whole"),
  Command.withSubcommands(commandsOf(Declared.conversations))
)

/** A person is asked first, unless --yes was given. */
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

export const daily = [
  conversation,
  ...commandsOf(Declared.conversationLives, [
    commandOf(close, { before: (input) => asked("close", input) }),
    commandOf(archive, { before: (input) => asked("archive", input) })
  ])
] as const
