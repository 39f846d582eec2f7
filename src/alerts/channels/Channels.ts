/** Channels: the channels that agentd itself provides. */
import { Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { AlertChannels } from "../AlertChannel.ts"
import type { MailConfig } from "../../config/Config.ts"
import * as Chat from "./Chat.ts"
import * as CommandChannel from "./CommandChannel.ts"
import * as Desktop from "./Desktop.ts"
import * as OpenBrowser from "./OpenBrowser.ts"
import * as MailChannel from "./MailChannel.ts"
import * as Ntfy from "./Ntfy.ts"
import * as HttpPost from "./HttpPost.ts"
import * as ChannelSecrets from "./ChannelSecrets.ts"
import * as Webhook from "./Webhook.ts"

export interface Options extends OpenBrowser.Options {
  /** The user's own mail section, which is read again for each message. */
  readonly mail: Effect.Effect<MailConfig | undefined>
}

const all = Effect.fnUntraced(function* (options: Options) {
  const post = yield* HttpPost.make
  const reveal = yield* ChannelSecrets.make
  const look = yield* OpenBrowser.make(options)
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
