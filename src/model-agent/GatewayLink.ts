/**
 * GatewayLink: the model agent's way to its provider and its remote MCP servers through agentd's gateway, which adds the
 * key and the tokens.
 *
 * Guarantees: a request goes to the gateway's socket, whatever its address is. While the link is open,
 * the gateway keeps the run's route, even if no daemon runs.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Effect, Layer } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import * as http from "node:http"
import { HOLD } from "../runs/gateway/Gateway.ts"

/** Stands in place of the key, which this process does not have. */
export const NO_KEY = "held-by-agentd"
const AGAIN = "1 second"

/** Keeps one request open, and completes when it ends. */
const held = (socketPath: string) =>
  Effect.callback<void>((resume) => {
    const request = http.get({ socketPath, path: HOLD, agent: false }, (answer) => answer.resume())
    request.on("error", () => undefined)
    request.on("close", () => resume(Effect.void))
    return Effect.sync(() => void request.destroy())
  })

/** The same request as plain HTTP, because the gateway speaks TLS with the provider. */
const plain = (request: HttpClientRequest.HttpClientRequest) =>
  HttpClientRequest.setUrl(request, request.url.replace(/^https:/, "http:"))

export const open = Effect.fnUntraced(function* (socketPath: string) {
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(held(socketPath), Effect.sleep(AGAIN))))
  return Layer.effect(HttpClient.HttpClient, Effect.map(HttpClient.HttpClient, HttpClient.mapRequest(plain))).pipe(
    Layer.provide(NodeHttpClient.layerNodeHttpOptions({ socketPath }))
  )
})
