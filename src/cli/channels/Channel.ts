/** `agentd channel …`: lists, shows and controls channels. */
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

const name = word("The channel: its name in this project, or project/channel", { name: "channel" })
const names = words("Channels: a name in this project, project/channel, or a pattern such as 'shop/*'", "channel")
const agent = word("Name of the agent")
const agents = words("Names of agents", "agent")

const none =
  (verb: string) =>
  ({ names }: { readonly names: ReadonlyArray<string> }) =>
    names.length > 0
      ? undefined
      : {
          message: "Missing required argument: channel",
          remedy: `Specify the channel: agentd channel ${verb} CHANNEL. List all channels: agentd channel ls`,
          exitCode: ExitCode.usage
        }

const ORDERS = Object.keys({ "round-robin": 0, priority: 0, manual: 0 } satisfies {
  [order in Order]: 0
}) as ReadonlyArray<Order>

export const ls = declare({
  path: ["channel", "ls"],
  description: "List the channels: which agent has the floor, which is next, and why a channel is idle",
  examples: [{ command: "agentd channel ls", description: "List the channels of all projects" }],
  args: {},
  rpc: () => read("Channels", null),
  view: (channels, { colour, columns, now }) => ChannelTable.list(channels, now, { colour, columns })
})

export const show = declare({
  path: ["channel", "show"],
  description: "Show one channel: its seats in the order of their turns, and its last posts",
  examples: [{ command: "agentd channel show reviews", description: "Show which agents wait, and for what" }],
  args: { name },
  rpc: ({ name }, caller) => readDecoded("Channel", { name, caller }),
  view: (found, { colour, columns, now }) => ChannelTable.headOf(found, now, { colour, columns }),
  verbatim: (found, { colour, columns, now }) => ChannelTable.saidIn(found, now, { colour, columns }),
  quick: false
})

export const post = act({
  path: ["channel", "post"],
  description: "Post a message in a channel; to write to only one agent, use agentd send",
  examples: [
    {
      command: 'agentd channel post reviews "Look at #42"',
      description: "Post a message; the config decides whether it interrupts a turn in progress"
    }
  ],
  args: { name, text: text("Text of the post; if it is - or missing, read from standard input") },
  rpc: ({ name, text }, caller) => send("PostToChannel", { name, text, caller })
})

export const begin = act({
  path: ["channel", "new"],
  description: "Create a channel in this folder's project; agentd.jsonc can also define channels",
  examples: [
    {
      command: 'agentd channel new reviews pm dev --topic "review of #42"',
      description: "Create a channel in which the agents pm and dev take turns"
    }
  ],
  args: {
    name,
    agents,
    order: choice(ORDERS, "round-robin", "How the next agent is chosen: in turn, by highest priority, or by you"),
    topic: option("TEXT", "Purpose of the channel, which each agent sees")
  },
  rpc: ({ agents, name, order, topic }, caller) =>
    send("NewChannel", { name, agents, order, topic: topic ?? "", caller })
})

export const assign = act({
  path: ["channel", "assign"],
  description: "Give an agent a seat in a channel; its first turn comes after all other agents",
  examples: [
    {
      command: "agentd channel assign reviews qa",
      description: "Give qa a seat, or give the seat back after qa has crashed"
    }
  ],
  args: { name, agent },
  rpc: ({ agent, name }, caller) => send("AssignSeat", { name, agent, caller })
})

export const remove = act({
  path: ["channel", "remove"],
  description: "Remove an agent's seat; if the agent has the floor, the next agent gets it",
  examples: [{ command: "agentd channel remove reviews qa", description: "Remove the seat of qa, and end its turn" }],
  args: { name, agent },
  rpc: ({ agent, name }, caller) => send("RemoveSeat", { name, agent, caller })
})

export const order = act({
  path: ["channel", "order"],
  description: "Change the order of turns, and which agents are first in the queue",
  examples: [
    {
      command: "agentd channel order reviews round-robin qa dev",
      description: "Take turns round-robin: first qa, then dev, then the others"
    },
    {
      command: "agentd channel order reviews manual",
      description: "Give turns only to agents that you name with agentd channel grant"
    }
  ],
  args: { name, order: pick(ORDERS, "How the next agent is chosen"), agents },
  rpc: ({ agents, name, order }, caller) => send("OrderChannel", { name, order, agents, caller })
})

export const grant = act({
  path: ["channel", "grant"],
  description: "Give the floor to an agent now; the agent that has the floor loses it",
  examples: [
    { command: "agentd channel grant reviews dev", description: "Give dev the floor, so that its turn begins" }
  ],
  args: { name, agent },
  rpc: ({ agent, name }, caller) => send("GrantFloor", { name, agent, caller })
})

export const skip = act({
  path: ["channel", "skip"],
  description: "Take the floor from the agent that has it; the next agent gets it",
  examples: [
    {
      command: "agentd channel skip reviews",
      description: "Interrupt the current turn, and continue with the next agent"
    }
  ],
  args: { names },
  several: { kind: "channel" },
  wrong: none("skip"),
  rpc: ({ names }, caller) => send("SkipFloor", { name: oneOf(names), caller })
})

export const requeue = act({
  path: ["channel", "requeue"],
  description: "End an agent's wait or turn, and move the agent to the end of the queue",
  examples: [
    {
      command: "agentd channel requeue reviews dev",
      description: "End the wait of dev; to give it the floor instead, use grant"
    }
  ],
  args: { name, agent },
  rpc: ({ agent, name }, caller) => send("RequeueSeat", { name, agent, caller })
})

export const pause = act({
  path: ["channel", "pause"],
  description: "Pause a channel until you resume it; the turn in progress can finish",
  examples: [
    {
      command: "agentd channel pause reviews",
      description: "Pause the channel; new posts are kept until it is resumed"
    }
  ],
  args: { names },
  several: { kind: "channel" },
  wrong: none("pause"),
  rpc: ({ names }, caller) => send("PauseChannel", { name: oneOf(names), paused: true, caller })
})

export const resume = act({
  path: ["channel", "resume"],
  description: "Resume a channel after a pause, or after agents alone made too many posts",
  examples: [
    { command: "agentd channel resume reviews", description: "Resume the channel; the next agent gets the floor" }
  ],
  args: { names },
  several: { kind: "channel" },
  wrong: none("resume"),
  rpc: ({ names }, caller) => send("PauseChannel", { name: oneOf(names), paused: false, caller })
})

export const close = act({
  path: ["channel", "close"],
  description: "Close a channel that was created with agentd channel new",
  examples: [{ command: "agentd channel close reviews", description: "Close the channel; its posts stay in the log" }],
  args: { names, yes },
  several: { kind: "channel", ends: () => "closes" },
  wrong: none("close"),
  rpc: ({ names }, caller) => send("CloseChannel", { name: oneOf(names), caller })
})
