/** Each budget with each backend that runs a program: it ends with the request that spends it, and one more at most. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import * as ModelStand from "../backends/ModelStand.ts"
import * as Stage from "../../support/Stage.ts"
import type { Step } from "../../support/Told.ts"
import { long } from "../../support/Long.ts"

/** Tokens of one request. */
const REQUEST = 40
const LIMIT = 100
/** Tokens that are spent with the request that goes beyond the limit. */
const LEAST = 3 * (REQUEST + 1)

/** Far more requests than the budget allows, each a moment after the one before. */
const SPREE: ReadonlyArray<Step> = Array.from({ length: 20 }, (): ReadonlyArray<Step> => [
  { request: REQUEST },
  { sleep: 500 }
]).flat()

const budgets: { readonly [name: string]: { readonly budget: object; readonly ends: string } } = {
  "its whole, in tokens": { budget: { tokens: LIMIT }, ends: "agent.budget_exhausted" },
  "a turn's": { budget: { perTurn: { tokens: LIMIT } }, ends: "budget.spent" },
  "a day's": { budget: { perDay: { tokens: LIMIT } }, ends: "budget.spent" },
  "a month's": { budget: { perMonth: { tokens: LIMIT } }, ends: "budget.spent" }
}

const overshoot = Effect.fnUntraced(function* (on: "claude" | "acp", budget: object, ends: string) {
  const stage = yield* Stage.make
  const project = stage.home({ agents: { ann: stage.agent(on, { budget }) } })
  yield* stage.up
  yield* project.register
  yield* project.tell("ann", ...SPREE)
  const { caller } = project
  const log = stage.rpc((client) =>
    Stream.runCollect(client.Log({ kinds: [ends, "turn.finalized", "turn.interrupted"], follow: false, caller }))
  )
  yield* project.until(
    "its turn is interrupted",
    Effect.orElseSucceed(log, () => []),
    (runes) => [ends, "turn.interrupted"].every((kind) => runes.some((rune) => rune.kind === kind))
  )
  // what its run may still tell is told
  yield* project.row(
    "ann",
    "has no turn",
    ({ detail, state }) =>
      state === "Stopped" || /waits for a message|budget of tokens for|the turn reached/.test(detail)
  )
  const [cost] = yield* stage.rpc((client) => client.Costs({ by: ["agent"], since: "" }))
  return cost!
})

describe("by how much a budget is overshot", () => {
  for (const on of ["claude", "acp"] as const)
    // a budget is the agent's; how its backend ends a turn is the same for all of them
    for (const [at, [name, { budget, ends }]] of Object.entries(budgets).entries())
      (on === "claude" || at === 0 ? it.live : long.live)(
        `${on}: ${name}, by less than the request that spends it and one more`,
        () =>
          Effect.gen(function* () {
            const { input, output } = yield* overshoot(on, budget, ends)
            assert.isAtLeast(input + output, LEAST)
            assert.isAtMost(input + output, LEAST + REQUEST + 1)
          }).pipe(Effect.scoped)
      )

  it.live("claude: its whole, in USD, by the price of its model", () =>
    Effect.gen(function* () {
      // 0.000225 USD a request
      const { usd } = yield* overshoot("claude", { usd: 0.0005 }, "agent.budget_exhausted")
      assert.isAtLeast(usd, 0.0005)
      assert.isAtMost(usd, 0.0005 + 2 * 0.000_225)
    }).pipe(Effect.scoped)
  )
})

describe("a model agent in mid-turn", () => {
  const calls: { readonly [name: string]: object } = {
    "a call that is allowed": { id: "c", name: "list", arguments: "{}" },
    "a call that is wrong, so that nobody is asked": { id: "c", name: "none", arguments: "{}" }
  }
  for (const [at, [spent, { budget }]] of Object.entries(budgets).entries())
    for (const [name, call] of Object.entries(calls))
      (at === 0 || name.endsWith("asked") ? it.live : long.live)(
        `makes no request after the one that spends ${spent}: ${name}`,
        () =>
          Effect.gen(function* () {
            const stage = yield* Stage.make
            const stand = yield* ModelStand.provider("anthropic", () => ({
              text: ["on"],
              calls: [call as never],
              tokens: LIMIT
            }))
            const agent = stage.agent("model", { budget, backend: { baseUrl: stand.url } })
            const project = stage.home({ agents: { ann: agent } })
            yield* stage.up
            yield* project.register
            yield* project.send("ann", "go on for ever")
            yield* project.row(
              "ann",
              "has no turn",
              ({ detail, state }) =>
                state === "Stopped" || /waits for a message|budget of tokens for|the turn reached/.test(detail)
            )
            assert.lengthOf(stand.asked, 1)
          }).pipe(Effect.scoped)
      )

  it.live("makes no request after the one that spends the budget of its conversation", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const stand = yield* ModelStand.provider("anthropic", () => ({
        calls: [{ id: "c", name: "none", arguments: "{}" }],
        tokens: LIMIT
      }))
      const agents = { ann: stage.agent("model", { backend: { baseUrl: stand.url } }) }
      const project = stage.home({ conversation: { budget: { tokens: LIMIT } }, agents })
      yield* stage.up
      yield* project.register
      yield* project.send("ann", "go on for ever")
      yield* project.until("it is suspended", project.conversation, ({ state }) => state === "suspended")
      yield* project.of("ann", 1, "turn.interrupted")
      assert.lengthOf(stand.asked, 1)
    }).pipe(Effect.scoped)
  )
})
