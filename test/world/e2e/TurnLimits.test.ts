/** A turn that goes in circles: its limits, over a restart of the daemon; a person lets it go on, or says what to do. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Stage from "../../support/Stage.ts"
import { long } from "../../support/Long.ts"

describe("a turn that reaches its limit", () => {
  for (const on of ["claude", "acp"] as const)
    long.live(
      `${on}: is interrupted, keeps what it was asked, and needs a person, also after kill -9; retry lets it go on`,
      () =>
        Effect.gen(function* () {
          const stage = yield* Stage.make
          const budget = { perTurn: { wallTime: "2 seconds" } }
          const project = stage.home({ agents: { ann: stage.agent(on, { budget }) } })
          yield* stage.up
          yield* project.register
          yield* project.tell("ann", { hold: true }, { say: "found it" })
          const held = yield* project.row(
            "ann",
            "needs a person",
            ({ detail, word }) => word === "needs you" && detail.includes("2 s")
          )
          assert.include(held.detail, "the turn reached 2 s: go on, or stop: agentd retry shop/ann")
          yield* stage.box.kill9
          yield* stage.up
          yield* project.row("ann", "needs a person still", ({ word }) => word === "needs you")
          const { rows } = yield* stage.rpc((client) => client.Waiting())
          assert.deepStrictEqual(
            rows.map(({ kind, text }) => [kind, text]),
            [["bound", "the turn reached 2 s: go on, or stop"]]
          )
          assert.lengthOf(yield* project.log("turn.started"), 1)
          yield* stage.rpc((client) => client.Retry({ name: "ann", caller: project.caller }))
          assert.deepStrictEqual(yield* project.answers("ann", 1), ["found it"])
          assert.deepStrictEqual(
            (yield* project.log("worker.moved")).filter(({ payload }) => payload["consecutiveErrors"] === 1),
            [],
            "no error is counted"
          )
        }).pipe(Effect.scoped)
    )

  it.live("a message of a person is an answer, and goes with what the turn was asked", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const project = stage.home({ agents: { ann: stage.agent("claude", { budget: { perTurn: { toolCalls: 2 } } }) } })
      yield* stage.up
      yield* project.register
      yield* project.tell("ann", { run: "true" }, { run: "true" }, { hold: true }, { say: "found it" })
      yield* project.row("ann", "needs a person", ({ detail }) => detail.includes("the turn reached 2 tool calls"))
      yield* project.send("ann", "Leave it, and say why.")
      const [, again] = yield* project.of("ann", 2, "turn.started")
      const { input } = again!.payload as { readonly input: string }
      assert.include(input, "found it")
      assert.include(input, "Leave it, and say why.")
    }).pipe(Effect.scoped)
  )

  it.live("names the limit from 80 % on; the same call 20 times is marked, and told of once", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const project = stage.home({ agents: { ann: stage.agent("acp", { budget: { perTurn: { toolCalls: 25 } } }) } })
      yield* stage.up
      yield* project.register
      const same = Array.from({ length: 20 }, () => ({ run: "true" }))
      yield* project.tell("ann", ...same, { hold: true })
      const { detail } = yield* project.row("ann", "is marked", (row) => row.detail.includes("the same call 20 times"))
      assert.include(detail, "80 % of the turn's budget of tool calls for the agent is spent: 20 of 25")
      const told = yield* project.log("budget.near", "budget.spent", "agent.bound_reached")
      assert.deepStrictEqual(
        told.map(({ kind, payload }) => [kind, String(payload["mark"]).slice(0, 22)]),
        [["budget.near", "the same call 20 times"]]
      )
    }).pipe(Effect.scoped)
  )

  long.live("time in which it waits for a person does not count; off is no limit", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const project = stage.home({
        agents: {
          ann: stage.agent("claude", { budget: { perTurn: { wallTime: "2 seconds" } } }),
          bob: stage.agent("claude", { budget: { perTurn: { wallTime: "off", toolCalls: "off", usd: "off" } } })
        }
      })
      yield* stage.up
      yield* project.register
      yield* project.tell("ann", { ask: "touch asked" }, { say: "done" })
      yield* project.tell("bob", { sleep: 3_000 }, { say: "done" })
      const { callId } = yield* project.asked("ann")
      yield* Effect.sleep("3 seconds")
      yield* project.answer(callId, "allow")
      assert.deepStrictEqual(yield* project.answers("ann", 1), ["done"])
      assert.deepStrictEqual(yield* project.answers("bob", 1), ["done"])
      const usage = yield* project.log("agent.usage")
      const waited = usage.reduce((sum, { payload }) => sum + Number(payload["waited"] ?? 0), 0)
      assert.isAtLeast(waited, 2_500)
    }).pipe(Effect.scoped)
  )
})
