/** The page of errors: what the program really says when something is wrong is found there. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { all } from "../../../scripts/docs/Errors.ts"
import { inProcess } from "../cli/Child.ts"
import * as Scratch from "../../support/Scratch.ts"
import * as Pages from "./Pages.ts"
import { long } from "../../support/Long.ts"

const escaped = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")

const told = all().map(({ message }) => ({
  message,
  pattern: new RegExp(`^${message.trim().split("…").map(escaped).join("[^]*?")}$`)
}))

/** The texts of the page that say this; one that is nothing but what is filled in says anything. */
const found = (text: string) =>
  told.filter(({ message, pattern }) => message.replaceAll(/[^\p{L}]/gu, "").length > 8 && pattern.test(text))

const WRONG = [
  "ps",
  "send nobody hello",
  "goal approve g1",
  "send --urgent --steer builder x",
  "channel show review",
  "backup /"
]

describe("docs/reference/errors.md", () => {
  for (const line of WRONG) {
    it.live(`has what "agentd ${line}" says without a daemon`, () =>
      Effect.gen(function* () {
        const state = yield* Scratch.folder("agentd-errors-")
        const { code, err } = yield* inProcess(["--state", state, ...line.split(" ")])
        assert.notStrictEqual(code, 0)
        const message = /^agentd: (.*)$/m.exec(err)?.[1] ?? ""
        assert.isNotEmpty(found(message), `${message} is not there`)
      }).pipe(Effect.scoped)
    )
  }

  long.it("has what docs/troubleshooting.md quotes", () => {
    const quoted = [...Pages.proseOf("docs/troubleshooting.md").matchAll(/^\*\*"([^"]+)"\*\*/gm)].map(
      ([, text]) => text!
    )
    assert.isAbove(quoted.length, 1)
    for (const text of quoted)
      assert.isTrue(
        all().some(({ message }) => message.startsWith(text.replace(/….*$/, ""))),
        text
      )
  })

  it("does not have what nobody says", () => assert.isEmpty(found("The moon is not to be had today.")))
})
