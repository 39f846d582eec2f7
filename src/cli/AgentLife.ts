/**
 * `agentd start|stop|restart AGENT`: whether an agent is to run. Without a name the three are
 * about the daemon, which the whole program sees to.
 */
import { declare, maybeWord, off, said, send } from "./DeclaredVerb.ts"

const agent = maybeWord("Its name in this project, or project/agent; none: the daemon")
const yes = off("Do not ask", "y")

interface Given {
  readonly agent: string | undefined
}

export const isOfAgent = ({ agent }: Given): boolean => agent !== undefined

export const start = declare({
  path: ["start"],
  description: "Start the daemon in the background with the project of this folder, or a stopped agent",
  examples: [
    { command: "agentd start", description: "Under systemd where there is one; the project of this folder joins it" },
    { command: "agentd start builder", description: "Start an agent again, with fresh error counters" }
  ],
  args: { agent },
  rpc: ({ agent = "" }, caller) => send("Start", { name: agent, caller }),
  view: said,
  quick: isOfAgent
})

export const stop = declare({
  path: ["stop"],
  description: "Stop the daemon in order, or one agent until it is started again",
  examples: [
    { command: "agentd stop", description: "Every run is ended; what should run runs again after agentd start" },
    { command: "agentd stop --yes", description: "In a script: without --yes it exits 2 while agents work" },
    { command: "agentd stop web/builder", description: "Stop one agent of another project" }
  ],
  args: { agent, yes },
  rpc: ({ agent = "" }, caller) => send("Stop", { name: agent, caller }),
  view: said,
  quick: isOfAgent
})

export const restart = declare({
  path: ["restart"],
  description: "Restart the daemon, or one agent with fresh error counters",
  examples: [
    { command: "agentd restart", description: "After an upgrade: runs of claude and of commands go on meanwhile" },
    { command: "agentd restart --drain", description: "First wait until no agent is in the midst of a turn" }
  ],
  args: { agent, yes, drain: off("Wait until no agent is in the midst of a turn") },
  rpc: ({ agent = "" }, caller) => send("Restart", { name: agent, caller }),
  view: said,
  quick: isOfAgent
})
