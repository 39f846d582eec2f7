/**
 * `agentd start|stop|restart AGENT…`: starts, stops or restarts agents. Without an agent's name, these commands act on
 * the daemon: see the modules in `cli/daemon`.
 */
import { act, off, oneOf, option, send, type Targets, words } from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { labels, yes } from "../parse/Names.ts"

const names = words(
  "Agents: a name in this project, project/agent, or a pattern such as 'shop/*'; default: the daemon",
  "agent"
)

export const isOfAgent = ({ labels, names }: Targets): boolean => names.length + labels.length > 0

const daemonToo = {
  message: "--daemon stops the daemon, not an agent.",
  remedy: "Use --daemon without an agent's name.",
  exitCode: ExitCode.usage
}

const both = {
  message: "--name sets the name of this folder's project, not of an agent.",
  remedy: "Use --name without an agent's name.",
  exitCode: ExitCode.usage
}

export const start = act({
  path: ["start"],
  description: "Start the daemon in the background with the project of this folder, or start stopped agents",
  examples: [
    {
      command: "agentd start",
      description: "Start the daemon, under systemd if available, with the project of this folder"
    },
    {
      command: "agentd start --name shop-two",
      description: "Start with another project name, if the folder's name is already used"
    },
    { command: "agentd start builder", description: "Start an agent again, with fresh error counters" }
  ],
  args: {
    names,
    labels,
    as: {
      ...option("NAME", "Set the name of this folder's project, in its agentd.jsonc"),
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
  description: "Stop the daemon gracefully, or stop agents until you start them again",
  examples: [
    {
      command: "agentd stop",
      description: "Stop the daemon; in a project's folder, ask first: the daemon, or only the project?"
    },
    {
      command: "agentd stop --daemon --yes",
      description: "Stop the daemon and every run, without asking; the agents run again after agentd start"
    },
    { command: "agentd stop web/builder", description: "Stop one agent of another project" },
    { command: "agentd stop 'web/*'", description: "Stop all agents that match; list them and ask first" }
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
    {
      command: "agentd restart",
      description: "Restart the daemon, for example after an upgrade; runs of claude and of commands continue"
    },
    { command: "agentd restart --drain", description: "Wait until no agent is in a turn, then restart the daemon" },
    {
      command: "agentd restart 'web/*' --yes",
      description: "Restart all agents of the project web, without confirmation"
    },
    { command: "agentd restart -l backend", description: "Restart all agents with the label backend in agentd.jsonc" }
  ],
  args: { names, labels, yes, drain: off("Wait until no agent is in a turn before the restart") },
  several: { kind: "agent", ends: () => "restarts", changes: () => "restarts" },
  rpc: ({ names }, caller) => send("Restart", { name: oneOf(names), caller }),
  quick: isOfAgent
})
