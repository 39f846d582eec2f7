/**
 * ConversationVerbs: the part of the command line that is about conversations as
 * wholes: what they are, and their pauses and ends.
 */
import { Option } from "effect"
import { Argument, Command } from "effect/cli"
import { maybe, off, verb, yes } from "./Verb.ts"

const name = Argument.String("conversation").pipe(
  Argument.withDescription("Its id or the beginning of it, or its project's name; default: that of this folder"),
  Argument.optional,
  Argument.map(Option.getOrElse(() => ""))
)
const reason = maybe("reason", "TEXT", "Why; it is kept in the log")

const ls = Command.make("ls", { all: off("all", "With those that are closed") }, ({ all }) =>
  verb(() => import("./Conversation.ts"))({ action: "ls", all })
).pipe(
  Command.withDescription("List the conversations, one for each project"),
  Command.withExamples([{ command: "agentd conversation ls", description: "What is paused, and what it has spent" }])
)

const show = Command.make("show", { name }, ({ name }) =>
  verb(() => import("./Conversation.ts"))({ action: "show", name })
).pipe(
  Command.withDescription("Show one conversation: its state, agents, turns, and what it has spent of its budget"),
  Command.withExamples([{ command: "agentd conversation show web", description: "By its project's name" }])
)

const begin = Command.make("new", {}, () => verb(() => import("./Conversation.ts"))({ action: "new" })).pipe(
  Command.withDescription("Begin a new conversation for the project of this folder, after its last one was closed"),
  Command.withExamples([{ command: "agentd conversation new", description: "Empty inboxes, fresh budgets, a new log" }])
)

const conversation = Command.make("conversation").pipe(
  Command.withDescription("A project's conversation: its agents, budget and log, as one whole"),
  Command.withSubcommands([ls, show, begin])
)

const pause = Command.make(
  "pause",
  {
    name,
    reason,
    complete: off("complete", "Let turns that are under way come to their end; else they are interrupted")
  },
  (input) => verb(() => import("./ConversationLife.ts"))({ action: "pause", ...input })
).pipe(
  Command.withDescription("Let no turn start in a conversation until it is resumed"),
  Command.withExamples([
    { command: 'agentd pause --complete --reason "release"', description: "The conversation of this folder" }
  ])
)

const resume = Command.make("resume", { name }, (input) =>
  verb(() => import("./ConversationLife.ts"))({ action: "resume", ...input })
).pipe(
  Command.withDescription("Go on after a pause; after a suspension with fresh counters and budget"),
  Command.withExamples([{ command: "agentd resume web", description: "What waited in its inboxes is taken up" }])
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

export const daily = [conversation, pause, resume, close, archive] as const
