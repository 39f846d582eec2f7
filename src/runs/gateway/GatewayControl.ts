/**
 * GatewayControl: the messages between the daemon and the gateway, one JSON value per line.
 *
 * They go over a socket in a folder that only this user can open. Keys are sent only this way: not in arguments, not in
 * the environment, not in a file. No message returns a key. The tokens of logins at MCP servers are sent to the daemon,
 * so that it can redact them.
 */
import type { Count, Route } from "./Gateway.ts"

export type Order = { readonly id: number; readonly name: string } & (
  | { readonly do: "open"; readonly route: Route }
  /**
   * Orders about a route. `settle`: the run is over, so the tokens of answers that are still being read are estimated.
   */
  | { readonly do: "close" | "count" | "settle" }
  /** Tells the gateway that the daemon ends in an orderly way. */
  | { readonly do: "end" }
)

/** Answer to an order. `count`: what the route has counted; set if the route exists. `error`: why the order failed. */
export interface Reply {
  readonly id: number
  readonly count?: Count
  readonly error?: string
}

/** Tokens that the gateway uses from now on. Answers no order. */
export interface Learned {
  readonly learned: ReadonlyArray<string>
}

/** Maximum length of a line, characters. */
export const MAX_LINE = 64 * 1024
