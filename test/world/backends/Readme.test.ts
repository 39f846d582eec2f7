import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as ReadmeExample from "../../support/ReadmeExample.ts"
import { events } from "./example.ts"

describe("the README of backends", () => {
  it("opens with the example that is run here", () => {
    assert.strictEqual(ReadmeExample.shown("backends"), ReadmeExample.run("backends"))
  })

  it.live("says what the example answers", () =>
    Effect.gen(function* () {
      const answer = JSON.stringify(yield* events).replaceAll('","', '", "')
      assert.include(ReadmeExample.readme("backends"), `\`events\` answers \`${answer}\``)
    })
  )
})
