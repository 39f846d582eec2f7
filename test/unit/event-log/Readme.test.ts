import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as ReadmeExample from "../../support/ReadmeExample.ts"
import { till } from "../../world/event-log/example.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "agentd-readme-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

describe("the README of event-log", () => {
  it("opens with the example that is run here", () => {
    assert.strictEqual(ReadmeExample.shown("event-log"), ReadmeExample.run("event-log"))
  })

  it.live("says what the example answers, the first time and the second", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "till.sqlite")
      for (const which of ["answers", "then answers"]) {
        const { balance, kinds, problems, refused } = yield* till(file)
        assert.deepStrictEqual([refused, problems], ["INV-NEVER-BELOW-ZERO", 0])
        assert.include(
          ReadmeExample.readme("event-log"),
          `${which} a balance of ${balance} out of ${kinds.length} runes`
        )
      }
    })
  )
})
