/**
 * Host: the daemon, as far as a backend knows it: its environment, its folders, and what no agent
 * may see of them.
 */
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
  /** The folder of the homes that confined agents have; without it they end with their run. */
  readonly homes?: string | undefined
  /** The folder of the gateway to the models. */
  readonly gateway?: string | undefined
}
