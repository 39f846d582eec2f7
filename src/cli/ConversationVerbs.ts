/**
 * ConversationVerbs: the part of the command line that is about conversations as
 * wholes: what they are, and their pauses and ends.
 */
import { Option } from "effect"
import { Argument, Command } from "effect/cli"
import { begin, ls, show } from "./Conversation.ts"
import { pause, resume } from "./ConversationPause.ts"
import { commandOf } from "./DeclaredCommand.ts"
import { maybe, off, verb, yes } from "./Verb.ts"

const name = Argument.String("conversation").pipe(
  Argument.withDescription("Its id or the beginning of it, or its project's name; default: that of this folder"),
  Argument.optional,
  Argument.map(Option.getOrElse(() => ""))
)
const reason = maybe("reason", "TEXT", "Why; it is kept in the log")

const conversation = Command.make("conversation").pipe(
  Command.withDescription("A project's conversation: its agents, budget and log, as one whole"),
  Command.withSubcommands([commandOf(ls), commandOf(show), commandOf(begin)])
)

const close = Command.make(
  "close",
  { name, reason, yes, force: off("force", "Do not wait for turns that are under way") },
  (input) => verb(() => import("./ConversationLife.ts"))({ action: "close", ...input })
).pipe(
  Command.withDescription("End a conversation for good: its agents stop in order, its log is sealed"),
  Command.withExamples([
    { command: "agentd close web", description: "Asks first; without a terminal it needs --yes, or exits 2" }
  ])
)

const archive = Command.make("archive", { name, yes }, (input) =>
  verb(() => import("./ConversationLife.ts"))({ action: "archive", ...input })
).pipe(
  Command.withDescription("Move what a closed conversation holds into a compressed file"),
  Command.withExamples([
    { command: "agentd archive web --yes", description: "agentd verify still checks it; agentd log shows it no more" }
  ])
)

export const daily = [conversation, commandOf(pause), commandOf(resume), close, archive] as const
