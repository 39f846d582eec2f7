/** docs/reference/runes.md: it names every field that the log has, for the schemas do. */
import { assert, describe, it } from "@effect/vitest"
import { current } from "../../../scripts/docs/main.ts"
import { kinds } from "../../../src/app/EventKinds.ts"
import { agent } from "../machines/seeds/agent.ts"
import { autonomy } from "../machines/seeds/autonomy.ts"
import { conversation } from "../machines/seeds/conversation.ts"
import { tool } from "../machines/seeds/tool.ts"
import { turn } from "../machines/seeds/turn.ts"
import { fieldsOf } from "../../support/KindFields.ts"
import { names, open } from "../../support/Recording.ts"

/** The fields of each kind, as the page has them. */
const page = new Map(
  current("docs/reference/runes.md")
    .split("\n")
    .flatMap((line) => {
      const [, kind, fields] = /^\| `([a-z]+\.[a-z_]+)` \| ([^|]*) \|/.exec(line) ?? []
      return kind === undefined ? [] : [[kind, [...fields!.matchAll(/`(\w+)\??`/g)].map(([, name]) => name!)] as const]
    })
)

/** Says where the one who sent the message had heard its source; any rune may have it. */
const ANYWHERE = "heard"

const missing = (kind: string, fields: ReadonlyArray<string>) =>
  fields
    .filter((field) => field !== ANYWHERE && page.get(kind)?.includes(field) !== true)
    .map((field) => `${kind} ${field}`)

describe("the page of kinds of runes", () => {
  it("has each kind with the fields of its schema, and no other", () => {
    assert.sameMembers([...page.keys()], [...kinds.names])
    for (const [kind, fields] of page) assert.sameMembers([...fields], [...fieldsOf(kind)], kind)
  })

  it("has the payloads of the sources' tables of rune kinds", () => {
    const payloads = [turn, tool, conversation, agent, autonomy].flatMap((seed) => Object.entries(seed.payloads ?? {}))
    assert.isAbove(payloads.length, 30)
    assert.deepStrictEqual(
      payloads.flatMap(([kind, fields]) => missing(kind, fields)),
      []
    )
  })

  it("has what recorded logs have", () => {
    const found = new Set<string>()
    for (const name of names()) {
      for (const { kind, payload } of open(name).runes) {
        const fields = Object.keys(JSON.parse(payload) as object)
        for (const field of missing(kind, fields)) found.add(field)
      }
    }
    assert.deepStrictEqual([...found], [])
  })

  it("says how internal runes are shown", () => {
    const text = current("docs/reference/runes.md")
    for (const word of ["`agentd log --internal`", "`internal: true`", "`heard`"]) assert.include(text, word)
  })
})
