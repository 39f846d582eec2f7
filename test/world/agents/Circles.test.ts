/** Nothing runs away: agents that message each other in a circle, and sub-agents of sub-agents, are bounded. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope, Stream } from "effect"
import type { Agents } from "../../../src/projects/service/Agents.ts"
import { explain } from "../../../src/projects/service/Explain.ts"
import { Agents as AgentsTag } from "../../../src/projects/service/Agents.ts"
import * as ScriptedBackend from "../../../src/runs/ScriptedBackend.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import * as World from "./World.ts"

type Fleet = Agents["Service"]

const agent = { backend: { type: "acp", argv: ["x"] }, minRunInterval: "0ms" }

const made = Effect.fnUntraced(function* (conversation: object = {}, agents: object = { ping: agent, pong: agent }) {
  const world = yield* World.make(ScriptedBackend.make([{ turns: [{ output: "ok" }] }]))
  world.configure({ agents, conversation })
  return world
})

const daemon = <A, E>(of: World.World, use: (fleet: Fleet) => Effect.Effect<A, E, Scope.Scope>) =>
  Effect.scoped(Effect.flatMap(of.open, use))

const runes = (world: World.World, ...kinds: ReadonlyArray<string>) =>
  Effect.map(Stream.runCollect(world.log.read({ kinds })), (found) => [...found])

const by = (world: World.World, name: string): World.World["caller"] => ({ by: `agent:${name}`, config: world.config })

/** Turns that were answered already, by world. */
const done = new WeakMap<World.World, number>()

/** Each agent answers each turn with so many messages to the other, until both have nothing to do. */
const talk = Effect.fnUntraced(function* (world: World.World, fleet: Fleet, answers = 1) {
  let answered = done.get(world) ?? 0
  for (;;) {
    const over = yield* runes(world, "turn.completed")
    for (const { actor } of over.slice(answered)) {
      const name = actor.slice("turn/".length)
      for (let n = 0; n < answers; n++) {
        const other = name === "ping" ? "pong" : "ping"
        yield* fleet.send(other, { text: `${name} has a word`, how: "queue" }, by(world, name))
      }
    }
    answered = over.length
    done.set(world, answered)
    const { carried, waiting } = yield* settled(world, fleet)
    if (waiting === 0 && carried === answered) return
    yield* Effect.promise(() => new Promise<void>((resolve) => setTimeout(resolve, 1)))
  }
})

const settled = Effect.fnUntraced(function* (world: World.World, fleet: Fleet) {
  const rows = yield* fleet.all
  const carried = (yield* runes(world, "turn.started")).length
  return { carried, waiting: rows.reduce((sum, row) => sum + row.inbox, 0) }
})

const begun = Effect.fnUntraced(function* (world: World.World, fleet: Fleet) {
  yield* fleet.register(world.config, world.caller)
  yield* World.untilAgent(fleet, "pong", ({ state }) => state === "BuildingPrompt")
})

const told = (world: World.World) => Effect.map(runes(world, "inbox.received"), (all) => all.length)

describe("an agent that restarts itself", () => {
  it.live("may do so once in a turn; more is refused and said; a person's restart is none of it", () =>
    Effect.gen(function* () {
      const world = yield* World.make(ScriptedBackend.make([{ turns: [{ hang: true }] }]))
      world.configure({ agents: { ping: agent, pong: agent } })
      yield* daemon(world, (fleet) =>
        Effect.gen(function* () {
          yield* begun(world, fleet)
          yield* fleet.send("ping", { text: "Go.", how: "queue" }, world.caller)
          const started = (count: number) =>
            World.until(runes(world, "turn.started"), (found) => found.length === count)
          yield* started(1)
          yield* fleet.restart("ping", by(world, "ping"))
          yield* started(2)
          const refused = yield* Effect.flip(fleet.restart("ping", by(world, "ping")))
          assert.match(refused.message, /ping was already restarted by agent:ping in this turn/)
          assert.lengthOf(yield* runes(world, "turn.started"), 2, "its run goes on")
          yield* fleet.restart("pong", by(world, "ping"))
          yield* fleet.restart("ping", world.caller)
          yield* started(3)
          yield* fleet.restart("ping", by(world, "ping"))
          yield* started(4)
        })
      )
    }).pipe(Effect.scoped)
  )
})

describe("agents that restart each other", () => {
  it.live("may do so once in a turn: two that do it in return come to rest", () =>
    Effect.gen(function* () {
      const world = yield* World.make(ScriptedBackend.make([{ turns: [{ hang: true }] }]))
      world.configure({ agents: { ping: agent, pong: agent } })
      yield* daemon(world, (fleet) =>
        Effect.gen(function* () {
          yield* begun(world, fleet)
          yield* fleet.send("ping", { text: "Go.", how: "queue" }, world.caller)
          yield* World.until(runes(world, "turn.started"), (found) => found.length === 1)
          yield* fleet.restart("pong", by(world, "ping"))
          yield* fleet.restart("ping", by(world, "pong"))
          const refused = yield* Effect.flip(fleet.restart("pong", by(world, "ping")))
          assert.match(refused.message, /pong was already restarted by agent:ping in this turn/)
          yield* fleet.restart("pong", world.caller)
        })
      )
    }).pipe(Effect.scoped)
  )
})

describe("agents that message each other in a circle", () => {
  it.live("rest after 20 messages without a person; it is a rune, in the list, and in why", () =>
    Effect.gen(function* () {
      const world = yield* made()
      yield* daemon(world, (fleet) =>
        Effect.gen(function* () {
          yield* begun(world, fleet)
          yield* fleet.send("ping", { text: "Talk.", how: "queue" }, world.caller)
          yield* talk(world, fleet)
          assert.strictEqual(yield* told(world), 21)
          assert.strictEqual((yield* runes(world, "inbox.rested")).length, 1)
          const [backlog] = yield* fleet.backlog
          assert.deepStrictEqual(
            backlog?.dropped.map(({ errorType }) => errorType),
            ["circle"]
          )
          const row = (yield* fleet.all).find(({ agent }) => agent === backlog?.agent)!
          assert.include(row.detail, "waits after 20 agent messages")
          const { advice, lines } = yield* explain(row).pipe(
            Effect.provideService(AgentsTag, fleet),
            Effect.provideService(EventLog, world.log)
          )
          assert.include(advice, "agentd retry")
          assert.include(lines.map(({ text }) => text).join("\n"), "a message from agent:")
        })
      )
      // kill -9 and a restart: they rest on
      yield* daemon(world, (fleet) =>
        Effect.gen(function* () {
          const [backlog] = yield* World.until(fleet.backlog, (found) => found.length === 1)
          const before = yield* told(world)
          yield* fleet.retry(backlog!.agent, undefined, world.caller)
          yield* talk(world, fleet)
          // what is asked again is a person's word: as many once more
          assert.strictEqual((yield* told(world)) - before, 20)
          assert.strictEqual((yield* runes(world, "inbox.rested")).length, 2)
        })
      )
    }).pipe(Effect.scoped)
  )

  it.live("a person's message lets them go on", () =>
    Effect.gen(function* () {
      const world = yield* made({ restAfterRelays: 4 })
      yield* daemon(world, (fleet) =>
        Effect.gen(function* () {
          yield* begun(world, fleet)
          for (const round of [1, 2, 3]) {
            yield* fleet.send("ping", { text: "Talk.", how: "queue" }, world.caller)
            yield* talk(world, fleet)
            assert.strictEqual(yield* told(world), 5 * round)
          }
        })
      )
    }).pipe(Effect.scoped)
  )

  it.live("who answers each message with two is bounded by their number", () =>
    Effect.gen(function* () {
      const world = yield* made({ restAfterRelays: 1_000, restAfterMessages: 30 })
      yield* daemon(world, (fleet) =>
        Effect.gen(function* () {
          yield* begun(world, fleet)
          yield* fleet.send("ping", { text: "Talk.", how: "queue" }, world.caller)
          yield* talk(world, fleet, 2)
          assert.isAtMost(yield* told(world), 61)
          assert.isAtLeast((yield* runes(world, "inbox.rested")).length, 1)
        })
      )
    }).pipe(Effect.scoped)
  )
})

describe("sub-agents of sub-agents", () => {
  it.live("are bounded in depth: a rune, a row, and a person may go deeper", () =>
    Effect.gen(function* () {
      const world = yield* made({ maxDepth: 2 }, { boss: agent, pong: agent })
      yield* daemon(world, (fleet) =>
        Effect.gen(function* () {
          yield* begun(world, fleet)
          const spawn = (parent: string, name: string, who = by(world, parent)) =>
            fleet.spawn(parent, { name, task: "work" }, who)
          yield* World.untilAgent(fleet, "boss", ({ state }) => state === "BuildingPrompt")
          yield* spawn("boss", "one")
          yield* World.untilAgent(fleet, "one", ({ state }) => state !== "Stopped")
          yield* spawn("one", "two")
          yield* World.untilAgent(fleet, "two", ({ state }) => state !== "Stopped")
          for (const name of ["three", "three"]) {
            const refused = yield* Effect.flip(spawn("two", name))
            assert.include(refused.message, "it would be at depth 3, and the limit is 2")
          }
          assert.strictEqual((yield* runes(world, "agent.bound_reached")).length, 1)
          const of = Effect.map(fleet.backlog, (all) => all.find(({ agent }) => agent === "two")?.bounds ?? [])
          assert.match((yield* of)[0]!.text, /shop\/two requests a sub-agent three at depth 3: the limit is 2/)
          yield* spawn("two", "three", world.caller)
          yield* fleet.dismiss("two", { which: undefined, held: false }, world.caller)
          assert.deepStrictEqual(yield* of, [])
        })
      )
    }).pipe(Effect.scoped)
  )

  it.live("one after another are bounded by the day: a rune, a row, why, over kill -9; a person may begin more", () =>
    Effect.gen(function* () {
      const world = yield* made({ maxSubAgentsPerDay: 4 }, { boss: agent, pong: agent })
      const spawn = (fleet: Fleet, name: string, who = by(world, "boss")) =>
        fleet.spawn("boss", { name, task: "work" }, who)
      const one = Effect.fnUntraced(function* (fleet: Fleet, name: string) {
        yield* spawn(fleet, name)
        yield* World.untilAgent(fleet, name, ({ state }) => state !== "Stopped")
      })
      yield* daemon(world, (fleet) =>
        Effect.gen(function* () {
          yield* begun(world, fleet)
          yield* World.untilAgent(fleet, "boss", ({ state }) => state !== "Stopped")
          for (const name of ["a", "b", "c"]) yield* one(fleet, name)
        })
      )
      yield* daemon(world, (fleet) =>
        Effect.gen(function* () {
          yield* World.untilAgent(fleet, "boss", ({ state }) => state !== "Stopped")
          yield* one(fleet, "d")
          for (const name of ["e", "f"]) {
            const refused = yield* Effect.flip(spawn(fleet, name))
            assert.include(refused.message, "agents have started 4, and the limit is 4 a day")
            assert.include((refused as { readonly remedy: string }).remedy, "conversation.maxSubAgentsPerDay")
          }
          assert.strictEqual((yield* runes(world, "agent.bound_reached")).length, 1)
          const backlog = (yield* fleet.backlog).find(({ agent }) => agent === "boss")
          assert.match(
            backlog?.bounds?.[0]?.text ?? "",
            /agents have started 4 on \d{4}-\d\d-\d\d, and the limit is 4 a day/
          )
          const row = (yield* fleet.all).find(({ agent }) => agent === "boss")!
          const { lines } = yield* explain(row).pipe(
            Effect.provideService(AgentsTag, fleet),
            Effect.provideService(EventLog, world.log)
          )
          assert.include(lines.map(({ text }) => text).join("\n"), "shop/boss requests more sub-agents")
          yield* spawn(fleet, "mine", world.caller)
          yield* World.untilAgent(fleet, "mine", ({ state }) => state !== "Stopped")
        })
      )
    }).pipe(Effect.scoped)
  )
})
