/**
 * Webhook: posts the notice as JSON, signed if a key is configured. `agentd-signature` is `sha256=` and the HMAC of
 * `TIMESTAMP.BODY`, `agentd-timestamp` is in seconds since the epoch, and `agentd-id` stays the same at each attempt.
 */
import { createHmac } from "node:crypto"
import { Clock, Effect } from "effect"
import type { AlertChannel, Message } from "../AlertChannel.ts"
import type { ChannelConfig, ChannelOf } from "../../config/NotifyConfig.ts"
import { hostOf, type HttpPost } from "./HttpPost.ts"
import type { ChannelSecrets } from "./ChannelSecrets.ts"

/** The request body, which a program of the command channel also gets on its stdin. */
export const bodyOf = (message: Message): string => JSON.stringify({ version: 1, ...message })

export const signatureOf = (secret: string, timestamp: number, body: string): string =>
  `sha256=${createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex")}`

export const make = (post: HttpPost, { reveal, urlOf }: ChannelSecrets): AlertChannel => {
  const partsOf = Effect.fnUntraced(function* (config: ChannelConfig) {
    const { secret, url } = config as ChannelOf<"webhook">
    return { url: yield* urlOf(url), secret: secret === undefined ? undefined : yield* reveal(secret) }
  })
  return {
    name: "webhook",
    send: Effect.fnUntraced(function* (config, message) {
      const { secret, url } = yield* partsOf(config)
      const timestamp = Math.floor((yield* Clock.currentTimeMillis) / 1000)
      const body = bodyOf(message)
      const headers = {
        "agentd-id": message.id,
        "agentd-timestamp": String(timestamp),
        ...(secret === undefined ? {} : { "agentd-signature": signatureOf(secret, timestamp, body) })
      }
      const { status } = yield* post({ url, headers, body, type: "application/json" })
      return { response: `${hostOf(url)} answered ${status}` }
    }),
    check: (config) =>
      Effect.map(
        partsOf(config),
        ({ secret, url }) => `posts to ${hostOf(url)}, ${secret === undefined ? "not signed" : "signed"}`
      )
  }
}
