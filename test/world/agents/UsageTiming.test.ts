/** Agents that say too late, or never, what they spend: said where they are started, and on the board. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as UsageTiming from "../../../src/agents/run/UsageTiming.ts"
import { AgentConfig, type BudgetConfig } from "../../../src/config/AgentConfig.ts"
import * as Prices from "../../../src/domain/Prices.ts"
import * as ModelStand from "../backends/ModelStand.ts"
import * as Stage from "../../support/Stage.ts"
import { Effect } from "effect"
import { long } from "../../support/Long.ts"

const agent = (backend: object) => Schema.decodeUnknownSync(AgentConfig)({ backend })
const command = agent({ type: "command", argv: ["work"] })
const opencode = agent({ type: "acp", argv: ["/opt/opencode", "acp"] })
const qwen = agent({ type: "acp", argv: ["node", "/opt/qwen", "--acp"] })
const claude = (model?: string) => agent({ type: "claude", ...(model === undefined ? {} : { model }) })
const model = (more: object = {}) => agent({ type: "model", provider: "openai", model: "local", ...more })

const wordOf = (config: AgentConfig, ...budgets: ReadonlyArray<BudgetConfig>) =>
  UsageTiming.gapOf("ann", config, budgets, (name) => Prices.priceOf(name))?.word

describe("metering", () => {
  it("is said to be missing only where a limit rests on it", () => {
    for (const one of [command, opencode, claude(), model()]) {
      assert.isUndefined(wordOf(one, {}))
      assert.isUndefined(wordOf(one, { toolCalls: 5 }))
    }
  })

  it("of a command there is none; an ACP agent tells at a turn's end, but for those that are known to tell less", () => {
    for (const budget of [{ tokens: 5 }, { perDay: { usd: 1 } }, { perTurn: { tokens: 5 } }]) {
      assert.strictEqual(wordOf(command, {}, budget), "unmetered")
      assert.strictEqual(wordOf(opencode, {}, budget), "unmetered within a turn")
    }
    assert.strictEqual(wordOf(qwen, { tokens: 5 }), "metered in part")
    for (const argv of [
      ["cline", "--acp"],
      ["/opt/droid", "exec", "--output-format", "acp"],
      ["npx", "cline", "--acp"]
    ])
      assert.strictEqual(wordOf(agent({ type: "acp", argv }), { tokens: 5 }), "unmetered")
    assert.isUndefined(wordOf(claude(), { tokens: 5 }))
    assert.isUndefined(wordOf(model(), { tokens: 5 }))
  })

  it("in USD needs a price", () => {
    assert.isUndefined(wordOf(claude("claude-opus-5"), { usd: 1 }))
    assert.strictEqual(wordOf(claude("claude-new"), { usd: 1 }), "USD unmetered within a turn")
    assert.strictEqual(wordOf(claude(), { perMonth: { usd: 1 } }), "USD unmetered within a turn")
    assert.strictEqual(wordOf(model(), { usd: 1 }), "USD unmetered")
    assert.isUndefined(wordOf(model({ price: { input: 1, output: 1 } }), { usd: 1 }))
  })

  long.live("that is missing is said by start, and by ps", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const plain = { backend: { type: "command", argv: ["sleep", "60"] }, budget: { tokens: 5 } }
      const project = stage.home({ agents: { ann: plain, bob: { ...plain, budget: {} } } })
      yield* stage.up
      const { unmetered } = yield* project.register
      assert.lengthOf(unmetered ?? [], 1)
      assert.match(unmetered![0]!, /^ann is unmetered: .*limit its time/)
      const rows = yield* project.until("both are there", project.agents, (all) => all.length === 2)
      assert.match(rows.find((row) => row.agent === "ann")!.detail, /\(unmetered\)$/)
      assert.notMatch(rows.find((row) => row.agent === "bob")!.detail, /unmetered/)
    }).pipe(Effect.scoped)
  )

  it.live("of a run on a fallback is that of the backend that runs; start says it of each before the first token", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const overloaded = { status: 529, body: JSON.stringify({ error: { type: "overloaded_error", message: "no" } }) }
      const own = yield* ModelStand.provider("anthropic", () => overloaded)
      const other = yield* ModelStand.provider("anthropic", () => ({ text: ["other"] }))
      const backend = { baseUrl: own.url, retries: 0, price: { input: 1, output: 1 } }
      const fallback = [{ baseUrl: other.url, model: "free" }]
      const project = stage.home({ agents: { ann: stage.agent("model", { backend, fallback, budget: { usd: 1 } }) } })
      yield* stage.up
      const { unmetered } = yield* project.register
      assert.lengthOf(unmetered ?? [], 1)
      assert.match(unmetered![0]!, /^ann \(fallback 1\) is unpriced: its model free has no price/)
      yield* project.row("ann", "is priced", ({ detail }) => !detail.includes("unmetered"))
      yield* project.send("ann", "hello")
      assert.deepStrictEqual(yield* project.answers("ann", 1), ["other"])
      const row = yield* project.row("ann", "is away", ({ detail }) => detail.includes("on fallback 1"))
      assert.include(row.detail, "USD unmetered")
      assert.match(row.unmetered!, /fallback 1/)
    }).pipe(Effect.scoped)
  )
})
