/**
 * Host: what a backend knows about the daemon: its environment, its folders, and the paths that no agent may see.
 */
import * as path from "node:path"
import type { Via } from "./gateway/GatewayClient.ts"
import type { Environment } from "./process/ChildProcess.ts"

export type Argv = readonly [string, ...ReadonlyArray<string>]

export interface Host {
  /** Id of the store, which marks the processes of the store's runs. */
  readonly store: string
  readonly environment: Environment
  /** Folder for the conversations of agentd's own models. If omitted, a conversation exists only as long as its run. */
  readonly sessions?: string | undefined
  /** Paths that agentd's own tools must not see: the state directory, and the folder of the socket. */
  readonly hidden?: ReadonlyArray<string> | undefined
  /** Folder for login tokens of remote MCP servers. If omitted, no login tokens are stored. */
  readonly logins?: string | undefined
  /** Folder for the home folders of confined agents. If omitted, a home folder exists only as long as its run. */
  readonly homes?: string | undefined
  /** Folder for the files of runs. If omitted, the system's folder for temporary files is used. */
  readonly runs?: string | undefined
  readonly sockets?: string | undefined
  readonly gateway?: string | undefined
  /** The command that starts agentd, also used to start the model agent. */
  readonly command?: Argv | undefined
  /** Starts a program that must survive the daemon, in a systemd unit with the given name. */
  readonly via?: ((name: string) => Via) | undefined
}

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
