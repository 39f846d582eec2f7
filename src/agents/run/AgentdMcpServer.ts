/**
 * AgentdMcpServer: agentd's own MCP server, `agentd mcp`, for runs of agents that may use agentd.
 *
 * Guarantees: The command that starts the server and the list of files that the run may access both come from this
 * module, so they match.
 */
import { dirname, join } from "node:path"
import type { RunSpec } from "../../runs/Backend.ts"
import type { AgentConfig } from "../../config/AgentConfig.ts"

export interface Options {
  /** The command line that starts this program, with absolute paths: Node and the script. */
  readonly command: ReadonlyArray<string>
  readonly state: string
  readonly socket: string
}

/** Files and folders of this program: Node, and the files near the script. The script may be a source file. */
const filesOf = ([node, script]: Options["command"]): ReadonlyArray<string> => {
  const program = node === undefined ? [] : [node]
  if (script === undefined) return program
  const root = dirname(dirname(script))
  return [...program, dirname(script), join(root, "node_modules"), join(root, "package.json")]
}

/** Returns agentd's own MCP servers for a run, by server name; empty if the agent is not allowed to use agentd. */
export const given =
  ({ command, socket, state }: Options) =>
  (runId: string, { may }: Pick<AgentConfig, "may">): RunSpec["mcp"] =>
    may.length === 0
      ? {}
      : {
          agentd: {
            argv: [...command, "--state", state, "mcp"],
            // a run with its own socket has that socket here instead of the control socket
            env: { AGENTD_RUN: runId, AGENTD_SOCKET: socket },
            files: filesOf(command)
          }
        }
