/**
 * ChannelVerbs: the part of the command line that is about channels: rooms in
 * which agents and people take turns.
 */
import { Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { ORDERS } from "../config/ChannelConfig.ts"
import { maybe, verb } from "./Verb.ts"

const name = Argument.String("channel").pipe(Argument.withDescription("Its name in this project, or project/channel"))
const agent = Argument.String("agent").pipe(Argument.withDescription("The agent's name"))
const agents = Argument.String("agent").pipe(Argument.withDescription("Agents' names"), Argument.atLeast(0))
const act = verb(() => import("./Channel.ts"))

const ls = Command.make("ls", {}, () => act({ action: "ls" })).pipe(
  Command.withDescription("List the channels: who has the floor, who is next, and why nothing happens"),
  Command.withExamples([{ command: "agentd channel ls", description: "Of all projects" }])
)

const begin = Command.make(
  "new",
  {
    name,
    agents,
    order: Flag.Literals("order", ORDERS).pipe(
      Flag.withDescription("Who has the floor next: in turn, the highest priority, or whom you give it"),
      Flag.withDefault("round-robin" as const)
    ),
    topic: maybe("topic", "TEXT", "What it is for; each agent is told")
  },
  (input) => act({ action: "new", ...input })
).pipe(
  Command.withDescription("Make a channel in the project of this folder; agentd.jsonc can name them, too"),
  Command.withExamples([
    { command: 'agentd channel new reviews pm dev --topic "review of #42"', description: "Two agents that take turns" }
  ])
)

const show = Command.make("show", { name }, (input) => act({ action: "show", ...input })).pipe(
  Command.withDescription("Show one channel: its seats in the order of their turns, and what was said last"),
  Command.withExamples([{ command: "agentd channel show reviews", description: "Who waits, and for what" }])
)

const close = Command.make("close", { name }, (input) => act({ action: "close", ...input })).pipe(
  Command.withDescription("Close a channel that was made with agentd channel new"),
  Command.withExamples([{ command: "agentd channel close reviews", description: "What was said stays in the log" }])
)

const assign = Command.make("assign", { name, agent }, (input) => act({ action: "assign", ...input })).pipe(
  Command.withDescription("Give an agent a seat: its turn comes after everybody else's"),
  Command.withExamples([{ command: "agentd channel assign reviews qa", description: "After a crash, too" }])
)

const remove = Command.make("remove", { name, agent }, (input) => act({ action: "remove", ...input })).pipe(
  Command.withDescription("Take an agent's seat away; if it has the floor, the next one gets it"),
  Command.withExamples([{ command: "agentd channel remove reviews qa", description: "Its turn is ended" }])
)

const post = Command.make(
  "post",
  {
    name,
    text: Argument.String("text").pipe(
      Argument.withDescription("What is said; - or nothing: standard input"),
      Argument.optional,
      Argument.map(Option.getOrUndefined)
    )
  },
  (input) => act({ action: "post", ...input })
).pipe(
  Command.withDescription("Say something in a channel; for a word to one agent there is agentd send"),
  Command.withExamples([
    {
      command: 'agentd channel post reviews "Look at #42"',
      description: "What it does to a turn in progress is config"
    }
  ])
)

const order = Command.make(
  "order",
  {
    name,
    order: Argument.Literals("order", ORDERS).pipe(Argument.withDescription("How the next one is found")),
    agents
  },
  (input) => act({ action: "order", ...input })
).pipe(
  Command.withDescription("Change how the floor goes on, and who stands first in the queue"),
  Command.withExamples([
    {
      command: "agentd channel order reviews round-robin qa dev",
      description: "qa is next, then dev, then the others"
    },
    { command: "agentd channel order reviews manual", description: "Only whom you give it with agentd channel grant" }
  ])
)

const grant = Command.make("grant", { name, agent }, (input) => act({ action: "grant", ...input })).pipe(
  Command.withDescription("Give the floor to an agent now; who has it loses it, who waits goes on"),
  Command.withExamples([{ command: "agentd channel grant reviews dev", description: "Its turn begins" }])
)

const skip = Command.make("skip", { name }, (input) => act({ action: "skip", ...input })).pipe(
  Command.withDescription("Take the floor from who has it; the next one gets it"),
  Command.withExamples([{ command: "agentd channel skip reviews", description: "Its turn is interrupted" }])
)

const requeue = Command.make("requeue", { name, agent }, (input) => act({ action: "requeue", ...input })).pipe(
  Command.withDescription("End an agent's wait, or its turn: it goes to the end of the queue, like after its turn"),
  Command.withExamples([
    {
      command: "agentd channel requeue reviews dev",
      description: "dev waits no longer; grant gives it the floor instead"
    }
  ])
)

const pause = Command.make("pause", { name }, (input) => act({ action: "pause", paused: true, ...input })).pipe(
  Command.withDescription("Give the floor to nobody until it is resumed; the turn in progress ends by itself"),
  Command.withExamples([{ command: "agentd channel pause reviews", description: "What is said meanwhile is kept" }])
)

const resume = Command.make("resume", { name }, (input) => act({ action: "pause", paused: false, ...input })).pipe(
  Command.withDescription("Go on after a pause, or where the channel rests since its agents only talked to each other"),
  Command.withExamples([{ command: "agentd channel resume reviews", description: "The next one gets the floor" }])
)

const log = Command.make(
  "log",
  {
    name,
    lines: Flag.Int("lines").pipe(
      Flag.withAlias("n"),
      Flag.withMetavar("N"),
      Flag.withDescription("Only the newest N"),
      Flag.withDefault(50)
    )
  },
  (input) => act({ action: "log", ...input })
).pipe(
  Command.withDescription("Print every move of its seats: who, from what to what, and why"),
  Command.withExamples([
    { command: "agentd channel log reviews --json", description: "One state_transition a line, with all its fields" }
  ])
)

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
  Command.withSubcommands([
    ls,
    show,
    join,
    post,
    log,
    begin,
    assign,
    remove,
    order,
    grant,
    skip,
    requeue,
    pause,
    resume,
    close
  ])
)

export const daily = [channel] as const
