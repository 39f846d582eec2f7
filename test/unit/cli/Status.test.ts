/** Tests of the words of `agentd status` for a start that is still going on. */
import { assert, describe, it } from "@effect/vitest"
import { reading } from "../../../src/cli/daemon/Status.ts"

const said = (of: Parameters<typeof reading>[0]["reading"]) => reading(of === undefined ? {} : { reading: of }, false)

describe("what of the log is still being read", () => {
  it("is said with what is not ready yet", () =>
    assert.deepStrictEqual(said({ streams: 3, read: 1, runes: 500, unreadable: [], waiting: ["agents", "mail"] }), [
      "1 of 3 streams read; not ready yet: agents, mail"
    ]))

  it("is not spoken of when all is read, and by a daemon that does not say", () => {
    assert.deepStrictEqual(said({ streams: 3, read: 3, runes: 900, unreadable: [], waiting: [] }), [])
    assert.deepStrictEqual(said(undefined), [])
  })

  it("what cannot be read stays named", () => {
    const unreadable = [{ stream: "shop-1a2b3c4d", message: "The payload of rune 4 is damaged." }]
    const [line, ...more] = said({ streams: 3, read: 3, runes: 900, unreadable, waiting: [] })
    assert.match(line!, /^shop-1a2b3c4d cannot be read, so it is skipped: The payload of rune 4/)
    assert.deepStrictEqual(more, [])
  })
})
