/** The example of core's README, as it stands there. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { hall } from "../../world/core/example.ts"
import * as ReadmeExample from "../../support/ReadmeExample.ts"

describe("the README of core", () => {
  it("opens with the example that is run here", () => {
    assert.strictEqual(ReadmeExample.shownIn("core"), ReadmeExample.run("core"))
  })

  it.live("says what the example answers", () =>
    Effect.map(hall, (answer) => {
      assert.deepStrictEqual(answer, { steps: ["Started", "Exited", "Restarting", "Started"], presses: 2 })
    })
  )
})
