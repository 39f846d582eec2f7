/**
 * `agentd start|stop|restart AGENT…`: starts, stops or restarts agents. Without a name these
 * commands are about the daemon; the full command-line program handles that.
 */
import { act, off, oneOf, option, send, type Targets, words } from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { labels, yes } from "../parse/Names.ts"

const names = words("Names in this project, project/agent, or patterns: 'shop/*'; none: the daemon", "agent")

export const isOfAgent = ({ labels, names }: Targets): boolean => names.length + labels.length > 0

const daemonToo = {
  message: "--daemon stops the daemon, not an agent.",
  remedy: "Leave one of the two out.",
  exitCode: ExitCode.usage
}

const both = {
  message: "--name is for the project of this folder, not for an agent.",
  remedy: "Leave one of the two out.",
  exitCode: ExitCode.usage
}

export const start = act({
  path: ["start"],
  description: "Start the daemon in the background with the project of this folder, or stopped agents",
  examples: [
    { command: "agentd start", description: "Under systemd if available; the project of this folder joins it" },
    { command: "agentd start --name shop-two", description: "If another project already has the folder's name" },
    { command: "agentd start builder", description: "Start an agent again, with fresh error counters" }
  ],
  args: {
    names,
    labels,
    as: {
      ...option("NAME", "A name for the project of this folder: it is written into its agentd.jsonc"),
      name: "name"
    }
  },
  several: { kind: "agent" },
  wrong: (input) => (input.as !== undefined && isOfAgent(input) ? both : undefined),
  rpc: ({ names }, caller) => send("Start", { name: oneOf(names), caller }),
  quick: isOfAgent
})

export const stop = act({
  path: ["stop"],
  description: "Stop the daemon gracefully, or agents until they are started again",
  examples: [
    { command: "agentd stop", description: "In a project's folder it asks: the daemon, or the project?" },
    {
      command: "agentd stop --daemon --yes",
      description: "Every run ends; the agents run again after agentd start; without --yes it asks if agents work"
    },
    { command: "agentd stop web/builder", description: "Stop one agent of another project" },
    { command: "agentd stop 'web/*'", description: "All matching agents: lists them, and asks" }
  ],
  args: { names, labels, yes, daemon: off("Stop the daemon, even in a project's folder") },
  several: { kind: "agent", ends: () => "stops", changes: () => "stops" },
  wrong: (input) => (input.daemon && isOfAgent(input) ? daemonToo : undefined),
  rpc: ({ names }, caller) => send("Stop", { name: oneOf(names), caller }),
  quick: isOfAgent
})

export const restart = act({
  path: ["restart"],
  description: "Restart the daemon, or agents with fresh error counters",
  examples: [
    { command: "agentd restart", description: "After an upgrade: runs of claude and of commands continue" },
    { command: "agentd restart --drain", description: "First wait until no agent is in a turn" },
    { command: "agentd restart 'web/*' --yes", description: "All agents of a project, without confirmation" },
    { command: "agentd restart -l backend", description: "All agents with this label in agentd.jsonc" }
  ],
  args: { names, labels, yes, drain: off("Wait until no agent is in a turn") },
  several: { kind: "agent", ends: () => "restarts", changes: () => "restarts" },
  rpc: ({ names }, caller) => send("Restart", { name: oneOf(names), caller }),
  quick: isOfAgent
})
