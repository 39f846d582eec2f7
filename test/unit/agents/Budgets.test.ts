/** A budget that is spent at any moment: the agent ends for good, a person is mailed once, and told what to do. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { newsOf } from "../../../src/alerts/AlertPolicy.ts"
import * as AgentView from "../../../src/agents/run/AgentView.ts"
import * as Why from "../../../src/projects/service/Why.ts"
import type { RunEvent } from "../../../src/runs/Backend.ts"
import { AgentConfig } from "../../../src/config/AgentConfig.ts"
import { Schema } from "effect"
import { type AgentWorld, caller, make as makeWorld } from "../../world/agents/AgentWorld.ts"
import * as Puppet from "../../world/agents/Puppet.ts"
import { until } from "../../world/agents/World.ts"

const usage: RunEvent = { _tag: "Usage", inputTokens: 100, outputTokens: 0 }
const call: RunEvent = { _tag: "ToolCall", callId: "c", tool: "read", arguments: {}, readOnly: true }
const done = (turnId: string): RunEvent => ({ _tag: "TurnCompleted", turnId, output: "done" })
const exited: RunEvent = { _tag: "Exited", outcome: { _tag: "Error", detail: "exit code 1" } }

const make = Effect.fnUntraced(function* (config: object = {}, options: Parameters<typeof Puppet.make>[0] = {}) {
  const puppet = Puppet.make(options)
  const settings = { interruptGrace: "50ms", backoff: { base: "1ms" }, budget: { tokens: 100 }, ...config }
  const world = yield* makeWorld([], settings, { puppet })
  yield* world.tree.send("the errand", "queue", caller)
  const run = yield* puppet.run()
  return { world, puppet, run, turnId: run.spec.turnId }
})

const worker = (world: AgentWorld, state: string) =>
  until(
    Effect.sync(() => world.tree.worker()!.state),
    (now) => now === state
  )
const lower = (world: AgentWorld) => {
  const { budget: _, ...rest } = world.config
  world.config = Schema.decodeUnknownSync(AgentConfig)({
    ...Schema.encodeSync(AgentConfig)({ ...rest, budget: {} }),
    budget: { tokens: 50 }
  })
}

/** Waits until the agent has stopped for its budget, which one mail tells. */
const ends = Effect.fnUntraced(function* (world: AgentWorld) {
  yield* worker(world, "Stopped")
  yield* world.kind("agent.terminated")
  const runes = yield* world.runes
  const alerts = runes.map((rune) => newsOf(rune)?.mail).filter((alert) => alert !== undefined)
  assert.lengthOf(alerts, 1, JSON.stringify(alerts))
  assert.match(alerts[0]!.headline, /builder has failed: the budget of tokens is spent/)
  assert.match(alerts[0]!.remedy ?? "", /Raise its budget .* agentd start shop\/builder/)
  const row = AgentView.row({
    conversation: "shop-1",
    project: "shop",
    agent: "builder",
    config: world.config,
    worker: world.tree.worker(),
    turn: world.tree.turn(),
    calls: [],
    inbox: world.tree.inbox().data,
    broken: undefined,
    now: 0
  })
  const { advice, lines } = Why.why(
    runes.filter(({ kind }) => Why.kinds.includes(kind)),
    row
  )
  assert.match(lines.map(({ text }) => text).join("\n"), /cannot continue: the budget of tokens is spent/)
  assert.match(advice ?? "", /Raise its budget/)
  assert.lengthOf(advice?.match(/agentd start/g) ?? [], 1)
})

describe("a budget that is spent", () => {
  it.live("before its agent is busy, as the run comes up", () =>
    Effect.gen(function* () {
      const { run, world } = yield* make({}, { up: false })
      yield* run.say({ _tag: "Started" }, usage)
      yield* ends(world)
    }).pipe(Effect.scoped)
  )

  it.live("before its run has said that it is up", () =>
    Effect.gen(function* () {
      const { run, world } = yield* make({}, { up: false })
      yield* run.say(usage)
      yield* ends(world)
    }).pipe(Effect.scoped)
  )

  it.live("in the midst of a turn", () =>
    Effect.gen(function* () {
      const { run, world } = yield* make()
      yield* world.kind("turn.started")
      yield* run.say(usage)
      yield* ends(world)
    }).pipe(Effect.scoped)
  )

  it.live("in USD, by the price of its model, with the request that spends it and not at the turn's end", () =>
    Effect.gen(function* () {
      const { run, world } = yield* make({ budget: { usd: 0.01 } })
      yield* world.kind("turn.started")
      // 0.006 USD each: the third is never asked for
      const request: RunEvent = { _tag: "Usage", inputTokens: 1_000, outputTokens: 40, model: "claude-opus-5" }
      yield* run.say(request)
      yield* world.kind("agent.usage")
      yield* run.say(request)
      yield* worker(world, "Stopped")
      const used = (yield* world.runes).filter(({ kind }) => kind === "agent.usage")
      const usd = used.reduce((sum, { payload }) => sum + Number(payload["usd"]), 0)
      assert.closeTo(usd, 0.012, 1e-9)
      assert.deepInclude(used[0]?.payload, {
        models: [{ model: "claude-opus-5", input: 1_000, output: 40, usd: 0.006 }]
      })
    }).pipe(Effect.scoped)
  )

  it.live("while tools run", () =>
    Effect.gen(function* () {
      const { run, world } = yield* make()
      yield* world.kind("turn.started")
      yield* run.say(call)
      yield* world.kind("turn.tool_calls_received")
      yield* run.say(usage)
      yield* ends(world)
    }).pipe(Effect.scoped)
  )

  it.live("with the last words of a turn", () =>
    Effect.gen(function* () {
      const { run, turnId, world } = yield* make()
      yield* world.kind("turn.started")
      yield* run.say(usage, done(turnId))
      yield* ends(world)
    }).pipe(Effect.scoped)
  )

  it.live("between two turns", () =>
    Effect.gen(function* () {
      const { run, turnId, world } = yield* make()
      yield* run.say(done(turnId))
      yield* world.over()
      yield* run.say(usage)
      yield* ends(world)
    }).pipe(Effect.scoped)
  )

  it.live("as its run fails", () =>
    Effect.gen(function* () {
      const { run, world } = yield* make()
      yield* world.kind("turn.started")
      yield* run.say(usage, exited)
      yield* ends(world)
    }).pipe(Effect.scoped)
  )

  it.live("by a file that says less, while it waits for work", () =>
    Effect.gen(function* () {
      const { run, turnId, world } = yield* make({ budget: { tokens: 1000 } })
      yield* run.say(usage, done(turnId), { _tag: "Exited", outcome: { _tag: "Success" } })
      yield* world.over()
      yield* worker(world, "BuildingPrompt")
      lower(world)
      yield* world.tree.send("more", "queue", caller)
      yield* ends(world)
    }).pipe(Effect.scoped)
  )

  it.live("by a file that says less, while its run waits for a turn", () =>
    Effect.gen(function* () {
      const { run, turnId, world } = yield* make({ budget: { tokens: 1000 } })
      yield* run.say(usage, done(turnId))
      yield* world.over()
      lower(world)
      yield* world.tree.send("more", "queue", caller)
      yield* ends(world)
    }).pipe(Effect.scoped)
  )

  for (const mode of ["inbox", "loop"] as const) {
    it.live(`what it cut short is taken up by the next start as such (${mode})`, () =>
      Effect.gen(function* () {
        const { puppet, run, world } = yield* make(mode === "loop" ? { mode, prompt: "the standing task" } : {})
        yield* world.kind("turn.started")
        yield* run.say(usage)
        yield* ends(world)
        yield* world.tree.start(caller)
        const next = yield* puppet.run(1)
        assert.match(
          next.spec.prompt,
          /Your last run ended early: the budget of tokens is spent\. Take up its work again\./
        )
      }).pipe(Effect.scoped)
    )
  }

  it.live("and had cut nothing short is no word of the next run's", () =>
    Effect.gen(function* () {
      const { puppet, run, turnId, world } = yield* make()
      yield* world.kind("turn.started")
      yield* run.say(done(turnId))
      yield* world.over()
      yield* run.say(usage)
      yield* ends(world)
      yield* world.tree.send("more", "queue", caller)
      yield* world.tree.start(caller)
      const next = yield* puppet.run(1)
      assert.notMatch(next.spec.prompt, /ended early/)
    }).pipe(Effect.scoped)
  )
})
