/** Spending of a run, by model: said costs, estimates, and numbers that cannot be. */
import { assert, describe, it } from "@effect/vitest"
import * as Budget from "../../../src/agents/machines/Budget.ts"
import { UsageMeter } from "../../../src/agents/run/UsageMeter.ts"
import type { RunEvent } from "../../../src/runs/Backend.ts"
import * as Prices from "../../../src/domain/Prices.ts"

type Usage = Extract<RunEvent, { readonly _tag: "Usage" }>

const price = { input: 1, output: 10, cacheRead: 0.1, cacheWrite: 2 }
const usage = (more: Partial<Usage>): Usage => ({ _tag: "Usage", inputTokens: 0, outputTokens: 0, ...more })
const meter = () => {
  const one = new UsageMeter((model) => (model === "m" ? price : undefined))
  one.begin()
  return one
}
const usd = (one: UsageMeter) => Budget.ofModels(one.takeUntold()).usd ?? 0

describe("the meter of a run", () => {
  it("estimates the cost of each request of a model that has a price, each kind of token by itself", () => {
    const one = meter()
    one.take(
      usage({ model: "m", inputTokens: 1_000_000, outputTokens: 100_000, cacheRead: 500_000, cacheWrite: 200_000 })
    )
    assert.deepStrictEqual(one.takeUntold(), [
      {
        model: "m",
        input: 1_000_000,
        output: 100_000,
        cacheRead: 500_000,
        cacheWrite: 200_000,
        usd: 0.3 + 0.05 + 0.4 + 1
      }
    ])
  })

  it("what no turn can have spent in its time is not believed, and hides nothing that comes after it", () => {
    const one = meter()
    one.opens(0)
    one.take(usage({ model: "m", inputTokens: 9e15 }), 1_000)
    one.take(usage({ usd: 3_000_000 }), 1_000)
    one.take(usage({ model: "m", outputTokens: 2_000_000 }), 1_000)
    assert.deepStrictEqual(one.takeUntold(), [])
    const { tokens, usd: spent } = one.takeUnlikely()!
    assert.isAbove(tokens, 1e9)
    assert.isAtLeast(spent, 1_000_000)
    assert.isUndefined(one.takeUnlikely())
    assert.deepStrictEqual(one.takeTurn(), { inputTokens: 0, outputTokens: 0, usd: 0 })
    one.take(usage({ model: "m", inputTokens: 1_000_000 }), 2_000)
    assert.strictEqual(usd(one), 1)
    // many small ones are as much as a large one
    for (let n = 0; n < 1_000; n++) one.take(usage({ model: "m", inputTokens: 1_000_000 }), 3_000)
    assert.isAtMost(usd(one), 5)
    assert.isAbove(one.takeUnlikely()!.tokens, 9e8)
    // a long turn may tell of all at its end
    one.opens(0)
    one.take(usage({ model: "m", inputTokens: 50_000_000, outputTokens: 1_000_000 }), 3_600_000)
    assert.isAbove(usd(one), 50)
    // what others have counted is believed
    one.take(usage({ model: "m", inputTokens: 9_000_000_000 }))
    assert.isAbove(usd(one), 1_000)
    assert.isUndefined(one.takeUnlikely())
  })

  it("a cost that is said takes the place of the estimate", () => {
    const one = meter()
    one.take(usage({ model: "m", inputTokens: 1_000_000 }))
    assert.strictEqual(usd(one), 1)
    one.take(usage({ model: "m", usd: 1.5 }))
    assert.strictEqual(usd(one), 0.5)
    one.take(usage({ model: "m", inputTokens: 2_000_000 }))
    assert.strictEqual(usd(one), 2)
    one.take(usage({ model: "m", usd: 1 }))
    assert.strictEqual(usd(one), 0, "what was estimated too high is not given back")
    one.take(usage({ model: "m", inputTokens: 1_000_000 }))
    assert.strictEqual(usd(one), 0, "but it is spent first")
    one.take(usage({ model: "m", inputTokens: 1_000_000 }))
    assert.strictEqual(usd(one), 1)
  })

  it("tokens whose cost is said apart are not estimated", () => {
    const one = meter()
    one.take(usage({ usd: 0.2 }))
    one.take(usage({ model: "m", inputTokens: 1_000_000, usd: 0 }))
    assert.closeTo(usd(one), 0.2, 1e-12)
  })

  it("a model without a price has tokens and no cost", () => {
    const one = meter()
    one.take(usage({ model: "another", inputTokens: 1_000_000, outputTokens: 5 }))
    assert.deepStrictEqual(Budget.ofModels(one.takeUntold()), {
      tokens: 1_000_005,
      usd: 0,
      models: [{ model: "another", input: 1_000_000, output: 5, cacheRead: 0, cacheWrite: 0, usd: 0 }]
    })
  })

  it("takes no number that cannot be for what it is", () => {
    const one = meter()
    for (const bad of [Number.NaN, -1, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]) {
      one.take(usage({ model: "m", inputTokens: bad, outputTokens: bad, cacheRead: bad, cacheWrite: bad, usd: bad }))
    }
    assert.deepStrictEqual(one.takeUntold(), [])
    one.take(usage({ inputTokens: 1e300, outputTokens: 1e300, usd: 1e300 }))
    const { tokens, usd: cost } = Budget.ofModels(one.takeUntold())
    assert.deepStrictEqual([tokens, cost], [2e10, 1e6])
    one.take(usage({ inputTokens: 10, cacheRead: 100, cacheWrite: 100 }))
    assert.deepInclude(one.takeUntold()[0], { input: 10, cacheRead: 10, cacheWrite: 0 })
  })

  it("names a bounded number of models, fit for a log", () => {
    const one = meter()
    for (let index = 0; index < 100; index++)
      one.take(usage({ model: `m\u0000\u001b[31m${index}${"x".repeat(500)}`, inputTokens: 1 }))
    const models = one.takeUntold()
    assert.isAtMost(models.length, 9)
    assert.strictEqual(
      models.reduce((sum, { input }) => sum + input, 0),
      100
    )
    for (const { model } of models) assert.match(model, /^[\x20-\x7e]{1,100}$/)
  })
})

describe("prices", () => {
  it("every line of the table has its page and its day", () => {
    for (const [model, { page, read, ...price }] of Object.entries(Prices.TABLE)) {
      assert.match(page, /^https:\/\//, model)
      assert.match(read, /^\d{4}-\d\d-\d\d$/, model)
      for (const amount of Object.values(price)) assert.isAbove(amount ?? 0, 0, model)
    }
  })

  it("of a model's snapshot, and by the name of its provider, are the model's; none is guessed", () => {
    const known = Prices.TABLE["claude-haiku-4-5"]
    assert.strictEqual(Prices.priceOf("claude-haiku-4-5-20251001"), known)
    assert.strictEqual(Prices.priceOf("anthropic/claude-haiku-4-5"), known)
    for (const model of [
      "",
      "claude-haiku-4",
      "claude-haiku-4-5[1m]",
      "claude-haiku-4-5-fast",
      "toString",
      "__proto__"
    ])
      assert.isUndefined(Prices.priceOf(model), model)
  })

  it("of a config come first, the nearest first", () => {
    const [mine, ours] = [
      { input: 1, output: 1 },
      { input: 2, output: 2 }
    ]
    assert.strictEqual(
      Prices.priceOf("claude-haiku-4-5", { "claude-haiku-4-5": mine }, { "claude-haiku-4-5": ours }),
      mine
    )
    assert.strictEqual(Prices.priceOf("claude-haiku-4-5-20251001", {}, { "claude-haiku-4-5": ours }), ours)
    assert.strictEqual(Prices.priceOf("local", { local: mine }), mine)
  })
})
