/**
 * OwnServer: the server of agentd's own, `agentd mcp`, that a run is given whose agent may do something
 * through agentd.
 *
 * Guarantees: who starts a run and who tells what it could reach ask here, so they name the same files.
 */
import { dirname, join } from "node:path"
import type { RunSpec } from "../../runs/Backend.ts"
import type { AgentConfig } from "../../config/AgentConfig.ts"

export interface Options {
  /** How this program is called, absolute: Node, and the script. */
  readonly command: ReadonlyArray<string>
  readonly state: string
  readonly socket: string
}

/** The files and folders of this program: Node, and what lies beside the script, which may be its sources. */
const filesOf = ([node, script]: Options["command"]): ReadonlyArray<string> => {
  const program = node === undefined ? [] : [node]
  if (script === undefined) return program
  const root = dirname(dirname(script))
  return [...program, dirname(script), join(root, "node_modules"), join(root, "package.json")]
}

/** The servers of agentd's own for a run, by name. */
export const given =
  ({ command, socket, state }: Options) =>
  (runId: string, { may }: Pick<AgentConfig, "may">): RunSpec["mcp"] =>
    may.length === 0
      ? {}
      : {
          agentd: {
            argv: [...command, "--state", state, "mcp"],
            // in place of the control socket a run is told of its own one, where it has one
            env: { AGENTD_RUN: runId, AGENTD_SOCKET: socket },
            files: filesOf(command)
          }
        }
