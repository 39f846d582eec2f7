/**
 * Channels: the ways of telling a person that agentd has of its own.
 */
import { Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { AlertChannels } from "../alerts/AlertChannel.ts"
import * as Post from "./Post.ts"
import * as Reveal from "./Reveal.ts"
import * as Webhook from "./Webhook.ts"

const all = Effect.gen(function* () {
  const post = yield* Post.make
  const reveal = yield* Reveal.make
  return [Webhook.make(post, reveal)]
})

export const layer = Layer.provide(Layer.effect(AlertChannels, all), FetchHttpClient.layer)
