/** How things get their names. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { TestClock } from "effect/testing"
import { NAME } from "../../../src/config/Fields.ts"
import * as Ids from "../../../src/domain/Ids.ts"
import * as ProjectName from "../../../src/config/ProjectName.ts"

describe("Ids", () => {
  it("a conversation is named after its folder and the whole path", () => {
    assert.strictEqual(ProjectName.conversationId("/home/ada/My Project/agentd.jsonc"), "my-project-4d978761")
    // as in logs of old
    assert.match(ProjectName.conversationId("/home/ada/Büro/agentd.jsonc"), /^b-ro-[0-9a-f]{8}$/)
    assert.notStrictEqual(
      ProjectName.conversationId("/a/demo/agentd.jsonc"),
      ProjectName.conversationId("/b/demo/agentd.jsonc")
    )
  })

  it("a folder's name stays readable", () => {
    const named = ["Büro", "bu\u0308ro", "Straße", "Café", "Łódź", "Øl & Æbler", "日本"].map(ProjectName.slug)
    assert.deepStrictEqual(named, ["buero", "buero", "strasse", "cafe", "lodz", "ol-aebler", "project"])
    assert.strictEqual(ProjectName.projectName("/home/ada/Büro/agentd.jsonc"), "buero")
  })

  it("a name that is taken is told from the other by the folder above, else by a number", () => {
    const free = (...taken: ReadonlyArray<string>) =>
      ProjectName.distinguished("/home/ada/shop/agentd.jsonc", "shop", (name) => taken.includes(name))
    assert.strictEqual(free("shop"), "ada-shop")
    assert.strictEqual(free("shop", "ada-shop"), "shop-2")
    assert.strictEqual(free("shop", "ada-shop", "shop-2"), "shop-3")
    assert.strictEqual(
      ProjectName.distinguished("/shop/agentd.jsonc", "shop", (name) => name === "shop"),
      "shop-2"
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
