/** Route: the type of an HTTP route: its path, the right that it requires, and its handler. */
import type { Effect } from "effect"
import type { HttpServerResponse } from "effect/http"
import type { Grant } from "../../access/Access.ts"
import type { Headers, Needs } from "./Authorization.ts"
import type { Refusal } from "./Refusal.ts"

export interface Call {
  readonly headers: Headers
  /** The grant for the request's token; undefined if there is no token, or the token was not granted. */
  readonly grant: Grant | undefined
  readonly query: URLSearchParams
  /** The part of the path that stands for `:id`; see `path`. */
  readonly id: string
  readonly body: Effect.Effect<unknown, Refusal>
}

export interface Route {
  readonly method: "GET" | "POST" | "DELETE"
  /** Path pattern of the route, in which at most one segment is `:id`. */
  readonly path: string
  readonly needs: Needs | ((id: string) => Needs)
  /** True for hooks: a body that is too long is truncated. In other routes it is refused. */
  readonly cuts?: true
  readonly handle: (call: Call) => Effect.Effect<HttpServerResponse.HttpServerResponse, Refusal>
}
