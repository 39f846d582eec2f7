import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import type { Backend } from "../../../src/runs/Backend.ts"
import { make, memoryLog } from "../../world/agents/AgentWorld.ts"
import * as Puppet from "../../world/agents/Puppet.ts"
import { until } from "../../world/agents/World.ts"

const minutes = 60_000

/** A run that nothing ends. */
const deaf =
  (start: Backend["start"]): Backend["start"] =>
  (spec) =>
    Effect.map(start(spec), (run) => ({ ...run, interruptTurn: Effect.void, end: Effect.void, kill: Effect.void }))

describe("the sweep", () => {
  it.live("INV-TURN-TERMINAL: a turn that no run works on is ended when it is old, and written down", () =>
    Effect.gen(function* () {
      const world = yield* make([{ hang: true }, { steps: [{ say: "ok" }] }])
      yield* world.tree.send("work", "queue", { by: "ada", config: null })
      yield* world.kind("turn.started")
      const now = yield* Clock.currentTimeMillis
      yield* world.tree.sweep(now + 6 * minutes)
      assert.deepStrictEqual(yield* world.kinds("sweep"), [], "a live run owns it")
      // the bug: what worked on it is forgotten
      world.tree.live.end()
      yield* world.tree.sweep(now + 4 * minutes)
      assert.deepStrictEqual(yield* world.kinds("sweep"), [], "it is not old")
      yield* world.tree.sweep(now + 6 * minutes)
      const [rune] = yield* world.kind("invariant.violated")
      assert.strictEqual(rune!.payload["rule"], "INV-TURN-TERMINAL")
      const [error] = yield* world.kind("turn.error")
      assert.strictEqual(error!.payload["error_type"], "lost")
      assert.strictEqual(world.tree.turn().data.unfinished.length, 1)
    }).pipe(Effect.scoped)
  )

  it.live("a turn whose end waits for a slow disk is not a lost one", () =>
    Effect.gen(function* () {
      const puppet = Puppet.make()
      const gate = Puppet.holding(yield* memoryLog)
      const world = yield* make([], {}, { log: gate.log, puppet })
      yield* world.tree.send("work", "queue", { by: "ada", config: null })
      const run = yield* puppet.run()
      yield* until(
        Effect.sync(() => world.tree.turn().state),
        (state) => state === "streaming"
      )
      gate.hold(({ kind }) => kind === "turn.completed")
      yield* run.say({ _tag: "TurnCompleted", turnId: run.spec.turnId, output: "done" })
      yield* gate.caught
      const now = yield* Clock.currentTimeMillis
      const sweep = yield* Effect.forkChild(world.tree.sweep(now + 6 * minutes), { startImmediately: true })
      yield* gate.free
      yield* Fiber.join(sweep)
      assert.deepStrictEqual(yield* world.kinds("sweep"), [])
      assert.strictEqual(world.tree.turn().state, "idle")
    }).pipe(Effect.scoped)
  )

  it.live("INV-AGENT-BUDGET: a run that goes on past its agent's budget is written down", () =>
    Effect.gen(function* () {
      const world = yield* make([{ steps: [{ usage: { inputTokens: 9, outputTokens: 1 } }], hang: true }], {
        budget: { tokens: 10 }
      })
      // the agent has ended, and its run is beyond help
      world.backend = { ...world.backend, start: deaf(world.backend.start) }
      yield* world.tree.send("work", "queue", { by: "ada", config: null })
      yield* world.kind("agent.terminated")
      const now = yield* Clock.currentTimeMillis
      yield* world.tree.sweep(now, 0)
      assert.deepStrictEqual(yield* world.kinds("sweep"), [])
      yield* world.tree.sweep(now + 120 * minutes, 1_000)
      assert.deepStrictEqual(yield* world.kinds("sweep"), [], "somebody has set the clock")
      yield* world.tree.sweep(now, 5 * minutes)
      const [rune] = yield* world.kind("invariant.violated")
      assert.deepStrictEqual([rune!.payload["rule"], rune!.payload["severity"]], ["INV-AGENT-BUDGET", "WARN"])
    }).pipe(Effect.scoped)
  )
})
