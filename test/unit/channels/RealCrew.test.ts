/** Channels on the fleet's own agents: the real Crew, on backends that play turns. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Scope, Stream } from "effect"
import * as ActorSystem from "../../../src/core/event-actor/ActorSystem.ts"
import * as EventLoop from "../../../src/core/event-actor/EventLoop.ts"
import * as DeadLetters from "../../../src/core/event-actor/DeadLetters.ts"
import * as DynamicSupervisor from "../../../src/core/supervision/DynamicSupervisor.ts"
import * as Supervisor from "../../../src/core/supervision/Supervisor.ts"
import { Agents } from "../../../src/projects/service/Agents.ts"
import * as AgentCommands from "../../../src/projects/service/AgentCommands.ts"
import { Backends } from "../../../src/runs/Backends.ts"
import { ProcessTree } from "../../../src/runs/process/ProcessTree.ts"
import * as ScriptedBackend from "../../../src/runs/ScriptedBackend.ts"
import type { TurnScript } from "../../../src/runs/ScriptedTurns.ts"
import * as Channels from "../../../src/channels/Channels.ts"
import { decodeChannel } from "../../../src/config/ChannelConfig.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { copyOf } from "../../world/agents/TestLog.ts"
import * as AgentsWorld from "../../world/agents/World.ts"

const agent = (name: string) => ({
  backend: { type: "command", argv: [name] },
  minRunInterval: "0ms",
  backoff: { base: "50 millis" }
})

const nestOf = (name: string) =>
  DynamicSupervisor.make({ name, strategy: "one_for_one", intensity: 10, period: "30 seconds" })

type Scripts = { readonly [agent: string]: ReadonlyArray<TurnScript> | ScriptedBackend.ScriptedBackend }

/** A daemon's fleet and channels on the world's log, until it is stopped. */
const open = Effect.fnUntraced(function* (world: AgentsWorld.World) {
  const scope = yield* Scope.fork(yield* Effect.scope)
  const [conversations, rooms] = [nestOf("conversations"), nestOf("channels")]
  const log = Layer.succeed(EventLog, world.log)
  const letters = DeadLetters.layer().pipe(Layer.provide(log))
  const fleetLayer = AgentCommands.layer({
    worktrees: `${world.folder}/worktrees`,
    stores: `${world.folder}/store`,
    commands: { environment: {}, run: () => Effect.undefined },
    waiting: `${world.folder}/waiting`,
    files: `${world.folder}/files`,
    configs: `${world.folder}/configs`,
    supervisor: conversations,
    sweep: Effect.void,
    mcp: () => ({})
  })
  const layer = Channels.layer({ supervisor: rooms }).pipe(
    Layer.provideMerge(fleetLayer),
    Layer.provide(
      Layer.mergeAll(
        log,
        ActorSystem.layer({ log: world.log.core }).pipe(Layer.provide([EventLoop.layer, letters])),
        letters,
        Layer.succeed(Backends, { make: world.backends }),
        Redact.layer,
        ProcessTree.layer,
        NodeFileSystem.layer
      )
    )
  )
  const context = yield* Layer.build(Layer.fresh(layer)).pipe(Scope.provide(scope))
  yield* Effect.orDie(Supervisor.make({ name: "root", children: [conversations.child, rooms.child] })).pipe(
    Scope.provide(scope)
  )
  const [fleet, channels] = [Context.get(context, Agents), Context.get(context, Channels.Channels)]
  yield* AgentsWorld.until(channels.ready, Boolean)
  const texts = Effect.map(channels.show("reviews", world.caller), ({ posts }) =>
    posts.map(({ from, text }) => `${from}: ${text}`)
  )
  return { fleet, channels, texts, stop: Scope.close(scope, Exit.void) }
})

const setUp = Effect.fnUntraced(function* (scripts: Scripts, settings: object = {}) {
  const backends = new Map(
    Object.entries(scripts).map(
      ([name, of]) => [name, "played" in of ? of : ScriptedBackend.make([{ turns: of }])] as const
    )
  )
  const world = yield* AgentsWorld.make(backends.values().next().value!, (config) =>
    Effect.succeed(backends.get("argv" in config ? config.argv[0]! : "")!)
  )
  world.configure({ name: "shop", agents: Object.fromEntries(Object.keys(scripts).map((name) => [name, agent(name)])) })
  const daemon = yield* open(world)
  const { conversation } = yield* daemon.fleet.register(world.config, world.caller)
  const home = { conversation, project: "shop", config: world.config }
  const reviews = decodeChannel({ agents: Object.keys(scripts), ...settings })
  yield* daemon.channels.configure(home, { reviews })
  return { world, daemon, home, reviews }
})

const done = { steps: [{ say: "TURN_COMPLETE" }] }

describe("channels on real agents", () => {
  it.live("take turns: each answers what is new, then all is silent", () =>
    Effect.gen(function* () {
      const { daemon, world } = yield* setUp({
        pm: [{ steps: [{ say: "It is fine.\nTURN_COMPLETE" }] }, done],
        dev: [{ steps: [{ say: "Tests are missing.\nTURN_COMPLETE" }] }, done]
      })
      yield* daemon.channels.post("reviews", "Look at #42", world.caller)
      const texts = yield* AgentsWorld.until(daemon.texts, (all) => all.length === 3)
      assert.deepStrictEqual(texts, ["ada: Look at #42", "pm: It is fine.", "dev: Tests are missing."])
      yield* AgentsWorld.until(
        daemon.channels.show("reviews", world.caller),
        ({ channel }) => channel.detail === "nobody has anything new to read"
      )
    }).pipe(Effect.scoped)
  )

  it.live("a daemon that ends in the middle of a turn: the next one's channel has its answer, once", () =>
    Effect.gen(function* () {
      const { daemon, home, reviews, world } = yield* setUp({
        pm: [{ steps: [{ say: "It is fine.\nTURN_COMPLETE", wait: "150 millis" }] }, done],
        dev: [done]
      })
      yield* daemon.channels.post("reviews", "Look at #42", world.caller)
      yield* AgentsWorld.until(daemon.channels.show("reviews", world.caller), ({ channel }) => channel.floor === "pm")
      yield* daemon.stop
      const next = yield* open(world)
      yield* next.channels.configure(home, { reviews })
      yield* AgentsWorld.until(next.texts, (all) => all.some((text) => text.startsWith("pm")))
      yield* AgentsWorld.until(
        next.channels.show("reviews", world.caller),
        ({ channel }) => channel.detail === "nobody has anything new to read"
      )
      assert.deepStrictEqual(yield* next.texts, ["ada: Look at #42", "pm: It is fine."])
    }).pipe(Effect.scoped)
  )

  it.live("in a paused conversation nobody speaks; what was said is heard after it", () =>
    Effect.gen(function* () {
      // what is posted while it hears the first steers it to another turn
      const here = { steps: [{ say: "Here.\nTURN_COMPLETE" }] }
      const { daemon, world } = yield* setUp({ pm: [here, here, done], dev: [done] })
      const shown = daemon.channels.show("reviews", world.caller)
      yield* AgentsWorld.until(shown, ({ channel }) => channel.seats.every(({ state }) => state === "QUEUED"))
      yield* daemon.fleet.pause("", { inFlight: "complete", reason: "" }, world.caller)
      yield* AgentsWorld.until(shown, ({ channel }) => channel.seats.every(({ state }) => state === "OFFLINE"))
      yield* daemon.channels.post("reviews", "Hello?", world.caller)
      yield* AgentsWorld.until(shown, ({ channel }) => channel.floor === null)
      yield* daemon.fleet.resume("", world.caller)
      yield* daemon.channels.post("reviews", "Now?", world.caller)
      const texts = yield* AgentsWorld.until(daemon.texts, (all) => all.some((text) => text.startsWith("pm")))
      // the notice may come as the last seat falls silent, or with the post that finds none
      assert.sameMembers(texts.slice(0, 2), ["ada: Hello?", ": ⚠ No agents available in this channel"])
      // a turn that was not steered away in time says it, too: one turn a post at most
      const [now, heard] = [texts.slice(2).filter((text) => text.startsWith("ada")), texts.slice(3).length]
      assert.deepStrictEqual(now, ["ada: Now?"])
      assert.sameMembers([...new Set(texts.slice(2))], ["ada: Now?", "pm: Here."])
      assert.isAtMost(heard, 2)
    }).pipe(Effect.scoped)
  )

  for (const rejoin of [false, true]) {
    const then = rejoin ? "it takes its place again" : "it waits for a person to assign it"
    it.live(`a process that dies in its turn takes its agent offline; back, with rejoin ${rejoin}, ${then}`, () =>
      Effect.gen(function* () {
        const dies = ScriptedBackend.make([
          {
            steps: [{ _tag: "Started" }],
            exitAfter: "100 millis",
            outcome: { _tag: "Error", detail: "exit code 1" }
          },
          { steps: [{ _tag: "Started" }, { _tag: "Delta", stream: "stdout", text: "TURN_COMPLETE" }] }
        ])
        const { daemon, world } = yield* setUp({ pm: dies, dev: [done] }, { rejoin })
        yield* daemon.channels.post("reviews", "Look at #42", world.caller)
        yield* AgentsWorld.until(daemon.texts, (all) => all.includes(": ⚠ pm disconnected, skipping turn"))
        yield* AgentsWorld.until(daemon.channels.show("reviews", world.caller), ({ channel }) =>
          rejoin
            ? dies.played()[1]?.outcome !== undefined && channel.floor === null
            : channel.waits?.startsWith("what was said waits, and no agent is in the turn queue") === true
        )
        const moves = (yield* Stream.runCollect(world.log.read({ kinds: ["seat.moved"] })))
          .filter(({ actor }) => actor === "seat/reviews/pm")
          .map(({ payload, to }) => [to, (payload["event"] as { readonly how?: string }).how ?? ""].join(" ").trim())
        // it rests, or waits for its next turn where the other is not done yet
        const rests = moves.at(-1) === "QUEUED" ? "QUEUED" : "IDLE"
        assert.deepStrictEqual(moves.slice(moves.indexOf("ACTIVE")), [
          "ACTIVE",
          "OFFLINE disconnected",
          "IDLE",
          ...(rejoin ? ["QUEUED", "ACTIVE", rests] : [])
        ])
        assert.strictEqual(dies.played().length, rejoin ? 2 : 1)
      }).pipe(Effect.scoped)
    )
  }

  // each is the first rune of its append: what was appended before it is whole
  const isLeft = ({ actor, to }: Rune) => actor === "seat/reviews/pm" && to === "OFFLINE"
  const isBack = ({ actor, trigger }: Rune) => actor === "worker/pm" && trigger === "BackoffElapsed"
  for (const [when, isFirst] of [
    ["before its channel has heard of it", isLeft],
    ["before its agent is back", isBack]
  ] as const) {
    it.live(
      `kill -9 after a process died in its turn, ${when}: the seat was disconnected, and is not queued again`,
      () =>
        Effect.gen(function* () {
          const dies = ScriptedBackend.make([
            { steps: [{ _tag: "Started" }], exitAfter: "20 millis", outcome: { _tag: "Error", detail: "exit code 1" } }
          ])
          const { daemon, home, reviews, world } = yield* setUp({ pm: dies, dev: [done] })
          yield* daemon.channels.post("reviews", "Look at #42", world.caller)
          const runes = Stream.runCollect(world.log.read({}))
          const cut = (yield* AgentsWorld.until(runes, (all) => all.some(isFirst))).find(isFirst)!.eventId
          yield* daemon.stop
          const log = yield* copyOf(world.log, ({ eventId }) => eventId < cut)
          const scripts = ScriptedBackend.make([{ turns: [done, done] }])
          const later = yield* open(new AgentsWorld.World(log, () => Effect.succeed(scripts), world.folder))
          yield* later.channels.configure(home, { reviews })
          yield* AgentsWorld.until(
            later.channels.show("reviews", world.caller),
            ({ channel }) =>
              channel.waits?.startsWith("what was said waits, and no agent is in the turn queue") === true
          )
          const moves = (yield* Stream.runCollect(log.read({ kinds: ["seat.moved"] })))
            .filter(({ actor }) => actor === "seat/reviews/pm")
            .map(({ payload, to }) => [to, (payload["event"] as { readonly how?: string }).how ?? ""].join(" ").trim())
          assert.deepStrictEqual(moves.slice(moves.indexOf("ACTIVE")), ["ACTIVE", "OFFLINE disconnected", "IDLE"])
          assert.include(yield* later.texts, ": ⚠ pm disconnected, skipping turn")
        }).pipe(Effect.scoped)
    )
  }
})
