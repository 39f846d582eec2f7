/** Headers of providers that tell of an account's limits: as they are seen on real answers, and as nobody sends them. */
import { assert, describe, it } from "@effect/vitest"
import { MAX_WINDOWS, renewsAt, windowsIn } from "../../../src/runs/gateway/LimitHeaders.ts"

const NOW = Date.parse("2026-11-24T19:00:00Z")
const SECONDS = NOW / 1000

describe("limit headers", () => {
  it("rates of Anthropic's API: limit, rest and when they begin anew", () => {
    const { rejected, windows } = windowsIn(
      {
        "anthropic-ratelimit-input-tokens-limit": "80000",
        "anthropic-ratelimit-input-tokens-remaining": "8000",
        "anthropic-ratelimit-input-tokens-reset": "2026-11-24T19:00:41Z",
        "anthropic-ratelimit-requests-limit": "1000",
        "anthropic-ratelimit-requests-remaining": "999",
        "anthropic-ratelimit-requests-reset": "2026-11-24T19:00:01Z",
        "request-id": "req_1"
      },
      NOW
    )
    assert.isUndefined(rejected)
    assert.deepStrictEqual(
      windows.map(({ name, used, ...rest }) => ({ name, used: Math.round(used! * 1000), ...rest })),
      [
        { name: "input-tokens", used: 900, limit: 80_000, remaining: 8_000, resetsAt: NOW + 41_000 },
        { name: "requests", used: 1, limit: 1_000, remaining: 999, resetsAt: NOW + 1_000 }
      ]
    )
  })

  it("windows of a subscription: each by its name, and the one that refuses", () => {
    const told = windowsIn(
      {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
        "anthropic-ratelimit-unified-reset": String(SECONDS + 7_200),
        "anthropic-ratelimit-unified-5h-status": "rejected",
        "anthropic-ratelimit-unified-5h-utilization": "1.0",
        "anthropic-ratelimit-unified-5h-reset": String(SECONDS + 7_200),
        "anthropic-ratelimit-unified-7d-status": "allowed_warning",
        "anthropic-ratelimit-unified-7d-utilization": "0.81",
        "anthropic-ratelimit-unified-7d-reset": "2026-11-28T00:00:00Z",
        "anthropic-ratelimit-unified-overage-status": "rejected"
      },
      NOW
    )
    assert.deepStrictEqual(told, {
      windows: [
        { name: "five_hour", used: 1, status: "rejected", resetsAt: NOW + 7_200_000 },
        { name: "seven_day", used: 0.81, status: "warning", resetsAt: Date.parse("2026-11-28T00:00:00Z") }
      ],
      rejected: { name: "five_hour", until: NOW + 7_200_000 }
    })
    assert.strictEqual(renewsAt(told), NOW + 7_200_000)
  })

  it("a window that is used up refuses nobody while the account is let on", () => {
    const { rejected } = windowsIn(
      {
        "anthropic-ratelimit-unified-status": "allowed",
        "anthropic-ratelimit-unified-5h-status": "rejected",
        "anthropic-ratelimit-unified-5h-utilization": "1.0"
      },
      NOW
    )
    assert.isUndefined(rejected)
  })

  it("rates as OpenAI has them: the time until they begin anew", () => {
    const told = windowsIn(
      {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "59",
        "x-ratelimit-reset-requests": "12ms",
        "x-ratelimit-limit-tokens": "150000",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "6m0s"
      },
      NOW
    )
    assert.deepStrictEqual(
      told.windows.map(({ name, resetsAt, used }) => [name, used! > 0.9, resetsAt! - NOW]),
      [
        ["requests", false, 12],
        ["tokens", true, 360_000]
      ]
    )
    assert.strictEqual(renewsAt(told), NOW + 360_000, "the one that is used up")
  })

  it("what nobody documents, and what is no number, time or word, says nothing", () => {
    const odd = {
      "x-ratelimit-limit-requests": "many",
      "x-ratelimit-remaining-requests": "1e99",
      "x-ratelimit-limit-tokens": "0",
      "x-ratelimit-remaining-tokens": "0",
      "anthropic-ratelimit-unified-5h-utilization": "NaN",
      "anthropic-ratelimit-unified-7d-status": "purple",
      "x-ratelimit-remaining-cats": "3",
      "anthropic-ratelimit-tokens-limit": "9".repeat(400),
      "anthropic-ratelimit-tokens-remaining": "-4"
    }
    assert.deepStrictEqual(windowsIn(odd, NOW), { windows: [] })
    const bare = {
      "x-ratelimit-limit-requests": "10",
      "x-ratelimit-remaining-requests": "0",
      "x-ratelimit-reset-requests": "60"
    }
    assert.isUndefined(windowsIn(bare, NOW).windows[0]!.resetsAt, "sixty of what?")
    const many = Object.fromEntries(
      Array.from({ length: 500 }, (_, n) => [`anthropic-ratelimit-unified-w${n}-utilization`, "0.5"])
    )
    assert.lengthOf(windowsIn(many, NOW).windows, MAX_WINDOWS)
    const late = {
      "anthropic-ratelimit-unified-5h-utilization": "1",
      "anthropic-ratelimit-unified-5h-reset": "9".repeat(15)
    }
    assert.deepStrictEqual(windowsIn(late, NOW).windows, [
      { name: "five_hour", used: 1, resetsAt: 999_999_999_999_999 }
    ])
  })
})
