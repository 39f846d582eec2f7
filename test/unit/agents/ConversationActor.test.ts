/** Tests of a conversation over agents that are doubles: it counts, bars, interrupts and ends. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Duration, Effect, Layer, Schema, type Scope, Stream } from "effect"
import { ActorSystem } from "../../../src/core/event-actor/ActorSystem.ts"
import * as Supervisor from "../../../src/core/supervision/Supervisor.ts"
import { ConversationActor, type LivingAgent } from "../../../src/projects/ConversationActor.ts"
import * as ConversationRecovery from "../../../src/projects/ConversationRecovery.ts"
import { leaving } from "../../../src/projects/SubAgents.ts"
import { ConversationConfig } from "../../../src/config/Config.ts"
import type { Rune, RuneRef } from "../../../src/core/event-log/Rune.ts"
import { StorageError } from "../../../src/core/event-log/EventLog.ts"
import { memoryLog, type TestLog } from "../../world/agents/TestLog.ts"
import { actorSystem, until } from "../../world/agents/World.ts"

const STREAM = "shop-1"
const settings = Schema.decodeUnknownSync(ConversationConfig)

/** An agent that does what it is told, and says what that was. */
class Double {
  readonly name: string
  readonly said: Array<string>
  /** True where the agent ends by force only. */
  stubborn = false
  broken = false
  failing = 0
  /** The turn that it has. */
  turn: string | undefined = undefined

  constructor(name: string, said: Array<string>) {
    this.name = name
    this.said = said
  }

  private say(what: string): Effect.Effect<void> {
    return Effect.sync(() => void this.said.push(`${this.name} ${what}`))
  }

  get livingAgent(): LivingAgent {
    return {
      name: this.name,
      grace: Duration.millis(20),
      control: {
        announce: Effect.void,
        turnId: () => this.turn,
        wake: Effect.suspend(() => this.say("wakes")),
        interruptTurn: (by, reason, keep) => this.say(`is interrupted by ${by}: ${reason}${keep ? ", kept" : ""}`),
        terminate: ({ force }) =>
          Effect.suspend(() => {
            if (this.broken) return Effect.die(new Error("a bug"))
            if (this.failing-- > 0) return Effect.fail(new StorageError({ reason: "io", message: "no", remedy: "" }))
            if (this.stubborn && !force) return Effect.never
            return this.say(force ? "is killed" : "ends")
          })
      },
      clear: Effect.void
    }
  }
}

class World {
  readonly log: TestLog
  readonly said: Array<string> = []
  readonly ended: Array<string> = []
  config = settings({})
  readonly agents: ReadonlyArray<Double>

  constructor(log: TestLog) {
    this.log = log
    this.agents = ["a", "b", "c"].map((name) => new Double(name, this.said))
  }

  /** The conversation's life by the log. */
  readonly life = Effect.gen({ self: this }, function* () {
    const life = ConversationRecovery.fresh()
    const runes = yield* Stream.runCollect(this.log.read({ stream: STREAM }))
    for (const rune of runes) ConversationRecovery.apply(life, rune)
    return life
  })

  /** A daemon takes it over. */
  readonly open = Effect.gen({ self: this }, function* () {
    const { log } = this
    const context = yield* Layer.build(Layer.fresh(actorSystem(log)))
    const made = new ConversationActor(
      {
        conversation: STREAM,
        system: Context.get(context, ActorSystem),
        config: () => this.config,
        livingAgents: () => this.agents.map(({ livingAgent }) => livingAgent),
        leaving: Effect.sync(() => this.agents.map(({ livingAgent }) => livingAgent).toReversed()),
        ended: (agent) => Effect.sync(() => void this.ended.push(agent)),
        renewed: () => Effect.void,
        recoveredTo: yield* log.head
      },
      yield* this.life,
      yield* Effect.scope
    )
    const root = yield* Effect.orDie(
      Supervisor.make({ name: "conversation", intensity: 10, period: "30 seconds", children: [made.child] })
    )
    yield* Effect.forkScoped(root.ended)
    yield* made.create({ name: "shop", agents: ["a"] })
    return made
  })

  readonly runes: Effect.Effect<ReadonlyArray<Rune>, StorageError> = Effect.suspend(() =>
    Effect.map(Stream.runCollect(this.log.read({ stream: STREAM })), (runes) => [...runes])
  )

  /** A rune `agent.usage`, as an agent writes it before it tells. */
  readonly usage = (tokens: number) =>
    Effect.map(
      this.log.append([
        {
          stream: STREAM,
          kind: "agent.usage",
          actor: "agent/a",
          payload: { agent_id: "a", turn_id: "t", tokens, tool_calls: 0, wall_time: 0, usd: 0 }
        }
      ]),
      ([rune]) => rune!
    )
}

const world = Effect.gen(function* () {
  return new World(yield* memoryLog)
})

const state = (of: ConversationActor, wanted: string) =>
  until(
    Effect.sync(() => of.snapshot.state),
    (now) => now === wanted
  )

/** The rune of the conversation at that position, which is its seq too. */
const at = (eventId: number): RuneRef => ({ stream: STREAM, seq: eventId, eventId })

const test = (title: string, body: (world: World) => Effect.Effect<void, unknown, Scope.Scope>) =>
  it.live(title, () => Effect.flatMap(world, body))

describe("ConversationActor", () => {
  test("a turn is durable when it may start; one that is told twice, or is not known, counts once or not at all", (w) =>
    Effect.gen(function* () {
      const { home, snapshot } = yield* w.open
      assert.strictEqual(snapshot.state, "created")
      assert.isTrue(yield* home.newTurn("a", "t1", at(1)))
      assert.isFalse(yield* home.newTurn("a", "t1", at(1)))
      yield* home.turnEnded("a", "t1", "completed", at(2))
      yield* home.turnEnded("a", "t1", "error", at(2))
      yield* home.turnEnded("a", "t9", "error", at(2))
      const { snapshot: folded } = yield* w.life
      assert.deepInclude(folded.data, { turns: 1, turnIds: [], turnErrors: 0 })
      assert.strictEqual(folded.state, "active")
    }))

  test("turns that a kill -9 left open are ended as their own runes say; those that live on are left alone", (w) =>
    Effect.gen(function* () {
      const started = (turnId: string, actor: string) => ({
        stream: STREAM,
        kind: "turn.started",
        actor,
        payload: {
          event: { _tag: "start_turn", turnId, agentId: "a", input: "x", messageIds: [], source: "queue", at: 1 },
          turn_id: turnId,
          agent_id: actor
        }
      })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { home } = yield* w.open
          for (const [agent, turnId] of [
            ["a", "never begun"],
            ["a", "ended"],
            ["b", "goes on"],
            ["gone", "of nobody"]
          ] as const) {
            yield* home.newTurn(agent, turnId, at(1))
          }
          yield* w.log.append([
            started("ended", "turn/a"),
            started("goes on", "turn/b"),
            started("of nobody", "turn/gone")
          ])
          yield* w.log.append([
            {
              stream: STREAM,
              kind: "turn.error",
              actor: "turn/a",
              payload: {
                event: { _tag: "stream_error", turnId: "ended", errorType: "agent", message: "no" },
                turn_id: "ended",
                error_type: "agent",
                message: "no"
              }
            }
          ])
        })
      )
      const made = yield* w.open
      yield* made.tellAgain([])
      const { data } = yield* until(
        Effect.sync(() => made.snapshot),
        ({ data }) => data.turnIds.length === 1
      )
      assert.deepStrictEqual([data.turnIds, data.turnErrors], [["goes on"], 1])
    }))

  test("after a kill -9 a turn that goes on is open, whoever wrote first; what it had not heard of is told; what was to be interrupted is", (w) =>
    Effect.gen(function* () {
      const started = (agent: string, turnId: string) => ({
        stream: STREAM,
        kind: "turn.started",
        actor: `turn/${agent}`,
        payload: {
          event: {
            _tag: "start_turn",
            turnId,
            agentId: agent,
            input: "x",
            messageIds: [],
            source: "queue",
            at: 1
          },
          turn_id: turnId,
          agent_id: agent
        }
      })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { home } = yield* w.open
          // as agents do: the turn is durable before its conversation hears of it
          yield* w.log.append([started("a", "goes on"), started("b", "unheard")])
          yield* home.newTurn("a", "goes on", at(2))
        })
      )
      yield* Effect.scoped(
        Effect.gen(function* () {
          const made = yield* w.open
          yield* made.tellAgain([])
          yield* made.tellAgain([])
          const open = Effect.sync(() => made.snapshot.data.turnIds)
          yield* until(open, (turnIds) => turnIds.length === 2)
          yield* made.ask({ _tag: "turn_completed", turnId: "goes on", agentId: "a", outcome: "completed" })
          assert.deepStrictEqual(made.snapshot.data.turnIds, ["unheard"])
          assert.strictEqual(made.snapshot.data.turns, 2)
          yield* made.ask({ _tag: "pause_requested", by: "ada", reason: "", inFlight: "interrupt" })
        })
      )
      // the daemon died before anybody was told to stop
      w.said.length = 0
      w.agents[1]!.turn = "unheard"
      const made = yield* w.open
      yield* made.tellAgain([])
      yield* until(
        Effect.sync(() => w.said),
        (said) => said.some((line) => line.startsWith("b is interrupted by ada"))
      )
      assert.deepStrictEqual(made.snapshot.data.turnIds, ["unheard"])
    }))

  test("what was spent counts once, whoever tells it again; a reset begins anew, from its rune on", (w) =>
    Effect.gen(function* () {
      w.config = settings({ budget: { tokens: 100 } })
      const early = yield* Effect.scoped(
        Effect.gen(function* () {
          const { home, spent: _ } = yield* w.open
          yield* home.newTurn("a", "t1", at(1))
          const cause = yield* w.usage(60)
          yield* home.used("a", { tokens: 60 }, cause)
          return cause
        })
      )
      w.agents[0]!.turn = "t1"
      const made = yield* w.open
      assert.strictEqual(made.spent.tokens, 60)
      yield* made.home.used("a", { tokens: 60 }, early)
      assert.strictEqual(made.spent.tokens, 60)
      assert.strictEqual(made.home.barred(), undefined)
      yield* made.home.used("a", { tokens: 40 }, yield* w.usage(40))
      yield* state(made, "suspended")
      assert.match(made.home.barred() ?? "", /suspended: the budget of tokens is spent/)
      assert.isFalse(yield* made.home.newTurn("a", "t2", at(1)))
      yield* until(
        Effect.sync(() => w.said),
        (said) => said.some((line) => /^a is interrupted by agentd: .*, kept$/.test(line))
      )
      yield* made.resume("ada")
      yield* made.home.used("a", { tokens: 7 }, yield* w.usage(7))
      assert.strictEqual(made.spent.tokens, 7)
      const life = yield* w.life
      assert.deepStrictEqual([life.spent.tokens, life.snapshot.state], [7, "active"])
      yield* until(
        Effect.sync(() => w.said.slice(-3).join()),
        (said) => said === "a wakes,b wakes,c wakes"
      )
    }))

  test("a budget that is spent while it is paused suspends it when it is resumed, and wakes nobody for a turn", (w) =>
    Effect.gen(function* () {
      w.config = settings({ budget: { tokens: 10 } })
      const made = yield* w.open
      yield* made.home.newTurn("a", "t1", at(1))
      yield* made.ask({ _tag: "pause_requested", by: "ada", reason: "", inFlight: "complete" })
      yield* made.home.used("a", { tokens: 10 }, yield* w.usage(10))
      assert.strictEqual(made.snapshot.state, "paused")
      yield* made.home.turnEnded("a", "t1", "completed", at(2))
      yield* made.resume("ada")
      yield* state(made, "suspended")
      assert.isFalse(yield* made.home.newTurn("a", "t2", at(1)))
    }))

  test("a lower budget in the file holds at once; a higher one leads out of nothing", (w) =>
    Effect.gen(function* () {
      const made = yield* w.open
      yield* made.home.newTurn("a", "t1", at(1))
      yield* made.home.used("a", { tokens: 10 }, yield* w.usage(10))
      w.config = settings({ budget: { tokens: 5 } })
      assert.match(made.home.barred() ?? "", /budget of tokens is spent/)
      yield* made.enforce
      yield* state(made, "suspended")
      w.config = settings({ budget: { tokens: 1_000 } })
      yield* made.enforce
      assert.match(made.home.barred() ?? "", /suspended/)
    }))

  test("a failure counts once for its cause; an end is passed on once", (w) =>
    Effect.gen(function* () {
      const made = yield* w.open
      yield* made.home.agentReady("a", at(1))
      yield* state(made, "active")
      for (const cause of [at(50), at(50), at(40)]) {
        yield* made.home.agentFailed("a", "it broke", cause)
        yield* made.home.agentEnded("a", cause)
      }
      yield* until(
        Effect.sync(() => made.snapshot),
        ({ data }) => data.fatalStops === 1
      )
      assert.deepStrictEqual(w.ended, ["a"])
      assert.strictEqual((yield* w.life).failures.get("a"), 50)
    }))

  test("closes in order: by force what does not end, past what is broken, and says the sum", (w) =>
    Effect.gen(function* () {
      const [a, b] = w.agents as [Double, Double]
      a.stubborn = true
      b.broken = true
      const made = yield* w.open
      yield* made.home.newTurn("a", "t1", at(1))
      yield* made.ask({ _tag: "close_requested", by: "ada", reason: "done" })
      assert.match(made.home.barred() ?? "", /is being closed by ada: done/)
      yield* Deferred.await(made.closed)
      assert.deepStrictEqual(w.said, ["c ends", "a is killed"])
      const [closed] = (yield* w.runes).slice(-1)
      assert.strictEqual(closed?.kind, "session.closed")
      assert.deepInclude(closed?.payload["final_stats"], { agents: 3, turns: 1 })
      assert.isFalse(yield* made.home.newTurn("a", "t2", at(1)))
      yield* made.home.turnEnded("a", "t1", "interrupted", at(2))
    }))

  test("a crash in the middle of closing is begun again", (w) =>
    Effect.gen(function* () {
      w.agents[1]!.failing = 2
      const made = yield* w.open
      yield* made.ask({ _tag: "close_requested", by: "ada", reason: "" })
      yield* Deferred.await(made.closed)
      assert.deepStrictEqual(w.said.slice(-2), ["b ends", "a ends"])
      assert.strictEqual((yield* w.runes).filter(({ kind }) => kind === "session.closed").length, 1)
    }))
})

describe("the order in which agents end", () => {
  const parents: { readonly [name: string]: string } = { kid: "a", grandkid: "kid", other: "b", x: "y", y: "x" }
  const order = (...names: ReadonlyArray<string>) => leaving(names, (name) => parents[name])

  it("is the reverse of the order in which they began", () =>
    assert.deepStrictEqual(order("a", "b", "c"), ["c", "b", "a"]))

  it("children come before their parents, whenever they began", () => {
    assert.deepStrictEqual(order("a", "b", "kid", "grandkid", "other"), ["other", "grandkid", "kid", "b", "a"])
    assert.deepStrictEqual(order("grandkid", "kid", "a"), ["grandkid", "kid", "a"])
  })

  it("names each once, even where two are each other's parents", () =>
    assert.deepStrictEqual(order("x", "y").toSorted(), ["x", "y"]))
})
