/**
 * Host: what a backend knows of the daemon: its environment, its folders, and what no agent may see of them.
 */
import * as path from "node:path"
import type { Via } from "./gateway/GatewayClient.ts"
import type { Environment } from "./process/ChildProcess.ts"

export type Argv = readonly [string, ...ReadonlyArray<string>]

export interface Host {
  /** The store's id. Marks the processes of its runs. */
  readonly store: string
  readonly environment: Environment
  /** Folder for conversations of agentd's own models. If omitted, a conversation ends with its run. */
  readonly sessions?: string | undefined
  /** Paths that agentd's own tools may not see: the state directory, the folder of the socket. */
  readonly hidden?: ReadonlyArray<string> | undefined
  /** Folder for the tokens from logins at remote MCP servers. If omitted, there are none. */
  readonly logins?: string | undefined
  /** Folder for the home folders of confined agents. If omitted, a home folder ends with its run. */
  readonly homes?: string | undefined
  /** Folder for the files of runs. If omitted, they lie in the folder for temporary files. */
  readonly runs?: string | undefined
  readonly sockets?: string | undefined
  readonly gateway?: string | undefined
  /** Starts a program that must survive the daemon in a systemd unit with this name. */
  readonly via?: ((name: string) => Via) | undefined
}

/** The host for a daemon with this state directory and control socket. */
export const hostOf = (of: {
  readonly store: string
  readonly environment: Environment
  readonly state: string
  readonly socket: string
}) =>
  ({
    store: of.store,
    environment: of.environment,
    sessions: path.join(of.state, "sessions"),
    logins: path.join(of.state, "logins"),
    homes: path.join(of.state, "homes"),
    gateway: path.join(of.state, "gateway"),
    sockets: path.join(of.state, "sockets"),
    runs: path.join(of.state, "runs"),
    hidden: [of.state, path.dirname(of.socket)]
  }) satisfies Host
