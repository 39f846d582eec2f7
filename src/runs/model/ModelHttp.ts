/**
 * ModelHttp: how the APIs of models are reached. A reference: a simulated world has APIs of
 * its own.
 *
 * Guarantees: its connections are a run's own, and end with the scope in which it is built.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Context, type Layer } from "effect"
import type { HttpClient } from "effect/http"

export const ModelHttp = Context.Reference<Layer.Layer<HttpClient.HttpClient>>("agentd/backends/model/ModelHttp", {
  defaultValue: () => NodeHttpClient.layerNodeHttp
})
