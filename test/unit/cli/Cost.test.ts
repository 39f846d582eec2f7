/** `agentd cost`: by what it was spent, for people, spreadsheets and scripts. */
import { ESTIMATED } from "../../../src/runs/gateway/Estimated.ts"
import { assert, describe, it } from "@effect/vitest"
import type { Cost } from "../../../src/domain/SpendingLimits.ts"
import { cost } from "../../../src/cli/daemon/Cost.ts"
import { type CostKey, grouped, MOST } from "../../../src/board/CostMessages.ts"

const one = (more: Partial<Cost>): Cost => ({
  day: "2026-11-10",
  conversation: "shop-00000001",
  agent: "ann",
  model: "m",
  goal: "",
  input: 100,
  output: 10,
  cacheRead: 60,
  cacheWrite: 5,
  usd: 0.5,
  unpriced: 0,
  ...more
})
const projects = new Map([["shop-00000001", "shop"]])
const costs = [
  one({}),
  one({ agent: "bob", day: "2026-11-11", goal: "g1" }),
  one({ agent: "bob", model: "=cmd|' /C calc'!A0", usd: 0, unpriced: 110 })
]

const shown = (by: ReadonlyArray<CostKey>, csv = false) =>
  cost.view({ by, csv, since: "", rows: grouped(costs, by, projects) }, {
    colour: false,
    columns: null,
    now: 0,
    world: null
  } as never)

describe("agentd cost", () => {
  it("sums by the keys that are asked for, cache hits apart, with the sum of all", () => {
    assert.deepStrictEqual(
      shown(["agent"]).map((line) => line.replaceAll(/ {2,}/g, " ").trim()),
      [
        "AGENT INPUT CACHE READ CACHE WRITE HITS OUTPUT COST",
        "shop/ann 100 60 5 60 % 10 $0.5000",
        "shop/bob 200 120 10 60 % 20 $0.5000 and 110 tokens unpriced",
        "in all 300 180 15 60 % 30 $1.0000 and 110 tokens unpriced"
      ]
    )
    assert.lengthOf(shown(["day", "goal"]), 1 + 2 + 1)
    assert.lengthOf(shown(["project"]), 1 + 1)
  })

  it("as CSV holds no formula, and each field as it is", () => {
    const lines = shown(["model", "day"], true)
    assert.strictEqual(
      lines[0],
      "model,day,input,output,cacheRead,cacheWrite,usd,unpriced,estimated,unlikelyTokens,unlikelyUsd"
    )
    assert.include(lines.join("\n"), "'=cmd|' /C calc'!A0,2026-11-10,100,10,60,5,0,110,0,0,0")
  })

  it("as CSV tells what was estimated, and what is not believed", () => {
    const costs = [
      one({ model: `m${ESTIMATED}`, input: 100, output: 10 }),
      one({ input: 0, output: 0, cacheRead: 0, cacheWrite: 0, unlikely: { tokens: 9e15, usd: 3_000_000 } })
    ]
    const lines = cost.view({ by: ["agent"], csv: true, since: "", rows: grouped(costs, ["agent"], projects) }, {
      now: 0
    } as never)
    assert.match(lines[1] ?? "", /,110,9000000000000000,3000000$/)
  })

  it("says that nothing was spent", () => {
    const none = { by: ["agent"] as const, csv: false, since: "2026-11-12", rows: [] }
    assert.deepStrictEqual(cost.view(none, { now: 0 } as never), ["Nothing was spent since 2026-11-12."])
  })

  it("refuses keys that it does not know, with those it does", () => {
    for (const by of ["", "agent,", "agents", "agent,user"])
      assert.match(
        cost.wrong?.({ by, since: undefined, csv: false }, {} as never)?.message ?? "",
        /project, agent, model/
      )
    assert.isUndefined(cost.wrong?.({ by: "day, agent", since: undefined, csv: false }, {} as never))
  })

  it("a reply is bounded, and loses nothing of the sum", () => {
    const many = Array.from({ length: MOST + 100 }, (_, index) => one({ agent: `a${index}`, usd: 1 }))
    const rows = grouped(many, ["agent"], projects)
    assert.lengthOf(rows, MOST + 1)
    assert.strictEqual(
      rows.reduce((sum, { usd }) => sum + usd, 0),
      MOST + 100
    )
  })
})
