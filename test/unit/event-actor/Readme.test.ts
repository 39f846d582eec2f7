/** The README's example, as it stands there. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import * as ReadmeExample from "../../support/ReadmeExample.ts"
import { shop } from "../../world/event-actor/example.ts"

describe("the README of event-actor", () => {
  it("opens with the example that is run here", () => {
    assert.strictEqual(ReadmeExample.shown("event-actor"), ReadmeExample.run("event-actor"))
  })

  it.live("says what the example answers and logs", () => {
    const said: Array<unknown> = []
    const logger = Logger.make<unknown, void>(({ message }) => void said.push(message))
    return Effect.gen(function* () {
      assert.deepStrictEqual(yield* shop, {
        sales: 1,
        money: 350,
        refused: "Refused",
        runes: ["till.sold", "drawer.filled"]
      })
      assert.include(JSON.stringify(said), "receipt 1: 350")
      assert.include(ReadmeExample.readme("event-actor"), "`shop` answers one sale, 350 in the drawer, a `Refused` and")
    }).pipe(Effect.provide(Logger.layer([logger])))
  })
})
