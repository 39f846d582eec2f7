/** `agentd channel …`: lists and shows channels, and the commands that act on them. */
import type { Order } from "../../config/ChannelConfig.ts"
import * as ChannelTable from "./ChannelTable.ts"
import {
  act,
  choice,
  declare,
  oneOf,
  option,
  pick,
  read,
  readDecoded,
  send,
  text,
  word,
  words
} from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { yes } from "../parse/Names.ts"

const name = word("Its name in this project, or project/channel", { name: "channel" })
const names = words("Names in this project, project/channel, or patterns: 'shop/*'", "channel")
const agent = word("The agent's name")
const agents = words("Agents' names", "agent")

const none =
  (verb: string) =>
  ({ names }: { readonly names: ReadonlyArray<string> }) =>
    names.length > 0
      ? undefined
      : {
          message: "Missing required argument: channel",
          remedy: `Say which: agentd channel ${verb} CHANNEL. See them: agentd channel ls`,
          exitCode: ExitCode.usage
        }

const ORDERS = Object.keys({ "round-robin": 0, priority: 0, manual: 0 } satisfies {
  [order in Order]: 0
}) as ReadonlyArray<Order>

export const ls = declare({
  path: ["channel", "ls"],
  description: "List the channels: who has the floor, who is next, and why nothing happens",
  examples: [{ command: "agentd channel ls", description: "Of all projects" }],
  args: {},
  rpc: () => read("Channels", null),
  view: (channels, { colour, columns, now }) => ChannelTable.list(channels, now, { colour, columns })
})

export const show = declare({
  path: ["channel", "show"],
  description: "Show one channel: its seats in the order of their turns, and what was said last",
  examples: [{ command: "agentd channel show reviews", description: "Who waits, and for what" }],
  args: { name },
  rpc: ({ name }, caller) => readDecoded("Channel", { name, caller }),
  view: (found, { colour, columns, now }) => ChannelTable.headOf(found, now, { colour, columns }),
  verbatim: (found, { colour, columns, now }) => ChannelTable.saidIn(found, now, { colour, columns }),
  quick: false
})

export const post = act({
  path: ["channel", "post"],
  description: "Post in a channel; to write to only one agent, use agentd send",
  examples: [
    {
      command: 'agentd channel post reviews "Look at #42"',
      description: "The config decides what it does to a turn in progress"
    }
  ],
  args: { name, text: text("The text; - or nothing: read standard input") },
  rpc: ({ name, text }, caller) => send("PostToChannel", { name, text, caller })
})

export const begin = act({
  path: ["channel", "new"],
  description: "Create a channel in this folder's project; agentd.jsonc can define them, too",
  examples: [
    { command: 'agentd channel new reviews pm dev --topic "review of #42"', description: "Two agents that take turns" }
  ],
  args: {
    name,
    agents,
    order: choice(ORDERS, "round-robin", "Who has the floor next: in turn, the highest priority, or whom you give it"),
    topic: option("TEXT", "Its purpose; each agent sees it")
  },
  rpc: ({ agents, name, order, topic }, caller) =>
    send("NewChannel", { name, agents, order, topic: topic ?? "", caller })
})

export const assign = act({
  path: ["channel", "assign"],
  description: "Give an agent a seat: its turn comes after everybody else's",
  examples: [{ command: "agentd channel assign reviews qa", description: "After a crash, too" }],
  args: { name, agent },
  rpc: ({ agent, name }, caller) => send("AssignSeat", { name, agent, caller })
})

export const remove = act({
  path: ["channel", "remove"],
  description: "Take an agent's seat away; if it has the floor, the next one gets it",
  examples: [{ command: "agentd channel remove reviews qa", description: "Ends its turn" }],
  args: { name, agent },
  rpc: ({ agent, name }, caller) => send("RemoveSeat", { name, agent, caller })
})

export const order = act({
  path: ["channel", "order"],
  description: "Change the order of turns, and who is first in the queue",
  examples: [
    {
      command: "agentd channel order reviews round-robin qa dev",
      description: "qa is next, then dev, then the others"
    },
    {
      command: "agentd channel order reviews manual",
      description: "Only agents that you name with agentd channel grant"
    }
  ],
  args: { name, order: pick(ORDERS, "How the next agent is chosen"), agents },
  rpc: ({ agents, name, order }, caller) => send("OrderChannel", { name, order, agents, caller })
})

export const grant = act({
  path: ["channel", "grant"],
  description: "Give the floor to an agent now; the agent that has it loses it",
  examples: [{ command: "agentd channel grant reviews dev", description: "Its turn begins" }],
  args: { name, agent },
  rpc: ({ agent, name }, caller) => send("GrantFloor", { name, agent, caller })
})

export const skip = act({
  path: ["channel", "skip"],
  description: "Take the floor from the agent that has it; the next one gets it",
  examples: [{ command: "agentd channel skip reviews", description: "Its turn is interrupted" }],
  args: { names },
  several: { kind: "channel" },
  wrong: none("skip"),
  rpc: ({ names }, caller) => send("SkipFloor", { name: oneOf(names), caller })
})

export const requeue = act({
  path: ["channel", "requeue"],
  description: "End an agent's wait or turn; it goes to the end of the queue",
  examples: [
    {
      command: "agentd channel requeue reviews dev",
      description: "dev waits no longer; grant gives it the floor instead"
    }
  ],
  args: { name, agent },
  rpc: ({ agent, name }, caller) => send("RequeueSeat", { name, agent, caller })
})

export const pause = act({
  path: ["channel", "pause"],
  description: "Pause a channel until it is resumed; the turn in progress ends by itself",
  examples: [{ command: "agentd channel pause reviews", description: "Posts are kept until then" }],
  args: { names },
  several: { kind: "channel" },
  wrong: none("pause"),
  rpc: ({ names }, caller) => send("PauseChannel", { name: oneOf(names), paused: true, caller })
})

export const resume = act({
  path: ["channel", "resume"],
  description: "Resume a channel after a pause, or after too many posts by agents alone",
  examples: [{ command: "agentd channel resume reviews", description: "The next one gets the floor" }],
  args: { names },
  several: { kind: "channel" },
  wrong: none("resume"),
  rpc: ({ names }, caller) => send("PauseChannel", { name: oneOf(names), paused: false, caller })
})

export const close = act({
  path: ["channel", "close"],
  description: "Close a channel that was made with agentd channel new",
  examples: [{ command: "agentd channel close reviews", description: "What was said stays in the log" }],
  args: { names, yes },
  several: { kind: "channel", ends: () => "closes" },
  wrong: none("close"),
  rpc: ({ names }, caller) => send("CloseChannel", { name: oneOf(names), caller })
})
