/** Sub-agents and their parents: what ends with whom, and what a parent hears of them. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Latch, Scope, Stream } from "effect"
import * as AgentView from "../../../src/agents/run/AgentView.ts"
import * as Recovery from "../../../src/projects/Recovery.ts"
import { why } from "../../../src/projects/service/Why.ts"
import type { Backend } from "../../../src/runs/Backend.ts"
import type { Agents } from "../../../src/projects/service/Agents.ts"
import * as ScriptedBackend from "../../../src/runs/ScriptedBackend.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import * as Puppet from "./Puppet.ts"
import { copyOf, mortal } from "./TestLog.ts"
import * as World from "./World.ts"
import { sample } from "../../support/Long.ts"

const agent = (more: object = {}) => World.command({ interruptGrace: "100ms", backoff: { base: "1ms" }, ...more })
const hangs: ScriptedBackend.Script = { turns: [{ hang: true }] }
const answers: ScriptedBackend.Script = { turns: [{ output: "all is well" }] }

/** A backend whose agents play `answers` where their first message names them so. */
const someAnswer = (): Backend => {
  const hanging = ScriptedBackend.make([hangs])
  const answering = ScriptedBackend.make([answers])
  return { ...hanging, start: (spec) => (/task of wise/.test(spec.prompt) ? answering : hanging).start(spec) }
}

const world = Effect.fnUntraced(function* (backend: Backend, agents: object = { boss: agent() }) {
  const made = yield* World.make(backend)
  made.configure({ agents })
  return made
})

/** A daemon's life. */
const daemon = <A, E>(of: World.World, use: (fleet: Agents["Service"]) => Effect.Effect<A, E, Scope.Scope>) =>
  Effect.scoped(Effect.flatMap(of.open, use))

/** With its boss at work or ready for it. */
const begin = Effect.fnUntraced(function* (w: World.World, fleet: Agents["Service"]) {
  yield* fleet.register(w.config, w.caller)
  yield* World.untilAgent(fleet, "boss", ({ state }) => state === "BuildingPrompt")
})

const spawn = (w: World.World, fleet: Agents["Service"], name: string, parent = "boss") =>
  fleet.spawn(parent, { name, task: `task of ${name}` }, w.caller)

const runesOf = (w: World.World, ...kinds: ReadonlyArray<string>) =>
  Effect.map(Stream.runCollect(w.log.read({ kinds })), (runes): ReadonlyArray<Rune> => [...runes])

const running = (fleet: Agents["Service"], name: string) =>
  World.untilAgent(fleet, name, ({ state }) => state === "Running")

/** Messages that the boss was told, oldest first. */
const heard = Effect.fnUntraced(function* (w: World.World) {
  const received = yield* runesOf(w, "inbox.received")
  return received
    .filter(({ actor }) => actor === "inbox/boss")
    .map(({ payload }) => (payload["event"] as { message: { from: string; text: string } }).message)
})

const report = (w: World.World, fleet: Agents["Service"], summary: string, turnId: string | null = null) =>
  Effect.flatMap(fleet.agent("kid", w.caller), ({ conversation }) =>
    fleet.report(
      { conversation, agent: "kid", turnId, may: ["report"] },
      { status: "done", summary, evidence: ["abc123"] }
    )
  )

const names = (count: number) => Array.from({ length: count }, (_, n) => `kid${n + 1}`)

describe("sub-agents that wait for a place", () => {
  it.live("end with their parent, and never start, whatever comes after", () =>
    Effect.gen(function* () {
      const w = yield* world(ScriptedBackend.make([hangs]))
      yield* daemon(w, (fleet) =>
        Effect.gen(function* () {
          yield* begin(w, fleet)
          yield* Effect.forEach(names(14), (name) => spawn(w, fleet, name), { discard: true })
          const waits = yield* fleet.agent("kid14", w.caller)
          assert.strictEqual(waits.detail, AgentView.QUEUED)
          assert.deepInclude(why([], waits), { advice: null })
          yield* fleet.stop("boss", w.caller)
          const ended = yield* fleet.agent("kid14", w.caller)
          assert.strictEqual(ended.detail, "was never started")
          const told = why(yield* runesOf(w, "agent.terminated"), ended).lines.map(({ text }) => text)
          assert.include(told, "ended before it started: its parent boss has ended")
          const ends = yield* runesOf(w, "agent.terminated")
          for (const name of names(14).slice(10)) {
            const end = ends.find(({ actor }) => actor === `agent/${name}`)
            assert.strictEqual(end?.payload["reason"], "its parent boss has ended")
          }
          yield* fleet.start("boss", w.caller)
          yield* World.untilAgent(fleet, "boss", ({ state }) => state === "BuildingPrompt")
          assert.notMatch((yield* fleet.conversations)[0]!.detail, /waiting for a free slot/)
        })
      )
      const fleet = yield* w.open
      yield* World.untilAgent(fleet, "boss", ({ state }) => state === "BuildingPrompt")
      const started = (yield* runesOf(w, "worker.started")).map(({ actor }) => actor)
      assert.sameMembers(started, ["worker/boss", ...names(10).map((name) => `worker/${name}`), "worker/boss"])
    })
  )

  it.live("end also where the daemon dies between their parent's end and theirs", () =>
    Effect.gen(function* () {
      const first = yield* world(ScriptedBackend.make([hangs]))
      yield* daemon(first, (fleet) =>
        Effect.gen(function* () {
          yield* begin(first, fleet)
          yield* Effect.forEach(names(12), (name) => spawn(first, fleet, name), { discard: true })
          yield* fleet.stop("boss", first.caller)
        })
      )
      // as if it had died before the end of the last one
      const log = yield* copyOf(first.log, ({ actor }) => actor !== "agent/kid12")
      const w = new World.World(log, first.backends, first.folder)
      yield* w.open
      const ends = yield* World.until(runesOf(w, "agent.terminated"), (runes) => runes.length === 13)
      const late = ends.find(({ actor }) => actor === "agent/kid12")
      assert.strictEqual(late?.payload["reason"], "its parent boss has ended")
      const started = (yield* runesOf(w, "worker.started")).map(({ actor }) => actor)
      assert.lengthOf(started, 11)
      assert.deepStrictEqual(yield* heard(w), [])
    })
  )

  it.live("are started by nobody before there is a place", () =>
    Effect.gen(function* () {
      const w = yield* world(ScriptedBackend.make([hangs]))
      const fleet = yield* w.open
      yield* begin(w, fleet)
      yield* Effect.forEach(names(11), (name) => spawn(w, fleet, name), { discard: true })
      for (const command of [fleet.start, fleet.restart]) {
        const { eventId, message } = yield* command("kid11", w.caller)
        assert.strictEqual(message, `shop/kid11 ${AgentView.QUEUED}.`)
        assert.isAbove(eventId, 0)
      }
      assert.lengthOf(yield* runesOf(w, "worker.started"), 11)
      yield* fleet.stop("kid1", w.caller)
      yield* World.untilAgent(fleet, "kid11", ({ state }) => state !== "Stopped")
    })
  )

  it.live("are ended by a person like any other, and make room", () =>
    Effect.gen(function* () {
      const w = yield* world(ScriptedBackend.make([hangs]))
      const fleet = yield* w.open
      yield* begin(w, fleet)
      yield* Effect.forEach(names(12), (name) => spawn(w, fleet, name), { discard: true })
      assert.match((yield* fleet.stop("kid11", w.caller)).message, /shop\/kid11 is stopped/)
      yield* fleet.stop("kid1", w.caller)
      yield* World.untilAgent(fleet, "kid12", ({ state }) => state !== "Stopped")
      const started = (yield* runesOf(w, "worker.started")).map(({ actor }) => actor)
      assert.notInclude(started, "worker/kid11")
      const told = yield* World.until(heard(w), (all) => all.length === 2)
      assert.deepStrictEqual(
        told.map(({ text }) => /kid\d+/.exec(text)?.[0]),
        ["kid11", "kid1"]
      )
    })
  )

  it.live("end with their conversation, and its log says so", () =>
    Effect.gen(function* () {
      const w = yield* world(ScriptedBackend.make([hangs]))
      const fleet = yield* w.open
      yield* begin(w, fleet)
      yield* Effect.forEach(names(11), (name) => spawn(w, fleet, name), { discard: true })
      yield* fleet.close("", { reason: "done", force: true }, w.caller)
      const ends = yield* runesOf(w, "agent.terminated")
      assert.lengthOf(ends, 12)
      assert.match(String(ends.find(({ actor }) => actor === "agent/kid11")?.payload["reason"]), /closed: done/)
      assert.deepStrictEqual(yield* heard(w), [])
    })
  )
})

describe("the end of a parent", () => {
  it.live("ends its children at once, whatever each takes, and stop answers when all of them are gone", () =>
    Effect.gen(function* () {
      const puppet = Puppet.make({ deaf: true })
      const kids = 4
      const all = Latch.makeUnsafe(false)
      let killed = 0
      // none dies before every one of them is being killed
      const stubborn: Backend = {
        ...puppet,
        start: (spec) =>
          Effect.map(puppet.start(spec), (run) => ({
            ...run,
            kill: Effect.suspend(() => {
              if (++killed === kids) all.openUnsafe()
              return Effect.andThen(all.await, run.kill)
            })
          }))
      }
      const w = yield* world(stubborn)
      const fleet = yield* w.open
      yield* begin(w, fleet)
      yield* spawn(w, fleet, "kid1")
      yield* running(fleet, "kid1")
      for (const name of ["kid2", "kid3"]) yield* spawn(w, fleet, name)
      yield* spawn(w, fleet, "kid4", "kid1")
      yield* Effect.forEach(names(kids), (name) => running(fleet, name), { discard: true })
      const { message } = yield* fleet.stop("boss", w.caller)
      assert.match(message, /4 sub-agents/)
      assert.lengthOf(yield* runesOf(w, "agent.terminated"), 5)
      assert.deepStrictEqual(
        puppet.runs.map(({ kills }) => kills > 0),
        [true, true, true, true]
      )
      const rows = yield* fleet.all
      assert.isTrue(rows.every(({ state }) => state === "Stopped"))
    })
  )

  it.live(
    "leaves no process of its children when stop answers, and one that is stopped already says so only then",
    () =>
      Effect.gen(function* () {
        const backend = ScriptedBackend.make([{ turns: [{ hang: true }], ignoreInterrupt: true }])
        const w = yield* world(backend)
        const fleet = yield* w.open
        yield* begin(w, fleet)
        yield* spawn(w, fleet, "kid")
        yield* running(fleet, "kid")
        const both = yield* Effect.all([fleet.stop("boss", w.caller), fleet.stop("boss", w.caller)], {
          concurrency: "unbounded"
        })
        assert.strictEqual(backend.alive(), 0)
        assert.match(both[0].message, /is stopped/)
        assert.lengthOf(yield* runesOf(w, "agent.terminated"), 2)
      })
  )

  it.live(
    "is `parent_closed` to each child: at rest at once, amid a turn once that is over; a person's stop is a kill",
    () =>
      Effect.gen(function* () {
        const w = yield* world(someAnswer())
        const fleet = yield* w.open
        yield* begin(w, fleet)
        for (const name of ["wise", "busy", "other"]) yield* spawn(w, fleet, name)
        yield* running(fleet, "busy")
        yield* spawn(w, fleet, "grandkid", "busy")
        yield* running(fleet, "grandkid")
        yield* World.untilAgent(fleet, "wise", ({ detail }) => detail.endsWith("waits for a message"))
        yield* fleet.stop("other", w.caller)
        yield* fleet.stop("boss", w.caller)
        const ends = new Map((yield* runesOf(w, "agent.terminated")).map((rune) => [rune.actor, rune]))
        const how = (name: string) => ends.get(`agent/${name}`)?.payload["event"]
        assert.deepStrictEqual(how("wise"), { _tag: "parent_closed", parentId: "boss" })
        assert.deepStrictEqual(how("busy"), { _tag: "parent_closed", parentId: "boss" })
        assert.deepStrictEqual(how("grandkid"), { _tag: "parent_closed", parentId: "busy" })
        assert.deepStrictEqual(
          ["other", "boss"].map((name) => (how(name) as { readonly _tag: string })._tag),
          ["kill", "kill"]
        )
        const cut = (yield* runesOf(w, "turn.interrupted", "turn.error")).filter(({ actor }) => actor === "turn/busy")
        assert.lengthOf(cut, 1)
        assert.isBelow(cut[0]!.eventId, ends.get("agent/busy")!.eventId)
        assert.deepStrictEqual(ends.get("agent/busy")!.payload["reason"], "its parent has ended")
      })
  )
})

describe("a parent that is started again", () => {
  for (const stands of ["at rest", "amid a turn", "cooling down"] as const) {
    it.live(`${stands}: the life of before has ended by then, and it may have sub-agents`, () =>
      Effect.gen(function* () {
        const fails: ScriptedBackend.Script = { outcome: { _tag: "Error", detail: "exit code 3" } }
        const first = yield* world(ScriptedBackend.make([stands === "cooling down" ? fails : hangs]), {
          boss: agent(stands === "cooling down" ? { backoff: { base: "10 minutes", cap: "10 minutes" } } : {})
        })
        const gate = Puppet.holding(first.log)
        const w = new World.World(gate.log, first.backends, first.folder)
        const fleet = yield* w.open
        yield* begin(w, fleet)
        if (stands !== "at rest") yield* fleet.send("boss", { text: "work", how: "queue" }, w.caller)
        if (stands === "amid a turn") yield* World.until(runesOf(w, "turn.started"), (runes) => runes.length === 1)
        if (stands === "cooling down") yield* World.untilAgent(fleet, "boss", ({ state }) => state === "CoolingDown")
        gate.hold(({ kind }) => kind === "agent.terminated")
        const again = yield* Effect.forkScoped(fleet.restart("boss", w.caller))
        yield* gate.caught
        yield* gate.free
        yield* Fiber.join(again)
        const kinds = (yield* runesOf(w, "worker.started", "agent.terminated")).map(({ kind }) => kind)
        assert.deepStrictEqual(kinds, ["worker.started", "agent.terminated", "worker.started"])
        assert.match((yield* spawn(w, fleet, "kid")).message, /kid is started as a sub-agent of/)
      })
    )
  }
})

describe("what a parent hears", () => {
  it.live("each report of its sub-agent, as a message from it, and nothing of its end then", () =>
    Effect.gen(function* () {
      const backend = ScriptedBackend.make([{ turns: [{ hang: true }] }])
      const w = yield* world(backend)
      const fleet = yield* w.open
      yield* begin(w, fleet)
      yield* spawn(w, fleet, "kid")
      yield* running(fleet, "kid")
      assert.match((yield* report(w, fleet, "it works")).message, /Reported to boss/)
      const told = yield* World.until(heard(w), (all) => all.length > 0)
      yield* fleet.stop("kid", w.caller)
      yield* World.until(runesOf(w, "agent.terminated"), (runes) => runes.length === 1)
      assert.lengthOf(yield* heard(w), 1)
      assert.strictEqual(told[0]!.from, "agent:kid")
      assert.match(told[0]!.text, /Report of your sub-agent kid: done\.\nit works\n\nEvidence:\n- abc123/)
      yield* World.until(
        Effect.sync(() => backend.played()),
        (all) => all.some(({ spec }) => /from the agent kid\nReport of/.test(spec.prompt))
      )
    })
  )

  it.live("what its task is answered with, as a message from it, and nothing of its end then", () =>
    Effect.gen(function* () {
      const w = yield* world(someAnswer())
      const fleet = yield* w.open
      yield* begin(w, fleet)
      yield* spawn(w, fleet, "wise")
      const told = yield* World.until(heard(w), (all) => all.length > 0)
      assert.deepInclude(told[0], { from: "agent:wise", text: "Answer of your sub-agent wise:\nall is well" })
      yield* fleet.stop("wise", w.caller)
      yield* World.until(runesOf(w, "agent.terminated"), (runes) => runes.length === 1)
      assert.lengthOf(yield* heard(w), 1)
    })
  )

  it.live("an answer to each of its own messages, not to a person's, nor beside a report of the same turn", () =>
    Effect.gen(function* () {
      const puppet = Puppet.make()
      const w = yield* world(puppet, { boss: agent(), kid: agent({ parent: "boss" }) })
      const fleet = yield* w.open
      yield* begin(w, fleet)
      const ask = (by: string, text: string) => fleet.send("kid", { text, how: "queue" }, { by, config: w.config })
      const answered = (count: number) =>
        World.until(
          Effect.zipWith(runesOf(w, "turn.completed"), runesOf(w, "turn.error"), (ended, failed) => [
            ...ended,
            ...failed
          ]),
          (runes) => runes.filter(isKids).length === count
        )
      const isKids = ({ actor }: Rune) => actor === "turn/kid"
      yield* ask("agent:boss", "first")
      const run = yield* puppet.run()
      const answer = (turnId: string, output: string) => run.say({ _tag: "TurnCompleted", turnId, output })
      const long = "x".repeat(100_000)
      yield* answer(run.spec.turnId, long)
      yield* answered(1)
      const turns = [
        ["ada", "a person asks", "for ada"],
        ["agent:boss", "second", "besides"],
        ["agent:boss", "third", " "]
      ] as const
      for (const [index, [by, text, output]] of turns.entries()) {
        yield* ask(by, text)
        const { turnId } = (yield* World.until(
          Effect.sync(() => run.sent),
          (sent) => sent.length === index + 1
        ))[index]!
        if (text === "second") yield* report(w, fleet, "reported", turnId)
        yield* answer(turnId, output)
        yield* answered(index + 2)
      }
      const told = yield* World.until(heard(w), (all) => all.length === 3)
      assert.match(told[0]!.text, /^Answer of your sub-agent kid:\nx+\n… \d+ characters are left out …\nx+$/)
      assert.isBelow(told[0]!.text.length, 10_000)
      assert.match(told[1]!.text, /^Report of your sub-agent kid/)
      assert.strictEqual(
        told[2]!.text,
        "Your sub-agent kid gave no answer: the turn ended without text and without a call."
      )
      // asked again, and never answered
      yield* ask("agent:boss", "fourth")
      yield* fleet.stop("kid", w.caller)
      const end = (yield* World.until(heard(w), (all) => all.length === 4))[3]!
      assert.match(end.text, /^Your sub-agent kid has ended without a report: stopped by ada/)
    })
  )

  it.live("an end without a report: how it came, and what it said last", () =>
    Effect.gen(function* () {
      const w = yield* world(ScriptedBackend.make([answers]), { boss: agent(), kid: agent({ parent: "boss" }) })
      const fleet = yield* w.open
      yield* begin(w, fleet)
      yield* fleet.send("kid", { text: "hello", how: "queue" }, w.caller)
      yield* World.until(runesOf(w, "turn.completed"), (runes) => runes.length === 1)
      yield* fleet.stop("kid", w.caller)
      const told = yield* World.until(heard(w), (all) => all.length === 1)
      assert.strictEqual(told[0]!.from, "agentd")
      assert.match(told[0]!.text, /kid has ended without a report: stopped by ada\.\n\n.*last turn:\n> all is well/)
    })
  )

  it.live("an end of its own sub-agent only: not of one that another had by that name", () =>
    Effect.gen(function* () {
      const w = yield* world(ScriptedBackend.make([hangs]), { boss: agent(), lady: agent() })
      const fleet = yield* w.open
      yield* begin(w, fleet)
      yield* World.untilAgent(fleet, "lady", ({ state }) => state === "BuildingPrompt")
      yield* spawn(w, fleet, "kid", "lady")
      yield* running(fleet, "kid")
      yield* fleet.stop("kid", w.caller)
      const ofLady = Effect.map(runesOf(w, "inbox.received"), (runes) =>
        runes.filter(({ actor }) => actor === "inbox/lady")
      )
      yield* World.until(ofLady, (all) => all.length === 1)
      yield* spawn(w, fleet, "kid")
      yield* running(fleet, "kid")
      yield* report(w, fleet, "it works")
      const told = yield* World.until(heard(w), (all) => all.length > 0)
      assert.match(told[0]!.text, /^Report of your sub-agent kid/)
    })
  )

  it.live("once, also where the daemon dies before it is told; and not of an end that was its own doing", () =>
    Effect.gen(function* () {
      const first = yield* world(ScriptedBackend.make([hangs]))
      const gate = Puppet.holding(first.log)
      const w = new World.World(gate.log, first.backends, first.folder)
      const lives = [1, 2]
      for (const _ of lives) {
        yield* daemon(w, (fleet) =>
          Effect.gen(function* () {
            yield* fleet.register(w.config, w.caller)
            yield* World.untilAgent(fleet, "boss", ({ state }) => state !== "Stopped")
            if ((yield* fleet.all).length === 1) yield* spawn(w, fleet, "kid")
            yield* running(fleet, "kid")
            // its report is durable, and the message that tells of it is not
            gate.hold(({ actor, kind }) => kind === "inbox.received" && actor === "inbox/boss")
            yield* Effect.forkScoped(Effect.exit(report(w, fleet, "it works")))
            yield* gate.caught
            yield* gate.die
          })
        )
        yield* gate.reborn
      }
      const fleet = yield* w.open
      yield* World.until(heard(w), (all) => all.length === 2)
      yield* fleet.stop("boss", w.caller)
      yield* daemon(w, () => Effect.sleep(50))
      const told = yield* heard(w)
      assert.lengthOf(told, 2)
      assert.isTrue(told.every(({ from }) => from === "agent:kid"))
      assert.strictEqual(new Set((yield* runesOf(w, "agent.reported")).map(({ eventId }) => eventId)).size, 2)
    })
  )

  it.live("the end of one whose daemon died before anybody was told, also where it lives again before its parent", () =>
    Effect.gen(function* () {
      const agents = { kid: agent({ parent: "boss" }), boss: agent() }
      const first = yield* world(ScriptedBackend.make([hangs]), agents)
      yield* daemon(first, (fleet) =>
        Effect.gen(function* () {
          yield* begin(first, fleet)
          yield* fleet.send("kid", { text: "go on", how: "queue" }, first.caller)
          yield* running(fleet, "kid")
          yield* fleet.stop("kid", first.caller)
        })
      )
      // an older daemon wrote the end of the worker, and not yet that of the life
      const [end] = yield* runesOf(first, "agent.terminated")
      const log = yield* copyOf(first.log, ({ eventId }) => eventId < end!.eventId)
      const w = new World.World(log, first.backends, first.folder)
      yield* w.open
      const told = yield* World.until(heard(w), (all) => all.length > 0)
      assert.match(told[0]!.text, /kid has ended without a report: stopped by ada/)
      assert.lengthOf(told, 1)
    })
  )

  it.live("nothing of a task that a channel or a plan gave: what is said of it is theirs", () =>
    Effect.gen(function* () {
      const w = yield* world(ScriptedBackend.make([hangs]), { boss: agent(), kid: agent({ parent: "boss" }) })
      const { crew, fleet } = yield* w.both
      yield* begin(w, fleet)
      const { conversation } = yield* fleet.agent("kid", w.caller)
      yield* crew.post(
        { conversation, agent: "kid" },
        { messageId: "plan/1/a/1", from: "plan:1", text: "x", alone: true }
      )
      yield* running(fleet, "kid")
      yield* World.until(runesOf(w, "turn.started"), (runes) => runes.length === 1)
      const [turn] = yield* runesOf(w, "turn.started")
      const { message } = yield* report(w, fleet, "it works", String(turn!.payload["turn_id"]))
      assert.strictEqual(message, "Reported.")
      assert.deepStrictEqual(yield* heard(w), [])
    })
  )

  it.live("nothing of the ends in a log of before it was told of them", () =>
    Effect.gen(function* () {
      const w = yield* world(ScriptedBackend.make([hangs]))
      const fleet = yield* w.open
      yield* begin(w, fleet)
      yield* spawn(w, fleet, "kid")
      yield* fleet.stop("kid", w.caller)
      yield* World.until(runesOf(w, "agent.terminated"), (ends) => ends.length === 1)
      const runes = yield* Stream.runCollect(w.log.read({}))
      const owed = (isOld: boolean) => {
        const records: Recovery.Records = new Map()
        for (const rune of runes) {
          if (rune.actor === "inbox/boss") continue
          const { task, ...payload } = rune.payload
          Recovery.apply(records, isOld && task !== undefined ? { ...rune, payload } : rune)
        }
        return [...records.values()].map(({ life }) => life.news.owed.size)
      }
      assert.deepStrictEqual([owed(false), owed(true)], [[1], [0]])
    })
  )

  for (const isHeard of [true, false]) {
    it.live(
      `each report, answer and end once, at whatever rune the daemon dies, ${isHeard ? "once" : "before"} it is heard of`,
      () =>
        Effect.gen(function* () {
          const each = sample(1, 4)
          const whole = yield* Effect.scoped(dies(Infinity, isHeard))
          assert.isAbove(whole, 20)
          const deaths = Array.from({ length: Math.ceil(whole / each) }, (_, index) => 1 + index * each)
          yield* Effect.forEach(deaths, (n) => Effect.scoped(dies(n, isHeard)), { concurrency: 8, discard: true })
        })
    )
  }
})

/** Until a boss has heard the report of one sub-agent, the answer of another and the end of a third; again from its beginning in each life. */
const drive = Effect.fnUntraced(function* (w: World.World, fleet: Agents["Service"]) {
  yield* fleet.register(w.config, w.caller)
  const isThere = (kind: string, actor: string) =>
    Effect.map(runesOf(w, kind), (runes) => runes.some((rune) => rune.actor === actor))
  const isSpawned = (name: string) =>
    Effect.map(runesOf(w, "agent.spawned"), (runes) => runes.some(({ payload }) => payload["agent_id"] === name))
  yield* World.untilAgent(fleet, "boss", ({ state }) => state !== "Stopped" && state !== "Initializing")
  for (const name of ["kid", "mute", "wise"]) if (!(yield* isSpawned(name))) yield* spawn(w, fleet, name)
  yield* running(fleet, "kid")
  if (!(yield* isThere("agent.reported", "voice/kid"))) yield* report(w, fleet, "it works")
  yield* Effect.ignore(fleet.stop("mute", w.caller))
  yield* World.until(heard(w), (all) =>
    ["agentd", "agent:kid", "agent:wise"].every((from) => all.some((one) => one.from === from))
  )
})

/** A death after so many appends, the last one heard of or not, and the life that follows; answers how many appends there were. */
const dies = Effect.fnUntraced(function* (n: number, isHeard: boolean) {
  const first = yield* world(someAnswer())
  const death = yield* mortal(first.log, n, isHeard)
  const w = new World.World(death.log, first.backends, first.folder)
  const life = yield* Scope.make()
  const fleet = yield* Scope.provide(w.open, life)
  const driving = yield* Effect.forkDetach(Effect.exit(drive(w, fleet)))
  yield* Effect.raceFirst(Fiber.join(driving), death.dead)
  yield* death.bury
  // what it still does is done by nobody: it takes its time to see that
  yield* Effect.forkDetach(Scope.close(life, Exit.void))
  const next = new World.World(first.log, first.backends, first.folder)
  yield* daemon(next, (fleet) => drive(next, fleet))
  // a third one finds nothing that is still to be told
  yield* daemon(next, (fleet) => World.untilAgent(fleet, "boss", ({ state }) => state === "Running"))
  const owed = (yield* runesOf(next, "agent.reported", "agent.answered", "agent.terminated")).map(
    ({ actor, eventId }) => `child/${actor.slice(actor.indexOf("/") + 1)}/${eventId}`
  )
  const told = (yield* runesOf(next, "inbox.received"))
    .filter(({ actor }) => actor === "inbox/boss")
    .map(({ payload }) => (payload["event"] as { message: { messageId: string } }).message.messageId)
  assert.sameMembers(told, owed, `after ${n} appends`)
  assert.lengthOf(owed, 3)
  assert.deepStrictEqual((yield* first.log.verify).problems, [])
  return death.count()
})
