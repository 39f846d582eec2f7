/** Spending as a fold: the same live and from the log, bounded, by the day. */
import { assert, describe, it } from "@effect/vitest"
import * as SpendingTotals from "../../../src/budgets/SpendingTotals.ts"
import { reaches } from "../../../src/budgets/Limits.ts"
import * as Calendar from "../../../src/domain/Calendar.ts"
import type { Usage } from "../../../src/domain/UsageKinds.ts"

const at = (day: number, hour = 12, month = 10) => new Date(2026, month, day, hour).getTime()

const usage = (agent: string, tokens: number, more: Partial<Usage> = {}): Usage => ({
  agent_id: agent,
  turn_id: "t1",
  tokens,
  tool_calls: 0,
  wall_time: 0,
  usd: 0,
  ...more
})

const spentOf = (spending: SpendingTotals.SpendingTotals, agent: string, now: number) =>
  Object.fromEntries(
    reaches(
      "agent",
      { tokens: 1e9, perDay: { tokens: 1e9 }, perMonth: { tokens: 1e9 }, perTurn: { tokens: 1e9 } },
      spending.agents.get(agent) ?? SpendingTotals.empty,
      now
    ).map(({ period, spent }) => [period, spent])
  )

describe("what is spent", () => {
  it("counts for its turn, its day, its month and in total", () => {
    const spending = SpendingTotals.fresh()
    SpendingTotals.use(spending, usage("a", 100), at(10))
    SpendingTotals.use(spending, usage("a", 10), at(11))
    SpendingTotals.use(spending, usage("a", 1, { turn_id: "t2" }), at(11))
    assert.deepStrictEqual(spentOf(spending, "a", at(11)), { turn: 1, day: 11, month: 111, total: 111 })
    assert.deepStrictEqual(spentOf(spending, "a", at(12)), { turn: 1, day: 0, month: 111, total: 111 })
    assert.deepStrictEqual(spentOf(spending, "a", at(1, 0, 11)), { turn: 1, day: 0, month: 0, total: 111 })
    assert.strictEqual(spending.project.day.sum.tokens, 11)
  })

  it("by a clock that was set back counts for the newest day: none begins twice", () => {
    const spending = SpendingTotals.fresh()
    SpendingTotals.use(spending, usage("a", 100), at(11))
    SpendingTotals.use(spending, usage("a", 10), at(10))
    assert.strictEqual(spentOf(spending, "a", at(11))["day"], 110)
    assert.strictEqual(spentOf(spending, "a", at(10))["day"], 110)
  })

  it("of an incarnation begins anew with the next; that of a day does not", () => {
    const spending = SpendingTotals.fresh()
    SpendingTotals.use(spending, usage("a", 100), at(10))
    SpendingTotals.tell(spending.told, "agent/a/total/tokens//near")
    SpendingTotals.tell(spending.told, "agent/a/day/tokens/2026-11-10/near")
    SpendingTotals.began(spending, "a")
    assert.deepStrictEqual(spentOf(spending, "a", at(10)), { turn: 100, day: 100, month: 100, total: 0 })
    assert.deepStrictEqual([...spending.told], ["agent/a/day/tokens/2026-11-10/near"])
  })

  it("is known by the hour, the newest hours alone, and of no goal", () => {
    const spending = SpendingTotals.fresh()
    SpendingTotals.use(spending, usage("a", 100, { goal: "g1" }), at(10, 7))
    SpendingTotals.use(spending, usage("a", 10, { goal: "g2" }), at(10, 7))
    SpendingTotals.use(spending, usage("b", 1), at(10, 8))
    const hours = SpendingTotals.costsOf(spending, "shop-1", "2026-11-10", { hours: true })
    assert.deepStrictEqual(
      hours.map(({ agent, day, goal, input }) => [day, agent, goal, input]),
      [
        ["2026-11-10T07", "a", "", 110],
        ["2026-11-10T08", "b", "", 1]
      ]
    )
    for (let n = 0; n < 3_000; n++) SpendingTotals.use(spending, usage(`a${n}`, 1), at(11, 9))
    assert.strictEqual(spending.hours.size, 2_000)
    assert.lengthOf(
      SpendingTotals.costsOf(spending, "shop-1", "2026-11-10", { hours: true }).filter(({ day }) => day < "2026-11-11"),
      0
    )
  })

  it("of the midnight belongs to the day that begins", () => {
    const midnight = Calendar.dayAfter(at(10))
    assert.deepStrictEqual([midnight - 1, midnight].map(Calendar.dayOf), ["2026-11-10", "2026-11-11"])
    assert.strictEqual(Calendar.dayOf(Calendar.monthAfter(at(10))), "2026-12-01")
  })

  it("is kept by day, agent, model and goal; an older rune has a sum and no model", () => {
    const spending = SpendingTotals.fresh()
    const models = [{ model: "m", input: 100, output: 10, cache_read: 60, usd: 0.5 }]
    SpendingTotals.use(spending, usage("a", 110, { models, usd: 0.5, goal: "g", day: "2026-11-10" }), at(12))
    SpendingTotals.use(spending, usage("a", 110, { models, usd: 0.5, goal: "g", day: "2026-11-10" }), at(12))
    SpendingTotals.use(spending, usage("a", 7), at(12))
    const rows = SpendingTotals.costsOf(spending, "c", "")
    assert.lengthOf(rows, 2)
    assert.deepInclude(rows[0], {
      day: "2026-11-10",
      model: "m",
      goal: "g",
      input: 200,
      cacheRead: 120,
      usd: 1,
      unpriced: 0
    })
    assert.deepInclude(rows[1], { day: "2026-11-12", model: "", input: 7, unpriced: 7 })
    assert.lengthOf(SpendingTotals.costsOf(spending, "c", "2026-11-11"), 1)
  })

  it("of an archived conversation is told by its archive: the sums, the newest day and month, and rows", () => {
    const spending = SpendingTotals.fresh()
    for (let day = 1; day <= 400; day++)
      for (const goal of ["g1", "g2"])
        SpendingTotals.use(
          spending,
          usage("a", 3, { usd: 0.5, goal, models: [{ model: "m", input: 2, output: 1, usd: 0.5 }] }),
          at(day)
        )
    const summary = { conversation: "shop-00000001", spending: SpendingTotals.archivedOf(spending) }
    assert.isAtMost(JSON.stringify(summary).length, 64 * 1024)
    const daemon = SpendingTotals.fresh()
    const rune = { kind: "session.archived", actor: "conversation/x", stream: "daemon", payload: { summary } }
    SpendingTotals.apply(daemon, rune as never)
    assert.deepStrictEqual([daemon.ever.tokens, daemon.ever.usd], [2400, 400])
    assert.deepStrictEqual(daemon.project.day, {
      label: Calendar.dayOf(at(400)),
      sum: { ...SpendingTotals.nothing, tokens: 6, usd: 1 }
    })
    const rows = SpendingTotals.costsOf(daemon, "daemon", "")
    assert.isTrue(rows.every(({ conversation }) => conversation === "shop-00000001"))
    assert.strictEqual(
      rows.reduce((sum, { input, output }) => sum + input + output, 0),
      2400
    )
    for (const payload of [{}, { summary: {} }, { summary: { conversation: "c", spending: { tokens: "x" } } }])
      SpendingTotals.apply(daemon, { ...rune, payload } as never)
    assert.strictEqual(daemon.ever.tokens, 2400, "an archive of an older agentd, or of another shape, changes nothing")
  })

  it("over many years is bounded, and loses no token", () => {
    const spending = SpendingTotals.fresh()
    let all = 0
    for (let day = 0; day < 4_000; day++)
      for (const agent of ["a", "b", "c", "d", "e"]) {
        const models = [{ model: `m${day % 3}`, input: 1, output: 1 }]
        SpendingTotals.use(spending, usage(agent, 2, { models }), at(1 + day, 12, 0))
        all += 2
      }
    const rows = SpendingTotals.costsOf(spending, "c", "")
    assert.isAtMost(rows.length, 4_000)
    assert.strictEqual(
      rows.reduce((sum, { input, output }) => sum + input + output, 0),
      all
    )
    for (let n = 0; n < 5_000; n++) SpendingTotals.use(spending, usage(`agent${n}`, 1), at(10))
    assert.isAtMost(spending.agents.size, 2_000)
    for (let n = 0; n < 5_000; n++) SpendingTotals.tell(spending.told, `${n}`)
    assert.isAtMost(spending.told.size, 1_000)
  })
})
