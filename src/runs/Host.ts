/**
 * Host: the daemon, as far as a backend knows it: its environment, its folders, and what no agent
 * may see of them.
 */
import * as path from "node:path"
import type { Via } from "./gateway/GatewayClient.ts"
import type { Environment } from "./process/ChildProcess.ts"

export type Argv = readonly [string, ...ReadonlyArray<string>]

/** A backend's knowledge of the daemon it runs in. */
export interface Host {
  /** The store's id: marks its runs' processes. */
  readonly store: string
  /** The daemon's own environment. */
  readonly environment: Environment
  /** The folder for conversations of agentd's own models; without it they end with their run. */
  readonly sessions?: string | undefined
  /** Paths that no tool of agentd's own may see: the state folder, the folder of the socket. */
  readonly hidden?: ReadonlyArray<string> | undefined
  /** The folder of what logins at remote MCP servers gave; without it there are none. */
  readonly logins?: string | undefined
  /** The folder of the homes that confined agents have; without it they end with their run. */
  readonly homes?: string | undefined
  /** The folder of the runs' own files; without it they are in the folder for temporary ones. */
  readonly runs?: string | undefined
  readonly sockets?: string | undefined
  readonly gateway?: string | undefined
  /** Puts what must outlive the daemon into a unit of its own, named by this. */
  readonly via?: ((name: string) => Via) | undefined
}

/** The host that a daemon with this state folder and this control socket is. */
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
