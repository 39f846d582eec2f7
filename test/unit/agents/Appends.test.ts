/** How much is written for what an agent does: the runes, and the appends that they are. */
import { assert, describe, it } from "@effect/vitest"
import { type Clock, Effect } from "effect"
import { stopwatch } from "../../../src/agents/actors/AgentActor.ts"
import type { MemoryLog } from "../../../src/core/event-log/MemoryLog.ts"
import * as ScriptedBackend from "../../../src/runs/ScriptedBackend.ts"
import { type AgentWorld, caller, make, memoryLog } from "../../world/agents/AgentWorld.ts"
import * as Puppet from "../../world/agents/Puppet.ts"
import { until } from "../../world/agents/World.ts"

const idle = (world: AgentWorld, state: string) =>
  until(
    Effect.sync(() => `${world.tree.worker()?.state} ${world.tree.turn().state}`),
    (states) => states === `${state} idle`
  )

/** Appends of the actors from now on. */
const watched = (world: AgentWorld) => {
  const appends: Array<ReadonlyArray<string>> = []
  const core = world.log.core as MemoryLog
  core.watch({
    landed: (units) => {
      for (const { runes } of units) appends.push(runes.map(({ kind }) => kind))
    },
    refused: () => {}
  })
  return appends
}

describe("what an agent writes", () => {
  it.live("a send to an agent that has its run: one append, and the run hears; one more ends the turn", () =>
    Effect.gen(function* () {
      const puppet = Puppet.make()
      const world = yield* make([], {}, { log: yield* memoryLog, puppet })
      yield* world.tree.send("first", "queue", caller)
      const run = yield* puppet.run()
      yield* run.say({ _tag: "TurnCompleted", turnId: run.spec.turnId, output: "ok" })
      yield* idle(world, "Running")
      const appends = watched(world)
      yield* world.tree.send("second", "queue", caller)
      yield* until(
        Effect.sync(() => run.sent.length),
        (sent) => sent === 1
      )
      assert.deepStrictEqual(appends, [["inbox.received", "turn.started"]])
      yield* run.say(
        { _tag: "Usage", inputTokens: 3, outputTokens: 1 },
        { _tag: "TurnCompleted", turnId: run.sent[0]!.turnId, output: "ok" }
      )
      yield* idle(world, "Running")
      assert.deepStrictEqual(appends.slice(1), [["agent.usage", "turn.completed"]])
    }).pipe(Effect.scoped)
  )

  it.live("a send that needs a run: its id is durable before the spawn, and what it hears with its start", () =>
    Effect.gen(function* () {
      const puppet = Puppet.make({ up: false })
      const world = yield* make([], {}, { log: yield* memoryLog, puppet })
      yield* until(
        Effect.sync(() => world.tree.worker()?.state),
        (state) => state === "BuildingPrompt"
      )
      const appends = watched(world)
      yield* world.tree.send("first", "queue", caller)
      const run = yield* puppet.run()
      assert.deepStrictEqual(appends, [["inbox.received", "worker.moved"]])
      yield* run.say({ _tag: "Started" })
      yield* until(
        Effect.sync(() => appends.length),
        (count) => count === 2
      )
      assert.deepStrictEqual(appends[1], ["turn.started"])
    }).pipe(Effect.scoped)
  )

  it.live("a run that failed where nothing is to be waited for: its end and the next run are one append", () =>
    Effect.gen(function* () {
      const fails: ScriptedBackend.Script = {
        steps: [{ _tag: "Started" }],
        exitAfter: "5 millis",
        outcome: { _tag: "Error", detail: "killed by SIGKILL" }
      }
      const puppet = ScriptedBackend.make([fails, { steps: [{ _tag: "Started" }], hang: true }])
      const backoff = { base: "0ms", cap: "0ms" }
      const world = yield* make([], { mode: "loop", prompt: "x", backoff }, { log: yield* memoryLog, puppet })
      const appends = watched(world)
      yield* until(
        Effect.sync(() => puppet.played().length),
        (runs) => runs === 2
      )
      const end = appends.find((kinds) => kinds.includes("turn.error"))!
      assert.strictEqual(end.filter((kind) => kind === "worker.moved").length, 3, end.join(" "))
    }).pipe(Effect.scoped)
  )

  it.live("a loop's run: five runes of its agent at most, its output and what its conversation counts besides", () =>
    Effect.gen(function* () {
      const line = { _tag: "Delta", stream: "stdout", text: "done" } as const
      const puppet = ScriptedBackend.make([{ steps: [{ _tag: "Started" }, line] }])
      const world = yield* make([], { mode: "loop", prompt: "x" }, { log: yield* memoryLog, puppet })
      const appends = watched(world)
      yield* world.over(3)
      yield* world.tree.stop(caller)
      const all = appends.flat()
      const from = all.indexOf("turn.completed") + 1
      const one = all.slice(from, all.indexOf("turn.completed", from) + 1)
      const count = (kind: string) => one.filter((other) => other === kind).length
      assert.deepStrictEqual([count("worker.moved"), count("turn.started"), count("turn.completed")], [2, 1, 1])
      assert.isAtMost(count("agent.usage"), 1, "and none where no ms has gone by")
    }).pipe(Effect.scoped)
  )
})

describe("the time of a turn", () => {
  it("passes with the monotonic clock, and not within what is decided in one moment", () => {
    let nanos = 0n
    // each look is a millisecond later
    const clock = { monotonicTimeNanosUnsafe: () => (nanos += 1_000_000n) } as Clock.Clock
    const watch = stopwatch(clock, 1_000)
    watch.set(100)
    assert.strictEqual(watch.since(100, 100), 0)
    assert.strictEqual(watch.since(100, 101), 1)
    assert.strictEqual(watch.since(100, 101), 1, "the same moment")
    watch.set(101)
    assert.strictEqual(watch.since(101, 101), 0, "what was counted is not counted again")
    assert.strictEqual(watch.since(101, 9_999_999), 1, "a wall clock that is set ahead")
    assert.strictEqual(watch.since(50, 9_999_999), 1_000, "an earlier daemon's stamp is believed up to a bound")
  })
})
