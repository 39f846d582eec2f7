/** Channels: the channels that agentd itself provides. */
import { Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { AlertChannels } from "../AlertChannel.ts"
import type { MailConfig } from "../../config/Config.ts"
import * as Chat from "./Chat.ts"
import * as CommandChannel from "./CommandChannel.ts"
import * as Desktop from "./Desktop.ts"
import * as Look from "./Look.ts"
import * as MailChannel from "./MailChannel.ts"
import * as Ntfy from "./Ntfy.ts"
import * as Post from "./Post.ts"
import * as Reveal from "./Reveal.ts"
import * as Webhook from "./Webhook.ts"

export interface Options extends Look.Options {
  /** The user's own mail section, read again for each message. */
  readonly mail: Effect.Effect<MailConfig | undefined>
}

const all = Effect.fnUntraced(function* (options: Options) {
  const post = yield* Post.make
  const reveal = yield* Reveal.make
  const look = yield* Look.make(options)
  return [
    yield* MailChannel.make(options.mail),
    yield* Desktop.make(look),
    Ntfy.make(post, reveal),
    Webhook.make(post, reveal),
    Chat.slack(post, reveal),
    Chat.discord(post, reveal),
    yield* CommandChannel.make
  ]
})

export const layer = (options: Options) =>
  Layer.provide(Layer.effect(AlertChannels, all(options)), FetchHttpClient.layer)
