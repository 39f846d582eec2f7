/**
 * Chat: sends a message to Slack or Discord, through an incoming webhook.
 *
 * Guarantees: body and command, which can be untrusted text, are in code blocks that they cannot end; the text mentions
 * nobody; an escaped message is never longer than its receiver accepts.
 */
import { Effect } from "effect"
import type { AlertChannel, Message } from "../AlertChannel.ts"
import type { ChannelConfig, ChannelOf } from "../../config/NotifyConfig.ts"
import * as TextLimit from "./TextLimit.ts"
import { hostOf, type HttpPost } from "./HttpPost.ts"
import type { ChannelSecrets } from "./ChannelSecrets.ts"

/** Maximum length of a message, in characters. Discord refuses a longer message; Slack cuts it at any position. */
const MOST = { discord: 2_000, slack: 4_000 } as const

/** Maximum length of the command, in characters; the body gets the rest. */
const MAX_COMMAND = 500

const FENCE = "```"

/** Separates backticks by a zero-width space, because three of them would end the code block. */
const apart = (character: string): string => (character === "`" ? "`\u200b" : character)

const ENTITIES: { readonly [character: string]: string } = { "&": "&amp;", "<": "&lt;", ">": "&gt;" }
const entity = (character: string): string => ENTITIES[character] ?? apart(character)

/** The title in bold. Because it can be untrusted text, its markup is escaped. */
const slackTitle = (title: string): string =>
  `*${title.replaceAll(/[*_~`]/gu, "\u200b$&\u200b").replaceAll(/[&<>]/gu, entity)}*`
const discordTitle = (title: string): string => `**${title.replaceAll(/[\\*_~`|<>[\]()#@:]/gu, "\\$&")}**`

const textOf = (
  title: string,
  { body, command }: Message,
  most: number,
  escape: (character: string) => string
): string => {
  const block = (text: string, most: number): string =>
    `${FENCE}\n${TextLimit.fit(text, most, { escape, size: TextLimit.characters })}\n${FENCE}`
  const last = block(command, MAX_COMMAND)
  const rest = most - title.length - last.length - block("", 0).length - 2
  return `${title}\n${block(body, rest)}\n${last}`
}

export const slackBody = (message: Message) => ({
  text: textOf(slackTitle(message.title.toWellFormed()), message, MOST.slack, entity),
  unfurl_links: false,
  unfurl_media: false
})

export const discordBody = (message: Message) => ({
  content: textOf(discordTitle(message.title.toWellFormed()), message, MOST.discord, apart),
  allowed_mentions: { parse: [] },
  // SUPPRESS_EMBEDS: the message has no previews of links
  flags: 4
})

const channel =
  (name: "slack" | "discord", bodyOf: (message: Message) => object) =>
  (post: HttpPost, { reveal }: ChannelSecrets): AlertChannel => {
    const urlOf = (config: ChannelConfig) =>
      Effect.map(reveal((config as ChannelOf<"slack" | "discord">).url), (text) => text.trim())
    return {
      name,
      send: Effect.fnUntraced(function* (config, message) {
        const url = yield* urlOf(config)
        const { status } = yield* post({ url, body: JSON.stringify(bodyOf(message)), type: "application/json" })
        return { response: `${hostOf(url)} answered ${status}` }
      }),
      check: (config) => Effect.map(urlOf(config), (url) => `sends to ${hostOf(url)}`)
    }
  }

export const slack = channel("slack", slackBody)
export const discord = channel("discord", discordBody)
