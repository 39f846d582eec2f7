/**
 * Ntfy: sends a push notification through an ntfy server. The message's id is its sequence id: a message that is sent
 * again replaces the first one on the phone, and a message that was answered elsewhere is deleted there (ntfy 2.16 and
 * later).
 */
import { Effect } from "effect"
import type { AlertChannel, Message } from "../AlertChannel.ts"
import { setup } from "../SendError.ts"
import type { ChannelConfig, ChannelOf } from "../../config/NotifyConfig.ts"
import * as TextLimit from "./TextLimit.ts"
import { hostOf, type HttpPost } from "./HttpPost.ts"
import type { ChannelSecrets } from "./ChannelSecrets.ts"

/** Maximum size of a text message, in bytes. The server turns a longer message into a file, or refuses it. */
const MAX_MESSAGE = 4_096
const MAX_COMMAND = 1_000

const inBytes = { escape: TextLimit.asItIs, size: TextLimit.bytes }

export const textOf = ({ body, command }: Pick<Message, "body" | "command">): string => {
  const last = `\n\n${TextLimit.fit(command, MAX_COMMAND, inBytes)}`
  return `${TextLimit.fit(body, MAX_MESSAGE - TextLimit.bytes(last), inBytes)}${last}`
}

/** Minimum length, in characters, of a topic that is registered as a secret. */
const MIN_SECRET = 8

const PRIORITY = { now: 4, soon: 3, digest: 2 } as const

/** Splits a topic's address into the server's root and the topic; undefined if it names no topic. */
const topicOf = (url: string) => {
  const [, root, topic] = /^(.*)\/([-_A-Za-z0-9]{1,64})\/?$/u.exec(url) ?? []
  return root === undefined || topic === undefined || /^https?:\/*$/u.test(root) ? undefined : { root, topic }
}

export const make = (post: HttpPost, { hide, reveal, urlOf }: ChannelSecrets): AlertChannel => {
  const partsOf = Effect.fnUntraced(function* (config: ChannelConfig) {
    const { click, token, url } = config as ChannelOf<"ntfy">
    const address = yield* urlOf(url)
    const at = topicOf(address)
    if (at === undefined) {
      return yield* setup("the address contains no topic", "Use the topic's own address: https://ntfy.sh/TOPIC.")
    }
    // a short topic can be a common word, which would then be redacted everywhere
    if (typeof url !== "string" && at.topic.length >= MIN_SECRET) yield* hide(at.topic)
    const headers: { readonly [name: string]: string } =
      token === undefined ? {} : { authorization: `Bearer ${yield* reveal(token)}` }
    return { ...at, address, headers, click }
  })
  return {
    name: "ntfy",
    send: Effect.fnUntraced(function* (config, message) {
      const { address, click, headers, root, topic } = yield* partsOf(config)
      const body = JSON.stringify({
        topic,
        title: message.title,
        message: textOf(message),
        priority: PRIORITY[message.urgency],
        sequence_id: message.id,
        ...(click === undefined ? {} : { click })
      })
      const { status } = yield* post({ url: `${root}/`, address, headers, body, type: "application/json" })
      return { response: `${hostOf(root)} answered ${status}`, handle: message.id }
    }),
    withdraw: Effect.fnUntraced(function* (config, { handle }) {
      const { headers, root, topic } = yield* partsOf(config)
      const { status } = yield* post({
        method: "DELETE",
        url: `${root}/${topic}/${handle}`,
        headers,
        body: "",
        type: ""
      })
      return { response: `${hostOf(root)} answered ${status}` }
    }),
    check: (config) =>
      Effect.map(partsOf(config), ({ headers, root }) =>
        "authorization" in headers ? `pushes through ${hostOf(root)}, with a token` : `pushes through ${hostOf(root)}`
      )
  }
}
