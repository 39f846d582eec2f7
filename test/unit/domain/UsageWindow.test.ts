/** When a window of an account's use is worth a rune, and when it is near its end. */
import { assert, describe, it } from "@effect/vitest"
import { isNear, isNews, isOver, merged, nearWords, type Noted } from "../../../src/domain/UsageWindow.ts"
import type { UsageWindow } from "../../../src/runs/gateway/LimitHeaders.ts"

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** Plays requests; answers with those that became a rune. */
const written = (requests: ReadonlyArray<readonly [at: number, told: UsageWindow]>): ReadonlyArray<Noted> => {
  let known: Noted | undefined
  const runes: Array<Noted> = []
  for (const [at, told] of requests) {
    if (!isNews(known, told, at)) continue
    known = { ...told, at }
    runes.push(known)
  }
  return runes
}

describe("a window", () => {
  it("of five hours that fills up and begins anew has a rune for each level, whatever is asked meanwhile", () => {
    const requests = Array.from({ length: 3_000 }, (_, n): readonly [number, UsageWindow] => {
      const part = (n % 1_000) / 999
      const resetsAt = 5 * HOUR * (1 + Math.floor(n / 1_000))
      return [n * 18_000, { name: "five_hour", used: part, resetsAt }]
    })
    const runes = written(requests)
    assert.deepStrictEqual(
      runes.map(({ used }) => Math.floor(used! * 20) / 20),
      [0, 1, 2].flatMap(() => [0, 0.5, 0.8, 0.95, 1])
    )
  })

  it("that is a rate, full and empty again each minute, has a handful of runes an hour", () => {
    const requests = Array.from({ length: 24 * 60 * 4 }, (_, n): readonly [number, UsageWindow] => {
      const remaining = [100, 50, 20, 0][n % 4]!
      const at = n * 15_000
      return [at, { name: "requests", used: 1 - remaining / 100, limit: 100, remaining, resetsAt: at + MINUTE }]
    })
    assert.isAtMost(written(requests).length, 24 * 5)
  })

  it("whose status flaps from one request to the next is told twice a minute at most", () => {
    const requests = Array.from({ length: 6_000 }, (_, n): readonly [number, UsageWindow] => [
      n * 10,
      { name: "seven_day", status: n % 2 === 0 ? "allowed" : "rejected", resetsAt: HOUR }
    ])
    assert.isAtMost(written(requests).length, 4)
  })

  it("is over when its time has come, though nobody says so, and then near nothing", () => {
    const window: Noted = { name: "five_hour", used: 0.93, resetsAt: 1_000, at: 0 }
    assert.isTrue(isNear(window, 999))
    assert.isFalse(isNear(window, 1_000))
    assert.isFalse(isNear({ ...window, used: 0.79 }, 0))
    assert.isTrue(isNear({ name: "x", status: "warning", at: 0 }, 0), "by the provider's own word")
    assert.isTrue(
      isOver({ name: "tokens", limit: 3, remaining: 0, used: 1, at: 0 }, 10 * MINUTE),
      "a rate without an end"
    )
    assert.strictEqual(nearWords({ ...window, resetsAt: 0 }), "five_hour 93 % used, until 1970-01-01T00:00:00.000Z")
  })

  it("replaces its like, and the oldest go", () => {
    const one = (name: string, at: number): Noted => ({ name, at })
    const all = merged([one("a", 1), one("b", 1)], [one("a", 2), one("c", 2)], 2)
    assert.deepStrictEqual(all, [one("a", 2), one("c", 2)])
  })
})
