/**
 * GatewayControl: the words between the daemon and the gateway, one JSON value a line.
 *
 * They go over a socket in a folder that only this user may open; keys go this way and no other:
 * not in arguments, not in an environment, not in a file. Nothing asks a key back.
 */
import type { Count, Route } from "./Gateway.ts"

export type Order = { readonly id: number; readonly name: string } & (
  | { readonly do: "open"; readonly route: Route }
  /** `settle`: the run is over: what is still read for its count is estimated. */
  | { readonly do: "close" | "count" | "settle" }
  /** The daemon ends in order. */
  | { readonly do: "end" }
)

/** `count`: of a route that is there. `error`: it could not be done. */
export interface Reply {
  readonly id: number
  readonly count?: Count
  readonly error?: string
}

/** Longest line. */
export const MAX_LINE = 64 * 1024
