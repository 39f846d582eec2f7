import { describe, expect, it } from "vitest"
import { setImmediate as turn } from "node:timers/promises"
import { collector } from "../../src/event-log/HeapRest.ts"

describe("HeapRest", () => {
  for (const keepsCode of [true, false]) {
    it(`lets go of what nothing holds, ${keepsCode ? "and keeps code" : "code too"}`, async () => {
      const held = { text: "held" }
      const kept = new WeakRef(held)
      const lost = new WeakRef({ text: "lost" })
      await turn()
      collector()(keepsCode)
      expect(lost.deref()).toBeUndefined()
      expect(kept.deref()).toBe(held)
    })
  }
})
