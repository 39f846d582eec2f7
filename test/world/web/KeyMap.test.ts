/** When a window is in a person's hand, so that it decides; and that the page acts by one way alone. */
import { assert, describe, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { handAfter } from "../../../src/web/KeyMap.ts"

const web = join(import.meta.dirname, "../../../src/web")

describe("a window", () => {
  it("is in hand after a click of the person's own, and no more once it was out of sight or focus", () => {
    const event = (type: string, isTrusted = true) => ({ type, isTrusted })
    assert.isTrue(handAfter(false, event("pointerdown")))
    assert.isFalse(handAfter(false, event("pointerdown", false)), "a click that a script makes")
    assert.isTrue(handAfter(true, event("pointerdown", false)))
    for (const type of ["blur", "pagehide", "pageshow", "visibilitychange"])
      assert.isFalse(handAfter(true, event(type)), type)
  })

  it("asks the daemon to do something by Acts alone, which looks whether it is in hand", () => {
    const askers = readdirSync(web, { recursive: true, encoding: "utf8" })
      .filter((name) => /\.tsx?$/.test(name) && /Api\.verb\b/.test(readFileSync(join(web, name), "utf8")))
      .toSorted()
    // the others read
    assert.deepStrictEqual(askers, ["PageActions.ts", "VerbQuery.ts", "pages/Timeline.tsx"])
    assert.match(
      readFileSync(join(web, "PageActions.ts"), "utf8"),
      /if \(!isReady\(\)\) return undefined\n[^}]*Api\.verb/
    )
  })
})
