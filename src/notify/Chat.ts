/**
 * Chat: a message in Slack or Discord, by a webhook of the room.
 *
 * Guarantees: what others wrote stands in a block of code, which it cannot end; nobody is called by it.
 */
import { Effect } from "effect"
import type { AlertChannel, Message } from "../alerts/AlertChannel.ts"
import type { ChannelConfig, ChannelOf } from "../config/NotifyConfig.ts"
import { hostOf, type Post } from "./Post.ts"
import type { Reveal } from "./Reveal.ts"

/** Discord takes 2,000 characters in all. */
const MAX_BLOCK = 1_600

/** A zero-width space keeps backticks apart: three of them would end the block. */
const block = (text: string): string => {
  const apart = text.replaceAll("`", "`\u200b")
  const cut = apart.length <= MAX_BLOCK ? apart : `${apart.slice(0, MAX_BLOCK - 1).toWellFormed()}…`
  return `\`\`\`\n${cut}\n\`\`\``
}

const entities = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

/** A title in bold is text of others, too. */
const slackTitle = (title: string): string => `*${entities(title).replaceAll(/[*_~`]/gu, "\u200b$&\u200b")}*`
const discordTitle = (title: string): string => `**${title.replaceAll(/[\\*_~`|<>[\]()#@:]/gu, "\\$&")}**`

export const slackBody = ({ body, command, title }: Message) => ({
  text: `${slackTitle(title)}\n${entities(block(body))}\n${entities(block(command))}`,
  unfurl_links: false,
  unfurl_media: false
})

export const discordBody = ({ body, command, title }: Message) => ({
  content: `${discordTitle(title)}\n${block(body)}\n${block(command)}`,
  allowed_mentions: { parse: [] },
  // no preview of an address in it
  flags: 4
})

const channel =
  (name: "slack" | "discord", bodyOf: (message: Message) => object) =>
  (post: Post, { reveal }: Reveal): AlertChannel => {
    const urlOf = (config: ChannelConfig) =>
      Effect.map(reveal((config as ChannelOf<"slack" | "discord">).url), (text) => text.trim())
    return {
      name,
      send: Effect.fnUntraced(function* (config, message) {
        const url = yield* urlOf(config)
        const { status } = yield* post({ url, body: JSON.stringify(bodyOf(message)), type: "application/json" })
        return { response: `${hostOf(url)} answered ${status}` }
      }),
      check: (config) => Effect.map(urlOf(config), (url) => `writes by ${hostOf(url)}`)
    }
  }

export const slack = channel("slack", slackBody)
export const discord = channel("discord", discordBody)
