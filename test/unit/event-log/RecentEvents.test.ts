/** RecentEvents: what is kept of the newest runes, and what is let go. */
import { assert, describe, it } from "@effect/vitest"
import type { Unit } from "../../../src/core/event-log/Log.ts"
import { RecentEvents } from "../../../src/core/event-log/RecentEvents.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"

/** Publishes runes with payloads of this size, one by one; answers how many there are in memory at most. */
const most = (recent: RecentEvents, count: number, size: number): number => {
  const { recent: inMemory } = recent as unknown as { readonly recent: ReadonlyArray<Rune> }
  assert.isDefined(inMemory)
  let held = 0
  for (let eventId = 1; eventId <= count; eventId++) {
    const unit = { runes: [{ eventId } as Rune], texts: ["x".repeat(size)] } as unknown as Unit
    recent.publish([unit])
    held = Math.max(held, (recent as unknown as { readonly recent: ReadonlyArray<Rune> }).recent.length)
  }
  return held
}

describe("the newest runes", () => {
  it("are kept up to a count, and those that are not are let go", () => {
    const recent = new RecentEvents(0)
    assert.isAtMost(most(recent, 20_000, 10), Math.ceil((4096 * 4) / 3) + 1)
    assert.deepStrictEqual(
      recent.since(20_000 - 4096)?.map(({ eventId }) => eventId),
      Array.from({ length: 4096 }, (_, n) => 20_000 - 4095 + n)
    )
    assert.isUndefined(recent.since(20_000 - 4097))
  })

  it("are kept up to a size: large ones are not in memory by the thousand", () => {
    const recent = new RecentEvents(0)
    assert.isAtMost(most(recent, 1_000, 512 * 1024), 32 + 17)
    assert.strictEqual(recent.since(1_000 - 32)?.length, 32)
    assert.isUndefined(recent.since(1_000 - 33))
  })
})
