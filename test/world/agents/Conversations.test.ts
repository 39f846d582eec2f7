/** Tests of a person's commands on whole conversations, over real agents on backends that play turns. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, type Scope, Stream } from "effect"
import { rmSync } from "node:fs"
import type { Agents } from "../../../src/projects/service/Agents.ts"
import * as Recovery from "../../../src/projects/Recovery.ts"
import * as ScriptedBackend from "../../../src/runs/ScriptedBackend.ts"
import * as ProjectName from "../../../src/config/ProjectName.ts"
import type { ConversationInfo } from "../../../src/domain/Messages.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import { openLog } from "./TestLog.ts"
import * as World from "./World.ts"

const hangs = { turns: [{ hang: true }] }
const answers = { turns: [{ output: "done" }] }
const at = (usd: number) => ({
  turns: [{ steps: [{ usage: { inputTokens: 60, outputTokens: 40, usd } }], output: "x" }]
})
const fails = { turns: [{ error: { errorType: "agent", message: "no", retry: false } }] }

const agent = (more: object = {}) => World.command({ interruptGrace: "200ms", ...more })

const conversationOf = (fleet: Agents["Service"], holds: (row: ConversationInfo) => boolean) =>
  Effect.map(
    World.until(fleet.conversations, (rows) => rows.some(holds)),
    (rows) => rows.find(holds)!
  )

const inState = (fleet: Agents["Service"], state: string) => conversationOf(fleet, (row) => row.state === state)
const busy = (fleet: Agents["Service"], turns = 1) => conversationOf(fleet, (row) => row.turnsActive === turns)
const say = (world: World.World, fleet: Agents["Service"], to: string, text = "work") =>
  fleet.send(to, { text, how: "queue" }, world.caller)

const runesOf = (world: World.World, ...kinds: ReadonlyArray<string>) =>
  Effect.map(Stream.runCollect(world.log.read({ kinds })), (runes): ReadonlyArray<Rune> => [...runes])

/** The fold of the log stands where the live conversation does. */
const folds = Effect.fnUntraced(function* (world: World.World, fleet: Agents["Service"]) {
  const records = yield* Effect.provideService(Recovery.recover, EventLog, world.log)
  for (const row of yield* fleet.conversations) {
    const { life } = records.get(row.conversation)!
    assert.strictEqual(life.broken, undefined)
    const { data, entered, state } = life.snapshot
    assert.deepStrictEqual([state, entered, data.turns, data.turnIds.length, life.spent], [
      row.state,
      row.restsOn,
      row.turns,
      row.turnsActive,
      { ...row.spent }
    ] as unknown)
  }
})

const world = Effect.fnUntraced(function* (script: ScriptedBackend.Script, config: object) {
  const backend = ScriptedBackend.make([script])
  const made = yield* World.make(backend)
  made.configure(config)
  return { world: made, backend }
})

/** A daemon's life. */
const daemon = <A, E>(
  of: World.World,
  use: (fleet: Agents["Service"]) => Effect.Effect<A, E, Scope.Scope>
): Effect.Effect<A, E> => Effect.scoped(Effect.flatMap(of.open, use))

const refused = <A>(command: Effect.Effect<A, unknown>) =>
  Effect.map(Effect.flip(command), (error) => error as { readonly message: string; readonly remedy: string })

describe("a conversation", () => {
  it.live("is created with its project, active with its first agent, and folds to where it stands", () =>
    Effect.gen(function* () {
      const made = yield* world(answers, { agents: { a: agent() } })
      const fleet = yield* made.world.open
      yield* fleet.register(made.world.config, made.world.caller)
      yield* say(made.world, fleet, "a")
      const row = yield* conversationOf(fleet, ({ turns, turnsActive }) => turns === 1 && turnsActive === 0)
      assert.deepInclude(row, { state: "active", project: "shop", agents: ["a"], turnErrors: 0, archive: null })
      assert.deepStrictEqual(
        (yield* runesOf(made.world, "session.created", "session.activated")).map(({ kind }) => kind),
        ["session.created", "session.activated"]
      )
      yield* folds(made.world, fleet)
    })
  )

  it.live("one of an older agentd's, without session.created, gets it when it is recovered", () =>
    Effect.gen(function* () {
      const made = yield* world(answers, { agents: { a: agent() } })
      yield* daemon(made.world, (fleet) => fleet.register(made.world.config, made.world.caller))
      const [{ stream }] = (yield* runesOf(made.world, "session.created")) as [Rune]
      const older = yield* world(answers, { agents: { a: agent({ autostart: false }) } })
      yield* older.world.log.append([
        {
          stream,
          kind: "project.registered",
          actor: "project",
          payload: { config: older.world.config, name: "shop" }
        }
      ])
      const fleet = yield* older.world.open
      assert.strictEqual((yield* fleet.conversations)[0]?.state, "created")
      assert.strictEqual((yield* runesOf(older.world, "session.created"))[0]?.stream, stream)
    })
  )

  it.live("one whose log does not fold is set apart, says why, and nothing is written to it", () =>
    Effect.gen(function* () {
      const { world: w } = yield* world(answers, { agents: { a: agent() } })
      const stream = ProjectName.conversationId(w.config)
      const payload = { config: w.config, name: "shop" }
      const event = { _tag: "resume_requested", by: "ada" }
      yield* w.log.append([
        { stream, kind: "project.registered", actor: "project", payload },
        { stream, kind: "session.resumed", actor: `conversation/${stream}`, payload: { event } }
      ])
      const fleet = yield* w.open
      const [row] = yield* fleet.conversations
      assert.strictEqual(row?.state, "damaged")
      assert.match(row?.detail ?? "", /resume_requested.*does not fold/)
      const { message } = yield* refused(fleet.pause("", { inFlight: "complete", reason: "" }, w.caller))
      assert.match(message, /is set apart, because its log is damaged: .*does not fold/)
      assert.lengthOf(Array.from(yield* Stream.runCollect(w.log.read({ stream }))), 2)
      yield* fleet.close("", { reason: "", force: false }, w.caller)
      assert.strictEqual((yield* fleet.conversations)[0]?.state, "closed")
      assert.lengthOf(Array.from(yield* Stream.runCollect(w.log.read({ stream }))), 2)
    })
  )
})

describe("pause", () => {
  it.live("before the conversation has begun names the agent to start, and none where the project has none", () =>
    Effect.gen(function* () {
      const options = { inFlight: "complete", reason: "" } as const
      const remedyIn = Effect.fnUntraced(function* (agents: object) {
        const made = yield* world(answers, { agents })
        const fleet = yield* made.world.open
        yield* fleet.register(made.world.config, made.world.caller)
        return (yield* refused(fleet.pause("", options, made.world.caller))).remedy
      })
      assert.match(yield* remedyIn({ a: agent({ autostart: false }) }), /agentd start shop\/a$/)
      assert.match(yield* remedyIn({}), /^agentd project show shop$/)
    })
  )

  it.live("interrupts what is in flight, refuses new input by name, and offers the work again when it is resumed", () =>
    Effect.gen(function* () {
      const { backend, world: w } = yield* world(hangs, { agents: { a: agent() } })
      const fleet = yield* w.open
      yield* fleet.register(w.config, w.caller)
      yield* say(w, fleet, "a", "the errand")
      yield* busy(fleet)
      const { message } = yield* fleet.pause("", { inFlight: "interrupt", reason: "lunch" }, w.caller)
      assert.match(message, /paused; 1 turn being interrupted/)
      const row = yield* conversationOf(fleet, ({ turnsActive }) => turnsActive === 0)
      assert.deepInclude(row, { state: "paused", turnErrors: 0 })
      assert.match(row.detail, /paused by ada: lunch/)
      const error = yield* refused(say(w, fleet, "a"))
      assert.match(error.message, /is paused by ada: lunch. It accepts no new input/)
      assert.match(error.remedy, /agentd project resume shop/)
      assert.strictEqual(backend.played().flatMap(({ spec }) => spec.prompt.match(/errand/g) ?? []).length, 1)
      yield* fleet.resume("shop", w.caller)
      yield* busy(fleet)
      const asked = backend.played().flatMap(({ spec, turns }) => [spec.prompt, ...(turns?.inputs ?? [])])
      assert.match(asked.at(-1)!, /the errand/)
      yield* folds(w, fleet)
    })
  )

  it.live("lets what is in flight end where that is asked for, and starts nothing after it", () =>
    Effect.gen(function* () {
      const { world: w } = yield* world(
        { turns: [{ steps: [{ wait: "150 millis" }], output: "x" }] },
        { agents: { a: agent() } }
      )
      const fleet = yield* w.open
      yield* fleet.register(w.config, w.caller)
      yield* say(w, fleet, "a", "one")
      yield* busy(fleet)
      yield* say(w, fleet, "a", "two")
      yield* fleet.pause("", { inFlight: "complete", reason: "" }, w.caller)
      const row = yield* conversationOf(fleet, ({ turnsActive }) => turnsActive === 0)
      assert.deepInclude(row, { state: "paused", turns: 1 })
      assert.deepStrictEqual(
        (yield* runesOf(w, "turn.completed", "turn.interrupted")).map(({ kind }) => kind),
        ["turn.completed"]
      )
      yield* fleet.resume("", w.caller)
      yield* conversationOf(fleet, ({ turns, turnsActive }) => turns === 2 && turnsActive === 0)
    })
  )

  it.live("outlasts a restart: agents come to life and start no turn", () =>
    Effect.gen(function* () {
      const { backend, world: w } = yield* world(hangs, { agents: { a: agent() } })
      yield* daemon(w, (fleet) =>
        Effect.gen(function* () {
          yield* fleet.register(w.config, w.caller)
          yield* say(w, fleet, "a", "the errand")
          yield* busy(fleet)
          yield* fleet.pause("", { inFlight: "interrupt", reason: "night" }, w.caller)
        })
      )
      const before = backend.played().length
      const fleet = yield* w.open
      yield* inState(fleet, "paused")
      yield* World.until(fleet.all, (rows) => rows.length === 1)
      yield* Effect.sleep(100)
      assert.strictEqual(backend.played().length, before)
      assert.strictEqual((yield* fleet.conversations)[0]?.turnsActive, 0)
      yield* fleet.resume("", w.caller)
      yield* busy(fleet)
      yield* folds(w, fleet)
    })
  )

  it.live("is refused with what is in the way, and answered where it is so already", () =>
    Effect.gen(function* () {
      const { world: w } = yield* world(answers, { agents: { a: agent({ autostart: false }) } })
      const fleet = yield* w.open
      yield* fleet.register(w.config, w.caller)
      const options = { inFlight: "interrupt", reason: "" } as const
      assert.match((yield* refused(fleet.pause("", options, w.caller))).message, /has not started/)
      assert.match((yield* refused(fleet.resume("", w.caller))).message, /has not started/)
      yield* fleet.start("a", w.caller)
      yield* inState(fleet, "active")
      assert.match((yield* refused(fleet.resume("", w.caller))).message, /is active/)
      yield* fleet.pause("", options, w.caller)
      assert.match((yield* fleet.pause("", options, w.caller)).message, /is paused already/)
      const unknown = yield* refused(fleet.pause("nobody", options, w.caller))
      assert.match(unknown.message, /no conversation "nobody"/)
      assert.match(unknown.remedy, /There are: shop-/)
      const nowhere = yield* refused(fleet.pause("", options, { by: "ada", config: null }))
      assert.match(nowhere.message, /Which conversation/)
    })
  )
})

describe("suspend", () => {
  it.live("a spent budget suspends at once; only resume leads out, with a fresh budget; a reload does not", () =>
    Effect.gen(function* () {
      const agents = { a: agent() }
      const { backend, world: w } = yield* world(at(1), { agents, conversation: { budget: { usd: 2 } } })
      const fleet = yield* w.open
      yield* fleet.register(w.config, w.caller)
      yield* say(w, fleet, "a", "one")
      yield* conversationOf(fleet, ({ turns, turnsActive }) => turns === 1 && turnsActive === 0)
      yield* say(w, fleet, "a", "two")
      const row = yield* inState(fleet, "suspended")
      assert.match(row.detail, /the budget of usd is spent/)
      assert.deepInclude(row.spent, { usd: 2, tokens: 200 })
      assert.deepInclude(row.limits, { usd: 2, tokens: null })
      const error = yield* refused(say(w, fleet, "a"))
      assert.match(error.message, /suspended: the budget of usd is spent/)
      assert.match(error.remedy, /agentd project resume shop/)
      w.configure({ agents, conversation: { budget: { usd: 100 } } })
      yield* fleet.register(w.config, w.caller)
      assert.strictEqual((yield* fleet.conversations)[0]?.state, "suspended")
      const played = backend.played().length
      yield* fleet.resume("", w.caller)
      const again = yield* inState(fleet, "active")
      assert.deepInclude(again, { turnErrors: 0 })
      assert.deepInclude(again.limits, { usd: 100 })
      assert.deepStrictEqual(
        (yield* runesOf(w, "session.unsuspended")).map(({ trigger }) => trigger),
        ["budget_replenished"]
      )
      yield* say(w, fleet, "a", "three")
      yield* conversationOf(fleet, ({ turns, turnsActive }) => turns >= 3 && turnsActive === 0)
      assert.isAtLeast(backend.played().length, played)
      yield* folds(w, fleet)
    })
  )

  it.live("interrupts the turns of the others, which are offered again", () =>
    Effect.gen(function* () {
      const spends = ScriptedBackend.make([
        { turns: [{ steps: [{ usage: { inputTokens: 10, outputTokens: 0 } }], output: "x" }] }
      ])
      const waits = ScriptedBackend.make([hangs])
      const w = yield* World.make(waits, (backend) =>
        Effect.succeed("argv" in backend && backend.argv?.[0] === "spend" ? spends : waits)
      )
      w.configure({
        agents: { a: agent(), b: agent({ backend: { type: "command", argv: ["spend"] } }) },
        conversation: { budget: { tokens: 10 } }
      })
      const fleet = yield* w.open
      yield* fleet.register(w.config, w.caller)
      yield* say(w, fleet, "a", "the errand")
      yield* busy(fleet)
      yield* say(w, fleet, "b")
      yield* conversationOf(fleet, ({ state, turnsActive }) => state === "suspended" && turnsActive === 0)
      yield* fleet.resume("", w.caller)
      yield* busy(fleet)
      const asked = waits.played().flatMap(({ spec, turns }) => [spec.prompt, ...(turns?.inputs ?? [])])
      assert.match(asked.at(-1)!, /the errand/)
    })
  )

  it.live("is not suspended for turns whose end is not their agent's fault", () =>
    Effect.gen(function* () {
      const limited = { turns: [{ error: { errorType: "rate_limit", message: "later", retry: true } }] }
      const quick = agent({ maxConsecutiveErrors: 100, maxTotalErrors: 100, backoff: { base: "1ms", cap: "1ms" } })
      const made = yield* world(limited, { agents: { a: quick }, conversation: { maxTurnErrors: 2 } })
      const fleet = yield* made.world.open
      yield* fleet.register(made.world.config, made.world.caller)
      yield* say(made.world, fleet, "a")
      yield* World.until(runesOf(made.world, "turn.error"), (errors) => errors.length > 3)
      assert.deepInclude((yield* fleet.conversations)[0], { state: "active", turnErrors: 0 })
    })
  )

  it.live("is not suspended for turns that agentd itself lost, however many", () =>
    Effect.gen(function* () {
      const quick = agent({ backoff: { base: "1ms", cap: "1ms" } })
      const made = yield* world(hangs, { agents: { a: quick, b: quick }, conversation: { maxTurnErrors: 2 } })
      for (const life of [1, 2]) {
        yield* daemon(made.world, (fleet) =>
          Effect.gen(function* () {
            yield* fleet.register(made.world.config, made.world.caller)
            if (life === 1) for (const name of ["a", "b"]) yield* say(made.world, fleet, name)
            yield* conversationOf(fleet, ({ turns, turnsActive }) => turns === 2 * life && turnsActive === 2)
            assert.deepInclude((yield* fleet.conversations)[0], { state: "active", turnErrors: 0 })
            yield* folds(made.world, fleet)
          })
        )
      }
    })
  )

  it.live("turn errors in a row suspend it, as many as the file says", () =>
    Effect.gen(function* () {
      const { world: w } = yield* world(fails, {
        agents: { a: agent({ maxConsecutiveErrors: 100, maxTotalErrors: 100, backoff: { base: "1ms", cap: "1ms" } }) },
        conversation: { maxTurnErrors: 2 }
      })
      const fleet = yield* w.open
      yield* fleet.register(w.config, w.caller)
      yield* say(w, fleet, "a", "one")
      yield* conversationOf(fleet, ({ turnErrors }) => turnErrors === 1)
      yield* say(w, fleet, "a", "two")
      const row = yield* inState(fleet, "suspended")
      assert.match(row.detail, /2 turns in a row ended with an error/)
      yield* fleet.resume("", w.caller)
      assert.deepInclude(yield* inState(fleet, "active"), { turnErrors: 0 })
      assert.deepStrictEqual(
        (yield* runesOf(w, "session.unsuspended")).map(({ trigger }) => trigger),
        ["reset"]
      )
    })
  )

  it.live("errors count against their agent: by default it reaches 20 in all, and its conversation goes on", () =>
    Effect.gen(function* () {
      const { world: w } = yield* world(fails, {
        agents: { a: agent({ maxConsecutiveErrors: 100, backoff: { base: "1ms", cap: "1ms" } }) }
      })
      const fleet = yield* w.open
      yield* fleet.register(w.config, w.caller)
      for (let count = 1; count <= 20; count++) {
        yield* say(w, fleet, "a")
        yield* World.untilAgent(fleet, "a", ({ totalErrors }) => totalErrors === count)
      }
      const row = yield* World.untilAgent(fleet, "a", ({ state }) => state === "Stopped")
      assert.match(row.detail, /20 errors in total/)
      assert.deepInclude((yield* fleet.conversations)[0], { state: "active" })
    })
  )

  it.live("a lower threshold in the file holds at once", () =>
    Effect.gen(function* () {
      const agents = { a: agent({ maxConsecutiveErrors: 100, backoff: { base: "1ms", cap: "1ms" } }) }
      const { world: w } = yield* world(fails, { agents })
      const fleet = yield* w.open
      yield* fleet.register(w.config, w.caller)
      for (let count = 1; count <= 2; count++) {
        yield* say(w, fleet, "a")
        yield* conversationOf(fleet, ({ turnErrors }) => turnErrors === count)
      }
      w.configure({ agents, conversation: { maxTurnErrors: 2 } })
      yield* fleet.register(w.config, w.caller)
      const row = yield* inState(fleet, "suspended")
      assert.match(row.detail, /2 turns in a row ended with an error/)
      assert.deepStrictEqual(
        (yield* runesOf(w, "session.suspended")).map(({ trigger }) => trigger),
        ["error_threshold"]
      )
    })
  )

  it.live("agents that stopped for good suspend it; each counts once, also over restarts", () =>
    Effect.gen(function* () {
      const fatal = (detail: string): ScriptedBackend.Script => ({
        outcome: { _tag: "Fatal", detail, remedy: "log in" }
      })
      const backend = ScriptedBackend.make([fatal("no key"), fatal("no program"), fatal("no folder")])
      const w = yield* World.make(backend)
      w.configure({
        agents: { a: agent(), b: agent(), c: agent({ autostart: false }) },
        conversation: { maxFatalStops: 3 }
      })
      yield* daemon(w, (fleet) =>
        Effect.gen(function* () {
          yield* fleet.register(w.config, w.caller)
          yield* say(w, fleet, "a")
          yield* say(w, fleet, "b")
          yield* conversationOf(fleet, ({ fatalStops }) => fatalStops === 2)
        })
      )
      const fleet = yield* w.open
      yield* Effect.sleep(100)
      assert.deepInclude((yield* fleet.conversations)[0], { state: "active", fatalStops: 2 })
      yield* say(w, fleet, "c")
      yield* fleet.start("c", w.caller)
      assert.match((yield* inState(fleet, "suspended")).detail, /3 agents stopped permanently/)
    })
  )

  it.live(
    "the same cause counts once: what broke for many bars none of the healthy, nor does one that breaks again",
    () =>
      Effect.gen(function* () {
        const broken = (detail: string): ScriptedBackend.Script => ({
          outcome: { _tag: "Fatal", detail, remedy: "mend" }
        })
        const w = yield* World.make(
          ScriptedBackend.make([
            broken("a: no key in line 12"),
            broken("b: no key in line 7"),
            broken("c: no key in line 3"),
            broken("no more"),
            broken("nor now"),
            answers
          ])
        )
        w.configure({
          agents: { a: agent(), b: agent(), c: agent(), healthy: agent() },
          conversation: { maxFatalStops: 2 }
        })
        const fleet = yield* w.open
        yield* fleet.register(w.config, w.caller)
        const breaks = Effect.fnUntraced(function* (name: string, times: number) {
          yield* say(w, fleet, name)
          yield* World.until(
            runesOf(w, "session.moved", "session.suspended"),
            (all) =>
              all.filter(({ payload }) => (payload["event"] as { _tag: string })._tag === "agent_failed").length ===
              times
          )
        })
        for (const [index, name] of ["a", "b", "c"].entries()) yield* breaks(name, index + 1)
        for (const times of [4, 5]) {
          yield* fleet.start("c", w.caller)
          yield* breaks("c", times)
        }
        yield* say(w, fleet, "healthy")
        yield* conversationOf(fleet, ({ turns }) => turns > 0)
        assert.deepInclude((yield* fleet.conversations)[0], { state: "active", fatalStops: 1 })
        yield* folds(w, fleet)
      })
  )
})

describe("close", () => {
  it.live("ends every agent, the newest first, seals the stream, and refuses everything with the remedy", () =>
    Effect.gen(function* () {
      const { backend, world: w } = yield* world(hangs, { agents: { a: agent(), b: agent(), c: agent() } })
      const fleet = yield* w.open
      yield* fleet.register(w.config, w.caller)
      yield* say(w, fleet, "a")
      yield* busy(fleet)
      const { eventId, message } = yield* fleet.close("shop", { reason: "done", force: false }, w.caller)
      assert.match(message, /is closed after 1 turn/)
      assert.strictEqual(backend.alive(), 0)
      const terminated = yield* runesOf(w, "agent.terminated")
      assert.deepStrictEqual(
        terminated.map(({ actor }) => actor),
        ["agent/c", "agent/b", "agent/a"]
      )
      const [closed] = yield* runesOf(w, "session.closed")
      assert.strictEqual(closed?.eventId, eventId)
      assert.deepInclude(closed?.payload["final_stats"], { agents: 3, turns: 1 })
      const late = yield* Effect.flip(
        w.log.append([{ stream: closed!.stream, kind: "worktree.removed", actor: "worker/a", payload: { path: "/x" } }])
      )
      assert.deepInclude(late, { rule: "sealed" })
      assert.strictEqual((yield* w.log.tail({ stream: closed!.stream }, 1))[0]?.eventId, eventId)
      for (const command of [
        fleet.pause("shop", { inFlight: "interrupt", reason: "" }, w.caller),
        fleet.resume("", w.caller),
        fleet.close("", { reason: "", force: true }, w.caller),
        say(w, fleet, "a"),
        fleet.start("shop/a", w.caller),
        fleet.spawn("a", { name: "x", task: "t" }, w.caller)
      ]) {
        const error = yield* refused(command as Effect.Effect<unknown, unknown>)
        assert.match(error.message, /The conversation shop-\w+ of shop is closed/)
        assert.match(error.remedy, /agentd project new/)
      }
      const info = yield* fleet.register(w.config, w.caller)
      assert.match(info.problems[0]!, /is closed.*agentd project new/)
      yield* folds(w, fleet)
    })
  )

  it.live("after its grace an agent is ended by force; close --force waits for none", () =>
    Effect.gen(function* () {
      for (const force of [false, true]) {
        const { backend, world: w } = yield* world(
          { steps: [{ _tag: "Started" }], hang: true, ignoreInterrupt: true },
          { agents: { a: agent({ mode: "loop", prompt: "x", interruptGrace: force ? "2s" : "50ms" }) } }
        )
        const fleet = yield* w.open
        yield* fleet.register(w.config, w.caller)
        yield* World.untilAgent(fleet, "a", ({ state }) => state === "Running")
        yield* fleet.close("", { reason: "", force }, w.caller)
        assert.strictEqual(backend.alive(), 0)
      }
    })
  )

  it.live("one that the daemon's end cut off is finished by the next, though its caller has gone", () =>
    Effect.gen(function* () {
      const { world: w } = yield* world(hangs, {
        agents: { a: agent({ interruptGrace: "1 minute" }), b: agent() }
      })
      yield* daemon(w, (fleet) =>
        Effect.gen(function* () {
          yield* fleet.register(w.config, w.caller)
          yield* say(w, fleet, "a")
          yield* busy(fleet)
          const closing = yield* Effect.forkChild(fleet.close("", { reason: "done", force: false }, w.caller))
          yield* inState(fleet, "closing")
          yield* World.until(runesOf(w, "agent.terminated"), (runes) => runes.length === 1)
          assert.match((yield* refused(fleet.start("b", w.caller))).message, /is being closed by ada: done/)
          yield* Fiber.interrupt(closing)
        })
      )
      w.configure({ agents: { a: agent(), b: agent() } })
      const fleet = yield* w.open
      yield* inState(fleet, "closed")
      const closed = yield* runesOf(w, "session.closed")
      assert.strictEqual(closed.length, 1)
      assert.deepInclude(closed[0]!.payload["final_stats"], { agents: 2 })
      const terminated = (yield* runesOf(w, "agent.terminated")).map(({ actor }) => actor)
      assert.deepStrictEqual(terminated, ["agent/b", "agent/a"])
      yield* folds(w, fleet)
      const again = yield* refused(fleet.close("", { reason: "", force: false }, w.caller))
      assert.match(again.remedy, /agentd project new/)
    })
  )

  it.live(
    "one whose file and its last text are gone can be closed, too; one that was being closed then is closed by the next daemon",
    () =>
      Effect.gen(function* () {
        const { world: w } = yield* world(hangs, { agents: { a: agent() } })
        yield* daemon(w, (fleet) => fleet.register(w.config, w.caller))
        rmSync(w.config)
        rmSync(`${w.folder}/configs`, { recursive: true })
        const fleet = yield* w.open
        assert.match((yield* fleet.conversations)[0]!.detail, /is no longer stored/)
        const error = yield* refused(fleet.pause("", { inFlight: "interrupt", reason: "" }, w.caller))
        assert.match(error.remedy, /Fix .*agentd project close/)
        yield* fleet.close("", { reason: "gone", force: false }, w.caller)
        yield* inState(fleet, "closed")
        yield* folds(w, fleet)
      })
  )

  it.live(
    "a new conversation follows with an id of its own; the file's changes reach it, and the old one is still listed",
    () =>
      Effect.gen(function* () {
        const { world: w } = yield* world(answers, { agents: { a: agent() } })
        yield* daemon(w, (fleet) =>
          Effect.gen(function* () {
            yield* fleet.register(w.config, w.caller)
            const open = yield* refused(fleet.newConversation(w.config, w.caller))
            assert.match(open.message, /is open/)
            assert.match(open.remedy, /agentd project close shop/)
            yield* fleet.close("", { reason: "", force: false }, w.caller)
            const second = yield* fleet.newConversation(w.config, w.caller)
            assert.match(second.conversation, /^shop-[0-9a-f]{8}\.2$/)
            w.configure({ agents: { a: agent(), b: agent() } })
            assert.deepStrictEqual((yield* fleet.register(w.config, w.caller)).agents, ["a", "b"])
            yield* fleet.close("", { reason: "", force: false }, w.caller)
            yield* fleet.newConversation(w.config, w.caller)
            yield* say(w, fleet, "a")
          })
        )
        const fleet = yield* w.open
        const rows = yield* fleet.conversations
        assert.deepStrictEqual(rows.map(({ conversation, state }) => [conversation.slice(13), state]).toSorted(), [
          ["", "closed"],
          [".2", "closed"],
          [".3", "active"]
        ])
        assert.match((yield* fleet.conversation("shop", w.caller)).conversation, /\.3$/)
        assert.match((yield* fleet.conversation("", w.caller)).conversation, /\.3$/)
        assert.match((yield* fleet.agent("a", w.caller)).conversation, /\.3$/)
        const many = yield* refused(fleet.conversation(rows[0]!.conversation.slice(0, 8), w.caller))
        assert.match(many.message, /names 3 conversations/)
        assert.strictEqual((yield* fleet.projects).length, 1)
      })
  )
})

describe("archive", () => {
  it.live("is refused while it is open; then what there was is listed, also after a restart, and its runes stay", () =>
    Effect.gen(function* () {
      const backend = ScriptedBackend.make([at(1)])
      const w = yield* World.make(backend)
      w.configure({ agents: { a: agent() } })
      const file = `${w.folder}/state/runes.db`
      const life = <A, E>(
        use: (fleet: Agents["Service"], log: EventLog["Service"]) => Effect.Effect<A, E, Scope.Scope>
      ) =>
        Effect.scoped(
          Effect.gen(function* () {
            const log = yield* openLog({ file })
            const own = new World.World(log, w.backends, w.folder)
            return yield* use(yield* own.open, log)
          })
        )
      yield* life((fleet, log) =>
        Effect.gen(function* () {
          yield* fleet.register(w.config, w.caller)
          yield* fleet.send("a", { text: "x", how: "queue" }, w.caller)
          yield* conversationOf(fleet, ({ turns, turnsActive }) => turns === 1 && turnsActive === 0)
          const open = yield* refused(fleet.archive("", w.caller))
          assert.match(open.remedy, /agentd project close shop/)
          yield* fleet.close("", { reason: "", force: false }, w.caller)
          const { message } = yield* fleet.archive("", w.caller)
          assert.match(message, /is archived\. Its runes stay in the log/)
          assert.match((yield* fleet.archive("", w.caller)).message, /is archived already/)
          assert.deepStrictEqual((yield* log.verify).problems, [])
        })
      )
      yield* life((fleet, log) =>
        Effect.gen(function* () {
          const runes = yield* Stream.runCollect(log.read({ kinds: ["inbox.received"] }))
          assert.include(JSON.stringify(runes.map(({ payload }) => payload)), '"text":"x"')
          const [row] = yield* fleet.conversations
          assert.deepInclude(row, { state: "archived", project: "shop", agents: ["a"], turns: 1 })
          assert.deepInclude(row?.spent, { usd: 1, tokens: 100 })
          assert.match((yield* fleet.archive("shop", w.caller)).message, /is archived already/)
          const second = yield* fleet.newConversation(w.config, w.caller)
          assert.match(second.conversation, /\.2$/)
        })
      )
      yield* life((fleet) =>
        Effect.gen(function* () {
          assert.match((yield* fleet.conversation("", w.caller)).conversation, /\.2$/)
          assert.strictEqual((yield* fleet.conversations).length, 2)
        })
      )
    })
  )
})

describe("sub-agents", () => {
  const spawn = (w: World.World, fleet: Agents["Service"], name: string, parent = "a") =>
    fleet.spawn(parent, { name, task: `task of ${name}`, role: "helper" }, w.caller)

  it.live(
    "work with their parent's settings on their first message, survive a restart, and end with their parent",
    () =>
      Effect.gen(function* () {
        const { backend, world: w } = yield* world(hangs, {
          agents: {
            a: agent({
              mode: "loop",
              prompt: "the parent's",
              backend: { type: "command", argv: ["x"], env: { API_TOKEN: "hunter2hunter2" } }
            })
          }
        })
        yield* daemon(w, (fleet) =>
          Effect.gen(function* () {
            yield* fleet.register(w.config, w.caller)
            yield* World.untilAgent(fleet, "a", ({ state }) => state === "Running")
            assert.match((yield* spawn(w, fleet, "kid")).message, /started as a sub-agent of shop\/a/)
            const row = yield* World.untilAgent(fleet, "kid", ({ state }) => state === "Running")
            assert.deepInclude(row, { mode: "inbox", backend: "command" })
            yield* World.until(
              Effect.sync(() => backend.played()),
              (all) => all.some(({ spec }) => /task of kid/.test(spec.prompt))
            )
            assert.isFalse(
              JSON.stringify(yield* runesOf(w, "agent.spawned")).includes("hunter2"),
              "no secret in the log"
            )
            assert.strictEqual((yield* runesOf(w, "agent.spawned"))[0]?.actor, "agent/a")
            yield* spawn(w, fleet, "grandkid", "kid")
            yield* World.untilAgent(fleet, "grandkid", ({ state }) => state === "Running")
          })
        )
        const fleet = yield* w.open
        yield* World.until(fleet.all, (rows) => rows.length === 3 && rows.every(({ state }) => state === "Running"))
        const taken = yield* refused(spawn(w, fleet, "kid"))
        assert.match(taken.message, /an agent "kid" already exists/)
        yield* fleet.stop("a", w.caller)
        yield* World.until(fleet.all, (rows) => rows.every(({ state }) => state === "Stopped"))
        const orphan = yield* refused(spawn(w, fleet, "other"))
        assert.match(orphan.remedy, /agentd start shop\/a/)
        yield* fleet.start("a", w.caller)
        yield* World.untilAgent(fleet, "a", ({ state }) => state === "Running")
        yield* spawn(w, fleet, "kid")
        yield* World.untilAgent(fleet, "kid", ({ state }) => state === "Running")
      })
  )

  it.live("ten run, those above wait for a place in their order, the twenty-first is refused", () =>
    Effect.gen(function* () {
      const { world: w } = yield* world(answers, { agents: { a: agent() } })
      yield* daemon(w, (fleet) =>
        Effect.gen(function* () {
          yield* fleet.register(w.config, w.caller)
          yield* World.untilAgent(fleet, "a", ({ state }) => state === "BuildingPrompt")
          for (let n = 1; n <= 20; n++) {
            const { message } = yield* spawn(w, fleet, `kid${n}`)
            assert.match(message, n <= 10 ? /is started/ : /waits for a free slot/)
          }
          const error = yield* refused(spawn(w, fleet, "kid21"))
          assert.match(error.message, /20 run or wait already, and the limit is 20/)
          assert.match(error.remedy, /agentd stop kid1/)
          assert.match((yield* fleet.conversations)[0]!.detail, /10 sub-agents waiting for a free slot/)
        })
      )
      const fleet = yield* w.open
      yield* World.until(fleet.all, (rows) => rows.length === 21)
      assert.match((yield* fleet.conversations)[0]!.detail, /10 sub-agents waiting/)
      yield* fleet.stop("kid3", w.caller)
      yield* World.untilAgent(fleet, "kid11", ({ state }) => state !== "Stopped")
      assert.match((yield* fleet.conversations)[0]!.detail, /9 sub-agents waiting/)
      yield* spawn(w, fleet, "kid3")
      yield* fleet.close("", { reason: "", force: false }, w.caller)
      yield* folds(w, fleet)
    })
  )

  it.live("names that are no names, names of the file, and tasks of nothing are refused by field", () =>
    Effect.gen(function* () {
      const { world: w } = yield* world(answers, { agents: { a: agent(), constructor: agent({ autostart: false }) } })
      const fleet = yield* w.open
      yield* fleet.register(w.config, w.caller)
      yield* World.untilAgent(fleet, "a", ({ state }) => state === "BuildingPrompt")
      for (const [request, said] of [
        [{ name: "No Name", task: "x" }, /name: "No Name" is not a valid agent name/],
        [{ name: "constructor", task: "x" }, /an agent "constructor" already exists/],
        [{ name: "kid", task: " " }, /task: is empty/]
      ] as const) {
        assert.match((yield* refused(fleet.spawn("a", request, w.caller))).message, said)
      }
      const asleep = yield* refused(fleet.spawn("constructor", { name: "kid", task: "x" }, w.caller))
      assert.match(asleep.message, /shop\/constructor is not running/)
      yield* fleet.pause("", { inFlight: "interrupt", reason: "" }, w.caller)
      assert.match((yield* refused(spawn(w, fleet, "kid"))).message, /is paused/)
      assert.strictEqual((yield* runesOf(w, "agent.spawned")).length, 0)
    })
  )
})
