/** How things get their names. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { TestClock } from "effect/testing"
import { NAME } from "../../src/config/Fields.ts"
import * as Ids from "../../src/domain/Ids.ts"
import * as ProjectName from "../../src/config/ProjectName.ts"

describe("Ids", () => {
  it("a conversation is named after its folder and the whole path", () => {
    assert.strictEqual(ProjectName.conversationId("/home/ada/My Project/agentd.jsonc"), "my-project-4d978761")
    assert.notStrictEqual(
      ProjectName.conversationId("/a/demo/agentd.jsonc"),
      ProjectName.conversationId("/b/demo/agentd.jsonc")
    )
  })

  it.prop("any folder gives a name that the config itself would take", [Schema.String], ([folder]) => {
    assert.match(ProjectName.slug(folder), NAME)
    assert.match(ProjectName.slug(ProjectName.slug(folder)), NAME)
  })

  it("a folder without a usable letter is a project all the same", () => {
    assert.deepStrictEqual(["", "...", "日本"].map(ProjectName.slug), ["project", "project", "project"])
  })

  it.effect("ids of one millisecond differ, and later ones sort later", () =>
    Effect.gen(function* () {
      const first = yield* Effect.replicateEffect(Ids.runId, 1000)
      assert.strictEqual(new Set(first).size, 1000)
      yield* TestClock.adjust("1 milli")
      const later = yield* Ids.runId
      assert.isTrue(first.every((id) => id < later))
      yield* TestClock.adjust("30 days")
      assert.isTrue(later < (yield* Ids.messageId))
      assert.match(later, /^[0-9a-z]{26}$/)
    })
  )
})
