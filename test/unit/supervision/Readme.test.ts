import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as ReadmeExample from "../../support/ReadmeExample.ts"
import { steps } from "../../world/supervision/example.ts"

describe("the README of supervision", () => {
  it("opens with the example that is run here", () => {
    assert.strictEqual(ReadmeExample.shown("supervision"), ReadmeExample.run("supervision"))
  })

  it.live("says what the example answers", () =>
    Effect.gen(function* () {
      const answer = JSON.stringify(yield* steps).replaceAll(",", ", ")
      assert.include(ReadmeExample.readme("supervision"), `\`steps\` answers \`${answer}\``)
    })
  )
})
