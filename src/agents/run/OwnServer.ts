/**
 * OwnServer: agentd's own MCP server, `agentd mcp`, for runs whose agent may use agentd.
 *
 * Guarantees: both the start of a run and the list of files that it can reach use this module, so they name the same
 * files.
 */
import { dirname, join } from "node:path"
import type { RunSpec } from "../../runs/Backend.ts"
import type { AgentConfig } from "../../config/AgentConfig.ts"

export interface Options {
  /** The absolute command line of this program: Node, and the script. */
  readonly command: ReadonlyArray<string>
  readonly state: string
  readonly socket: string
}

/** The files and folders of this program: Node, and those near the script, which may be its sources. */
const filesOf = ([node, script]: Options["command"]): ReadonlyArray<string> => {
  const program = node === undefined ? [] : [node]
  if (script === undefined) return program
  const root = dirname(dirname(script))
  return [...program, dirname(script), join(root, "node_modules"), join(root, "package.json")]
}

/** agentd's own MCP servers for a run, by name. */
export const given =
  ({ command, socket, state }: Options) =>
  (runId: string, { may }: Pick<AgentConfig, "may">): RunSpec["mcp"] =>
    may.length === 0
      ? {}
      : {
          agentd: {
            argv: [...command, "--state", state, "mcp"],
            // a run with its own socket gets that one instead of the control socket
            env: { AGENTD_RUN: runId, AGENTD_SOCKET: socket },
            files: filesOf(command)
          }
        }
