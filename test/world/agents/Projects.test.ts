import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Stream } from "effect"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import * as ScriptedBackend from "../../../src/runs/ScriptedBackend.ts"
import * as World from "./World.ts"
import { PATIENCE } from "../../support/Patience.ts"

const works: ScriptedBackend.Script = { steps: [{ _tag: "Started", pid: 7 }], exitAfter: "20 millis" }
const stays: ScriptedBackend.Script = { steps: [{ _tag: "Started", pid: 7 }], hang: true }

const runesOf = (world: World.World, ...kinds: ReadonlyArray<string>) =>
  Effect.map(Stream.runCollect(world.log.read({ kinds })), (runes) => [...runes])

describe("Projects", () => {
  it.live("carries what waits when an agent is started, and counts it as delivered", () =>
    Effect.gen(function* () {
      const backend = ScriptedBackend.make([works])
      const world = yield* World.make(backend)
      world.configure({ agents: { a: World.command({ autostart: false }) } })
      const fleet = yield* world.open
      yield* fleet.register(world.config, world.caller)
      const kept = yield* fleet.send("a", { text: "one", how: "queue" }, world.caller)
      assert.match(kept.message, /stored for shop\/a, which is stopped/)
      yield* fleet.start("a", world.caller)
      yield* World.untilAgent(fleet, "a", ({ inbox, state }) => inbox === 0 && state === "BuildingPrompt")
      assert.match(backend.played()[0]!.spec.prompt, /from ada, a person\none/)
      assert.strictEqual(backend.played().length, 1)
    })
  )

  it.live("the project that it is to take up is there for the first command", () =>
    Effect.gen(function* () {
      const world = yield* World.make(ScriptedBackend.make([works]))
      world.configure({ agents: { a: World.command({ autostart: false }) } })
      world.project = world.config
      const fleet = yield* world.open
      assert.match((yield* fleet.start("a", world.caller)).message, /a is started/)
    })
  )

  it.live("what is wrong with the file of the project to take up is for whoever registers it", () =>
    Effect.gen(function* () {
      const world = yield* World.make(ScriptedBackend.make([works]))
      world.configure("{ broken")
      world.project = world.config
      const fleet = yield* world.open
      const refused = yield* Effect.flip(fleet.register(world.config, world.caller))
      assert.match(refused.message, /agentd.jsonc:1/)
    })
  )

  it.live("a project whose file was broken at the start keeps its inboxes and stops when it is registered again", () =>
    Effect.gen(function* () {
      const backend = ScriptedBackend.make([works])
      const world = yield* World.make(backend)
      const good = { agents: { a: World.command() } }
      world.configure(good)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const fleet = yield* world.open
          yield* fleet.register(world.config, world.caller)
          yield* fleet.stop("a", world.caller)
          yield* fleet.send("a", { text: "precious", how: "queue" }, world.caller)
        })
      )
      world.configure("{ broken")
      const fleet = yield* world.open
      assert.isAbove((yield* fleet.projects)[0]!.problems.length, 0)
      world.configure(good)
      yield* fleet.register(world.config, world.caller)
      const [row] = yield* fleet.all
      assert.strictEqual(row?.inbox, 1, "the acknowledged message is still there")
      assert.strictEqual(row?.state, "Stopped", "what a person stopped stays stopped")
      assert.strictEqual((yield* fleet.projects).length, 1)
    })
  )

  it.live("a folder that is gone is told in words, with what to do, also where a worktree was wanted", () =>
    Effect.gen(function* () {
      const world = yield* World.make(ScriptedBackend.make([works]))
      world.configure({ agents: { a: World.command({ autostart: false, worktree: true }) } })
      const fleet = yield* world.open
      yield* fleet.register(world.config, world.caller)
      rmSync(dirname(world.config), { recursive: true })
      yield* fleet.start("a", world.caller)
      yield* fleet.send("a", { text: "x", how: "queue" }, world.caller)
      const row = yield* World.untilAgent(fleet, "a", ({ state }) => state === "Stopped")
      assert.match(row.detail, /the folder \S+\/shop of its project no longer exists/)
      yield* fleet.register(world.config, world.caller)
      const [project] = yield* fleet.projects
      assert.match(project!.problems.join("\n"), /agentd\.jsonc: its folder no longer exists$/)
    })
  )

  it.live("a second project of the same name is refused with one that is free; what is closed frees its name", () =>
    Effect.gen(function* () {
      const world = yield* World.make(ScriptedBackend.make([works]))
      world.configure({ agents: { a: World.command({ autostart: false }) } })
      const fleet = yield* world.open
      const { conversation } = yield* fleet.register(world.config, world.caller)
      const other = join(world.folder, "other", "shop", "agentd.jsonc")
      mkdirSync(dirname(other), { recursive: true })
      const write = (more: object) =>
        writeFileSync(other, JSON.stringify({ ...more, agents: { a: World.command({ autostart: false }) } }))
      write({})
      const caller = { by: "ada", config: other }
      const refused = yield* Effect.flip(fleet.register(other, caller))
      assert.strictEqual(refused.message, `A project named shop already exists: ${world.config}.`)
      assert.match((refused as { remedy: string }).remedy, /: agentd start --name other-shop$/)
      assert.strictEqual((yield* fleet.projects).length, 1)
      write({ name: "other-shop" })
      assert.strictEqual((yield* fleet.register(other, caller)).name, "other-shop")
      write({ name: "shop" })
      const again = yield* Effect.flip(fleet.register(other, caller))
      assert.match((again as { remedy: string }).remedy, /^Set another "name" in .*; then: agentd trust other-shop$/)
      assert.deepStrictEqual(
        (yield* fleet.projects).map(({ name }) => name),
        ["shop", "other-shop"]
      )
      yield* fleet.close("shop", { reason: "", force: true }, world.caller)
      assert.strictEqual((yield* fleet.register(other, caller)).name, "shop")
      // the name means the one that is open
      assert.notStrictEqual((yield* fleet.conversation("shop", world.caller)).conversation, conversation)
      const back = yield* Effect.flip(fleet.newConversation(world.config, world.caller))
      assert.match(back.message, /A project named shop already exists/)
    })
  )

  it.live(
    "a bare name means the folder's own agent; outside a project the only one, and ends and changes nothing",
    () =>
      Effect.gen(function* () {
        const world = yield* World.make(ScriptedBackend.make([stays]))
        const agents = { a: World.command({ autostart: false }), only: World.command({ autostart: false }) }
        world.configure({ agents })
        const fleet = yield* world.open
        const { conversation } = yield* fleet.register(world.config, world.caller)
        const other = join(world.folder, "two", "agentd.jsonc")
        mkdirSync(dirname(other))
        writeFileSync(other, JSON.stringify({ agents: { a: World.command({ autostart: false }) } }))
        const there = { by: "ada", config: other }
        const outside = { by: "ada", config: null }
        const told = (refused: unknown) => {
          const { message, remedy } = refused as { readonly message: string; readonly remedy: string }
          return `${message} ${remedy}`
        }
        const acts: ReadonlyArray<
          (name: string, by: typeof outside | typeof there) => Effect.Effect<unknown, unknown>
        > = [
          fleet.stop,
          fleet.restart,
          fleet.interrupt,
          (name, by) => fleet.choose(name, { model: "m", mode: null, reset: false }, by),
          (name, by) => fleet.dismiss(name, { which: undefined, held: true }, by)
        ]
        const reads: typeof acts = [
          fleet.agent,
          fleet.start,
          (name, by) => fleet.send(name, { text: "x", how: "queue" }, by),
          (name, by) => fleet.retry(name, undefined, by)
        ]
        for (const act of [...acts, ...reads]) {
          const unstarted = told(yield* Effect.flip(act("a", there)))
          assert.match(unstarted, /^Here "a" means an agent of this folder's project.*agentd start/)
          assert.notInclude(unstarted, "shop")
        }
        assert.strictEqual((yield* fleet.agent("shop/a", there)).project, "shop")
        for (const act of acts) {
          assert.match(
            told(yield* Effect.flip(act("only", outside))),
            /nothing was done\. Use its full name: shop\/only$/
          )
        }
        assert.strictEqual((yield* fleet.agent("only", outside)).agent, "only")
        yield* fleet.register(other, there)
        assert.strictEqual((yield* fleet.agent("a", there)).project, "two")
        assert.strictEqual(
          told(yield* Effect.flip(fleet.agent("only", there))),
          'There is no agent "only". There are: a'
        )
        for (const act of [...acts, ...reads]) {
          assert.match(told(yield* Effect.flip(act("a", outside))), /names 2 agents\. Say which: shop\/a, two\/a$/)
        }
        yield* fleet.stop("shop/a", outside)
        // an agent that works in its worktree stands in its project
        const copy = { by: "agent:a", config: `/home/ada/state/worktrees/${conversation}/a/sub/agentd.jsonc` }
        assert.strictEqual((yield* fleet.agent("only", copy)).project, "shop")
      })
  )

  it.live("a person's stop outlasts a restart, whatever the person is called", () =>
    Effect.gen(function* () {
      const world = yield* World.make(ScriptedBackend.make([stays]))
      world.configure({ agents: { a: World.command({ mode: "loop", prompt: "x" }) } })
      const service = { by: "agentd", config: world.config }
      yield* Effect.scoped(
        Effect.gen(function* () {
          const fleet = yield* world.open
          yield* fleet.register(world.config, service)
          yield* World.untilAgent(fleet, "a", ({ state }) => state === "Running")
          yield* fleet.stop("a", service)
        })
      )
      const fleet = yield* world.open
      assert.strictEqual((yield* fleet.all)[0]?.state, "Stopped")
    })
  )

  it.live("a new name of the project counts at once and after a restart, in every remedy", () =>
    Effect.gen(function* () {
      const world = yield* World.make(ScriptedBackend.make([stays]))
      const agents = { a: World.command({ autostart: false }) }
      world.configure({ name: "old", agents })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const fleet = yield* world.open
          yield* fleet.register(world.config, world.caller)
          world.configure({ name: "new", agents })
          const info = yield* fleet.register(world.config, world.caller)
          assert.strictEqual(info.name, "new")
          const { message } = yield* fleet.send("new/a", { text: "x", how: "queue" }, world.caller)
          assert.match(message, /agentd start new\/a/)
        })
      )
      const fleet = yield* world.open
      assert.strictEqual((yield* fleet.projects)[0]?.name, "new")
      yield* fleet.agent("new/a", { by: "ada", config: null })
    })
  )

  it.live("an agent that has left the file goes, even one whose name every object knows", () =>
    Effect.gen(function* () {
      const world = yield* World.make(ScriptedBackend.make([stays]))
      world.configure({ agents: { constructor: World.command(), "v1.2": World.command() } })
      const fleet = yield* world.open
      yield* fleet.register(world.config, world.caller)
      assert.deepStrictEqual((yield* fleet.all).map(({ agent }) => agent).toSorted(), ["constructor", "v1.2"])
      world.configure({ agents: { "v1.2": World.command() } })
      yield* fleet.register(world.config, world.caller)
      assert.deepStrictEqual(
        (yield* fleet.all).map(({ agent }) => agent),
        ["v1.2"]
      )
    })
  )

  it.live("a start that its caller gives up on leaves an agent that runs or one that can be started", () =>
    Effect.gen(function* () {
      const world = yield* World.make(ScriptedBackend.make([stays]))
      world.configure({ agents: { a: World.command({ autostart: false, mode: "loop", prompt: "x" }) } })
      const fleet = yield* world.open
      yield* fleet.register(world.config, world.caller)
      for (let turns = 0; turns < 40; turns++) {
        const starting = yield* Effect.forkChild(fleet.start("a", world.caller))
        for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow
        yield* Fiber.interrupt(starting)
        yield* fleet.start("a", world.caller)
        yield* World.untilAgent(fleet, "a", ({ state }) => state === "Running")
        yield* fleet.stop("a", world.caller)
      }
      const begun = (yield* runesOf(world, "worker.started")).map((rune) => rune.payload["incarnation"])
      assert.strictEqual(new Set(begun).size, begun.length, "each incarnation has its own number")
    })
  )

  it.live("a message whose sender goes away in the middle wakes its agent if it was taken", () =>
    Effect.gen(function* () {
      const backend = ScriptedBackend.make([works])
      const world = yield* World.make(backend)
      world.configure({ agents: { a: World.command() } })
      const fleet = yield* world.open
      yield* fleet.register(world.config, world.caller)
      yield* World.untilAgent(fleet, "a", ({ state }) => state === "BuildingPrompt")
      for (let turns = 0; turns < 30; turns++) {
        const sending = yield* Effect.forkChild(fleet.send("a", { text: `m${turns}`, how: "queue" }, world.caller))
        for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow
        yield* Fiber.interrupt(sending)
        yield* World.untilAgent(fleet, "a", ({ inbox, state }) => inbox === 0 && state === "BuildingPrompt")
      }
    })
  )

  it.live("a settle that was broken off is made good by the next reload, though the file is the same", () =>
    Effect.gen(function* () {
      const world = yield* World.make(ScriptedBackend.make([stays]))
      const [a, b] = [World.command(), World.command()]
      world.configure({ agents: { a } })
      const fleet = yield* world.open
      yield* fleet.register(world.config, world.caller)
      for (let turns = 0; turns < 60; turns++) {
        world.configure({ agents: turns % 2 === 0 ? { a, b } : { a } })
        const reading = yield* Effect.forkChild(fleet.register(world.config, world.caller))
        for (let turn = 0; turn < turns * 20; turn++) yield* Effect.yieldNow
        yield* Fiber.interrupt(reading)
        const { agents } = yield* fleet.register(world.config, world.caller)
        assert.deepStrictEqual(agents, turns % 2 === 0 ? ["a", "b"] : ["a"])
      }
    })
  )

  it.live("a plan's task that an agent had when the file let it go is not worked on when it comes back", () =>
    Effect.gen(function* () {
      const world = yield* World.make(ScriptedBackend.make([stays]))
      const [a, b] = [World.command(), World.command({ interruptGrace: "50ms" })]
      world.configure({ agents: { a, b } })
      const { crew, fleet } = yield* world.both
      yield* fleet.register(world.config, world.caller)
      const { conversation } = yield* fleet.agent("b", world.caller)
      const to = { conversation, agent: "b" }
      yield* crew.post(to, { messageId: "plan/g1/a/1", from: "plan:g1", text: "a task", alone: true })
      yield* crew.post(to, { messageId: "plan/g1/b/1", from: "plan:g1", text: "another", alone: true })
      yield* World.until(runesOf(world, "turn.started"), (runes) => runes.length === 1)
      world.configure({ agents: { a } })
      yield* fleet.register(world.config, world.caller)
      world.configure({ agents: { a, b } })
      yield* fleet.register(world.config, world.caller)
      yield* fleet.send("b", { text: "a word", how: "queue" }, world.caller)
      const begun = yield* World.until(runesOf(world, "turn.started"), (runes) => runes.length === 2)
      const carried = begun.map(({ payload }) => (payload["event"] as { messageIds: ReadonlyArray<string> }).messageIds)
      assert.deepStrictEqual(carried[0], ["plan/g1/a/1"])
      assert.lengthOf(carried[1]!, 1)
      assert.notInclude(["plan/g1/a/1", "plan/g1/b/1"], carried[1]![0])
    })
  )

  it.live("stop ends a run that takes no interrupt, after its grace", () =>
    Effect.gen(function* () {
      const world = yield* World.make(ScriptedBackend.make([{ ...stays, ignoreInterrupt: true }]))
      world.configure({ agents: { a: World.command({ mode: "loop", prompt: "x", interruptGrace: "50ms" }) } })
      const fleet = yield* world.open
      yield* fleet.register(world.config, world.caller)
      yield* World.untilAgent(fleet, "a", ({ state }) => state === "Running")
      const { message } = yield* Effect.timeout(fleet.stop("a", world.caller), PATIENCE)
      assert.match(message, /no process of it is left/)
    })
  )

  it.live("stopped while it stops by itself, an agent is stopped, and nobody is refused", () =>
    Effect.gen(function* () {
      const fails: ScriptedBackend.Script = { outcome: { _tag: "Fatal", detail: "no key", remedy: "log in" } }
      const world = yield* World.make(ScriptedBackend.make([fails]))
      world.configure({ agents: { a: World.command({ autostart: false, mode: "loop", prompt: "x" }) } })
      const fleet = yield* world.open
      yield* fleet.register(world.config, world.caller)
      for (let turns = 0; turns < 60; turns++) {
        yield* fleet.start("a", world.caller)
        for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow
        const exit = yield* Effect.exit(fleet.stop("a", world.caller))
        assert.isTrue(Exit.isSuccess(exit), String(exit))
      }
    })
  )
})
