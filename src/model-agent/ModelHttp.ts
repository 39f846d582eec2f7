/**
 * ModelHttp: the HTTP client for model APIs. It is a `Context.Reference`, so that a simulation can provide its own
 * APIs.
 *
 * Guarantees: the connections belong to one run, and end with the scope in which the layer is
 * built.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Context, type Layer } from "effect"
import type { HttpClient } from "effect/http"

export const ModelHttp = Context.Reference<Layer.Layer<HttpClient.HttpClient>>("agentd/backends/model/ModelHttp", {
  defaultValue: () => NodeHttpClient.layerNodeHttp
})
