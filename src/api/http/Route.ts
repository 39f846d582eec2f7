/** Route: what the HTTP server does at one path. */
import type { Effect } from "effect"
import type { HttpServerResponse } from "effect/http"
import type { Grant } from "../../access/Access.ts"
import type { Headers, Needs } from "./Authorization.ts"
import type { Refusal } from "./Refusal.ts"

export interface Call {
  readonly headers: Headers
  /** The grant of the request's token; undefined if there is no token, or it was not granted. */
  readonly grant: Grant | undefined
  readonly query: URLSearchParams
  /** The value of `:id` in the path. */
  readonly id: string
  readonly body: Effect.Effect<unknown, Refusal>
}

export interface Route {
  readonly method: "GET" | "POST" | "DELETE"
  /** Path pattern of the route. At most one segment is `:id`. */
  readonly path: string
  readonly needs: Needs | ((id: string) => Needs)
  /** True for hooks: a body that is too long is truncated. Other routes refuse a body that is too long. */
  readonly cuts?: true
  readonly handle: (call: Call) => Effect.Effect<HttpServerResponse.HttpServerResponse, Refusal>
}
