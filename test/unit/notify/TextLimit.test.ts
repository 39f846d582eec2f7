/** A text as it is sent fits its receiver's limit: escaped, and counted as the receiver counts. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { Message } from "../../../src/alerts/AlertChannel.ts"
import * as Chat from "../../../src/alerts/channels/Chat.ts"
import * as TextLimit from "../../../src/alerts/channels/TextLimit.ts"
import * as Ntfy from "../../../src/alerts/channels/Ntfy.ts"
import { MESSAGE } from "../../world/notify/World.ts"

const FENCE = "```"
const ENTITY = /&(?!(?:amp|lt|gt);)/u

const of = (text: string): Message => ({ ...MESSAGE, title: text.slice(0, 60), body: text, command: text })

describe("a text of nothing but", () => {
  for (const [what, character] of Object.entries({
    backticks: "`",
    ampersands: "&",
    brackets: "<",
    asterisks: "*",
    emoji: "🦊",
    "signs of three bytes": "漢",
    "halves of a pair": "\ud800",
    letters: "x"
  })) {
    it(`${what} fits Discord, Slack and ntfy`, () => {
      const message = of(character.repeat(10_000))
      const discord = Chat.discordBody(message).content
      assert.isAtMost(discord.length, 2_000)
      assert.lengthOf(discord.split(FENCE), 5)
      const slack = Chat.slackBody(message).text
      assert.isAtMost(slack.length, 4_000)
      assert.lengthOf(slack.split(FENCE), 5)
      assert.notMatch(slack, ENTITY)
      assert.isAtMost(Buffer.byteLength(Ntfy.textOf(message)), 4_096)
      for (const text of [discord, slack, Ntfy.textOf(message)]) assert.isTrue(text.isWellFormed())
    })
  }

  it("a command that is short is whole, however long the text is", () => {
    const message = { ...of("漢&".repeat(5_000)), command: "agentd approve c9e0488f" }
    for (const text of [Chat.discordBody(message).content, Chat.slackBody(message).text, Ntfy.textOf(message)])
      assert.include(text, message.command)
  })
})

describe("fit", () => {
  it("leaves what fits as it is, up to the last character", () => {
    for (const text of ["", "abc", "漢", "&"])
      assert.strictEqual(
        TextLimit.fit(text, TextLimit.bytes(text), { escape: TextLimit.asItIs, size: TextLimit.bytes }),
        text
      )
  })

  it.prop(
    "is within the limit, and a beginning of the text",
    [
      Schema.Array(Schema.Literals(["a", "`", "漢", "🦊", "&", " "])),
      Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 40 }))
    ],
    ([letters, most]) => {
      const text = letters.join("")
      const escape = (character: string): string => (character === "&" ? "&amp;" : character)
      const cut = TextLimit.fit(text, most, { escape, size: TextLimit.bytes })
      const all = text.replaceAll("&", "&amp;")
      assert.isAtMost(TextLimit.bytes(cut), most)
      assert.isTrue(cut === all || cut === "" || (cut.endsWith("…") && all.startsWith(cut.slice(0, -1))))
    }
  )
})
