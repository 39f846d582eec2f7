/** How fast a run may tell: a burst, then a rate, with a row and a notice that say so; nothing is lost, and a stop waits for nothing. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as AgentView from "../../../src/agents/run/AgentView.ts"
import * as OutputRate from "../../../src/agents/run/OutputRate.ts"
import type { RunEvent } from "../../../src/runs/Backend.ts"
import { caller, make as makeWorld } from "./AgentWorld.ts"
import * as Puppet from "./Puppet.ts"
import { until } from "./World.ts"

const notices = (from: number, count: number): ReadonlyArray<RunEvent> =>
  Array.from({ length: count }, (_, n) => ({ _tag: "Notice", text: `note ${from + n}` }))
const word: RunEvent = { _tag: "Delta", stream: "assistant", text: "word " }

describe("the rate of a run's events", () => {
  it("lets a burst pass, then makes it wait for what is owed, and is full again after a while", () => {
    const [burst, none] = OutputRate.after(OutputRate.fresh(0), notices(0, 5_000), 0)
    assert.deepStrictEqual([burst.isSlow, none], [false, 0])
    const [owing, wait] = OutputRate.after(burst, notices(0, 100), 0)
    assert.deepStrictEqual([owing.isSlow, wait], [true, 1_000])
    const [, most] = OutputRate.after(owing, notices(0, 40_000), 0)
    assert.strictEqual(most, 2_000, "it is heard now and then")
    const [still] = OutputRate.after(owing, notices(0, 1), 2_000)
    assert.isTrue(still.isSlow)
    const [again, wait0] = OutputRate.after(owing, notices(0, 1), 60_000)
    assert.deepStrictEqual([again.isSlow, wait0], [false, 0])
  })

  it("counts bytes wherever they are in an event, and a chunk of words as one event", () => {
    const big: RunEvent = {
      _tag: "ToolCall",
      callId: "c",
      tool: "t",
      readOnly: false,
      arguments: { deep: ["x".repeat(70_000_000)] }
    }
    assert.isAbove(OutputRate.after(OutputRate.fresh(0), [big], 0)[1], 0)
    const words = Array.from({ length: 50_000 }, () => word)
    assert.strictEqual(OutputRate.after(OutputRate.fresh(0), words, 0)[1], 0)
  })

  it("forty thousand events take no less than their rate", () => {
    let [rate, now] = [OutputRate.fresh(0), 0]
    for (let n = 0; n < 40_000; n += 100) {
      const [next, wait] = OutputRate.after(rate, notices(n, 100), now)
      rate = next
      now += wait
    }
    assert.isAtLeast(now, ((40_000 - 5_000) / 100) * 1_000 - 2_000)
  })
})

const flooded = Effect.gen(function* () {
  const puppet = Puppet.make()
  const world = yield* makeWorld([], {}, { puppet })
  yield* world.tree.send("the errand", "queue", caller)
  const run = yield* puppet.run()
  yield* world.kind("turn.started")
  yield* run.say(...notices(0, 5_100))
  const slow = (runes: ReadonlyArray<{ readonly payload: object }>) =>
    runes.some(({ payload }) => JSON.stringify(payload).includes("it sends more than 5000 events"))
  yield* until(world.kind("run.notice"), slow)
  return { run, world }
})

describe("a run that tells too much at once", () => {
  it.live("is read more slowly, its row says so, and nothing of it is lost", () =>
    Effect.gen(function* () {
      const { run, world } = yield* flooded
      const row = AgentView.row({
        conversation: "shop-1",
        project: "shop",
        agent: "builder",
        config: world.config,
        worker: world.tree.worker(),
        turn: world.tree.turn(),
        calls: [],
        inbox: world.tree.inbox().data,
        lacks: [...world.tree.live.lacks],
        broken: undefined,
        now: 0
      })
      assert.include(row.detail, "without full speed: it sends too much at once")
      yield* run.say(...notices(5_100, 3), { _tag: "TurnCompleted", turnId: run.spec.turnId, output: "done" })
      yield* world.kind("turn.completed")
      const texts = new Set((yield* world.kind("run.notice")).map(({ payload }) => payload["text"]))
      for (const n of [0, 4_999, 5_050, 5_102]) assert.isTrue(texts.has(`note ${n}`), `note ${n}`)
    }).pipe(Effect.scoped)
  )

  it.live("is heard out at once when it is stopped", () =>
    Effect.gen(function* () {
      const { run, world } = yield* flooded
      yield* run.say(...notices(6_000, 20_000))
      yield* world.tree.stop(caller)
      yield* until(
        Effect.sync(() => world.tree.worker()?.state),
        (state) => state === "Stopped"
      )
    }).pipe(Effect.scoped)
  )
})
