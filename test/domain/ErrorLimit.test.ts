/** Counts in sentences: one is one. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { counted, putRight } from "../../src/domain/ErrorLimit.ts"
import * as Stage from "../support/Stage.ts"

describe("a count", () => {
  it("of one has no plural, and neither have the words that a log of before holds", () => {
    assert.deepStrictEqual(
      [0, 1, 2].map((n) => counted(n, "error")),
      ["0 errors", "1 error", "2 errors"]
    )
    assert.strictEqual(putRight("1 errors in a row; the last: 1 errors"), "1 error in a row; the last: 1 errors")
    for (const other of ["11 errors in a row", "1 error in all", "a: 1 errors", ""])
      assert.strictEqual(putRight(other), other)
  })

  it.live("of an agent that one error stops is said right on every screen, and in its mail's words", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const backend = { type: "command", shell: "exit 3", readyAfter: "10ms" }
      const agents = { ann: { backend, maxConsecutiveErrors: 1, minRunInterval: "0ms" } }
      const project = stage.home({ agents, conversation: { maxFatalStops: 1 } })
      yield* stage.up
      yield* project.register
      yield* project.send("ann", "go")
      yield* project.row("ann", "is stopped", ({ state }) => state === "Stopped")
      const [failed] = yield* project.of("ann", 1, "agent.failed")
      assert.include(JSON.stringify(failed!.payload), "1 error in a row")
      const shown = [
        yield* project.cli("ps"),
        yield* project.cli("why", "ann"),
        yield* project.cli("waiting"),
        yield* project.cli("conversation", "show")
      ].map(({ stdout }) => stdout)
      for (const text of shown) assert.notMatch(text, /\b1 (errors|agents|turns|runs)\b/)
      assert.include(shown[1], "1 error in a row")
    }).pipe(Effect.scoped)
  )
})
