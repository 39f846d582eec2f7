import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { fold } from "../../../src/core/event-actor/StateMachine.ts"
import * as TurnMachine from "../../../src/agents/machines/TurnMachine.ts"
import { caller, make } from "./AgentWorld.ts"
import { until } from "./World.ts"

const idle = (of: { readonly tree: { readonly turn: () => { readonly state: string } } }) =>
  until(
    Effect.sync(() => of.tree.turn().state),
    (state) => state === "idle"
  )

describe("turns", () => {
  it.live("a message is a turn: its answer is its last rune", () =>
    Effect.gen(function* () {
      const world = yield* make([{ steps: [{ say: "Hello" }, { say: ", Ada." }] }])
      yield* world.tree.send("Say hello.", "queue", caller)
      const [done] = yield* world.kind("turn.completed")
      assert.strictEqual(done!.payload["final_output"], "Hello, Ada.")
      yield* idle(world)
      assert.deepStrictEqual(yield* world.kinds("turn/"), ["turn.started", "turn.assistant_delta", "turn.completed"])
      assert.deepStrictEqual(yield* world.kinds("agent/"), ["agent.spawning", "agent.ready"])
      assert.match(world.turns[0]!, /^\+/)
      assert.match(world.turns[1]!, /^completed /)
    }).pipe(Effect.scoped)
  )

  it.live("further messages are further turns of the same run, one at a time", () =>
    Effect.gen(function* () {
      const world = yield* make([{ steps: [{ wait: "20 millis" }, { say: "ok" }] }])
      for (const text of ["one", "two", "three"]) yield* world.tree.send(text, "queue", caller)
      yield* until(
        Effect.sync(() => world.inputs.join("|")),
        (inputs) => ["one", "two", "three"].every((text) => inputs.includes(text))
      )
      yield* idle(world)
      assert.strictEqual(world.backend.played().length, 1)
      const runes = yield* world.runes
      const active = runes.filter(({ kind }) => /^turn\.(started|completed)$/.test(kind)).map(({ kind }) => kind)
      active.forEach((kind, index) => assert.strictEqual(kind, index % 2 === 0 ? "turn.started" : "turn.completed"))
      assert.strictEqual(world.tree.inbox().data.waiting.length, 0)
    }).pipe(Effect.scoped)
  )

  it.live(
    "a run that has had nothing to do for long enough is ended in order, and the next one goes on with its session",
    () =>
      Effect.gen(function* () {
        const world = yield* make([{ steps: [{ say: "ok" }] }], {
          idleTimeout: "10ms",
          backend: { type: "claude" }
        })
        yield* world.tree.send("one", "queue", caller)
        yield* until(
          Effect.sync(() => world.backend.played()[0]?.outcome?._tag),
          (tag) => tag === "Success"
        )
        yield* world.tree.send("two", "queue", caller)
        const played = yield* until(
          Effect.sync(() => world.backend.played()),
          (all) => all.length === 2
        )
        assert.strictEqual(played[1]!.spec.resume?.sessionId, `session-${played[0]!.spec.runId}`)
        yield* world.kind("turn.completed", 2)
      }).pipe(Effect.scoped)
  )

  it.live("an interrupt ends the turn and not the run, keeps what there was, and drops what was asked", () =>
    Effect.gen(function* () {
      const world = yield* make([{ steps: [{ say: "half an ans" }], hang: true }, { steps: [{ say: "next" }] }])
      yield* world.tree.send("long work", "queue", caller)
      yield* world.kind("turn.assistant_delta")
      yield* world.tree.interrupt(caller)
      const [cut] = yield* world.kind("turn.interrupted")
      assert.strictEqual(cut!.payload["reason"], "interrupted by ada")
      assert.strictEqual(cut!.payload["partial_output"], "half an ans")
      yield* idle(world)
      yield* world.tree.send("short work", "queue", caller)
      yield* world.kind("turn.completed")
      assert.strictEqual(world.backend.played().length, 1)
      assert.deepStrictEqual(
        world.inputs.map((input) => input.includes("long work")),
        [true, false]
      )
    }).pipe(Effect.scoped)
  )

  it.live("a steer ends the turn as steered and is the next one, before what waited longer", () =>
    Effect.gen(function* () {
      const world = yield* make([{ steps: [{ say: "…" }], hang: true }, { steps: [{ say: "done" }] }])
      yield* world.tree.send("first", "queue", caller)
      yield* world.kind("turn.assistant_delta")
      yield* world.tree.send("waits", "queue", caller)
      yield* world.tree.send("rather this", "steer", caller)
      yield* world.kind("turn.completed", 2)
      const [cut] = yield* world.kind("turn.interrupted")
      assert.strictEqual(cut!.payload["reason"], "steered")
      assert.match(world.inputs[1]!, /rather this/)
      assert.match(world.inputs[2]!, /waits/)
      yield* idle(world)
      assert.strictEqual(world.tree.inbox().data.waiting.length, 0)
    }).pipe(Effect.scoped)
  )

  it.live("a steer in the midst of a tool call waits for the call: a message never cancels a tool", () =>
    Effect.gen(function* () {
      const world = yield* make([
        { steps: [{ calls: [{ id: "a", tool: "build", takes: "50 millis", readOnly: true }] }], hang: true },
        { steps: [{ say: "done" }] }
      ])
      yield* world.tree.send("first", "queue", caller)
      yield* world.kind("tool.started")
      yield* world.tree.send("rather this", "steer", caller)
      yield* world.kind("turn.completed")
      const [result] = yield* world.kind("tool.result")
      assert.strictEqual(result!.payload["status"], "success")
      const [cut] = yield* world.kind("turn.interrupted")
      assert.isAbove(cut!.eventId, result!.eventId)
    }).pipe(Effect.scoped)
  )

  it.live("a turn that its agent does not end within the grace is ended by force, and counts no error", () =>
    Effect.gen(function* () {
      const world = yield* make([{ hang: true }], { interruptGrace: "20ms" })
      world.backend.played()
      yield* world.tree.send("work", "queue", caller)
      yield* world.kind("turn.started")
      yield* world.tree.interrupt(caller)
      yield* world.over()
      assert.strictEqual(world.tree.worker()!.data.totalErrors, 0)
    }).pipe(Effect.scoped)
  )

  it.live("an error that may pass: the message is offered again under the same id", () =>
    Effect.gen(function* () {
      const world = yield* make([{ error: { errorType: "overloaded", message: "try later", retry: true } }], {
        backoff: { base: "1ms" }
      })
      yield* world.tree.send("work", "queue", caller)
      const started = yield* world.kind("turn.started", 2)
      const ids = started.map(({ payload }) => (payload["event"] as { messageIds: ReadonlyArray<string> }).messageIds)
      assert.deepStrictEqual(ids[1], ids[0])
      assert.strictEqual(ids[0]!.length, 1)
      const [error] = yield* world.kind("turn.error")
      assert.strictEqual(error!.payload["error_type"], "overloaded")
    }).pipe(Effect.scoped)
  )

  it.live("an error that will not pass: the message is not offered again", () =>
    Effect.gen(function* () {
      const world = yield* make([{ error: { errorType: "refusal", message: "no", retry: false } }], {
        backoff: { base: "1ms" }
      })
      yield* world.tree.send("work", "queue", caller)
      yield* world.kind("turn.error")
      yield* until(
        Effect.sync(() => world.tree.worker()!.state),
        (state) => state === "BuildingPrompt"
      )
      assert.strictEqual((yield* world.kind("turn.started")).length, 1)
      assert.deepStrictEqual(world.tree.turn().data.unfinished, [])
    }).pipe(Effect.scoped)
  )

  it.live("kill -9 in a turn: its calls are unknown, it ends with an error, the message comes again, once", () =>
    Effect.gen(function* () {
      const world = yield* make([
        { steps: [{ say: "…" }, { calls: [{ id: "a", tool: "shell", takes: "hang", readOnly: true }] }] }
      ])
      yield* world.tree.send("work", "queue", caller)
      yield* world.kind("tool.started")
      yield* world.lose
      const before = yield* world.log.head
      world.play([{ steps: [{ say: "done" }] }])
      yield* world.open
      yield* world.kind("turn.completed")
      const runes = (yield* world.runes).filter(({ eventId }) => eventId > before)
      const kinds = runes.map(({ kind }) => kind)
      assert.isTrue(kinds.indexOf("tool.result") < kinds.indexOf("turn.error"), kinds.join())
      assert.strictEqual(runes.find(({ kind }) => kind === "tool.result")!.payload["status"], "unknown")
      assert.strictEqual(world.inputs.length, 1)
      assert.include(world.inputs[0]!, "work")
      yield* idle(world)
      assert.deepStrictEqual(world.tree.turn().data.unfinished, [])
    }).pipe(Effect.scoped)
  )

  it.live("kill -9 of an agent that had nothing to do: its next run is told of nothing to take up again", () =>
    Effect.gen(function* () {
      const world = yield* make([{ steps: [{ say: "ok" }] }], { backoff: { base: "1ms" } })
      yield* world.tree.send("one", "queue", caller)
      yield* world.over()
      yield* world.lose
      yield* world.open
      yield* world.tree.send("two", "queue", caller)
      yield* world.kind("turn.completed", 2)
      const [, last] = yield* world.kind("turn.started", 2)
      assert.match(String(last!.payload["input"]), / from ada, a person\ntwo\n--- \w+ end\n$/)
    }).pipe(Effect.scoped)
  )

  it.live("kill -9 of an agent at its standing task: its next run is told to take it up again", () =>
    Effect.gen(function* () {
      const world = yield* make([{ hang: true }], { mode: "loop", prompt: "Watch.", backoff: { base: "1ms" } })
      yield* world.kind("turn.started")
      yield* world.lose
      yield* world.open
      const [, last] = yield* world.kind("turn.started", 2)
      assert.match(String(last!.payload["input"]), /^Watch\.\n\nYour last run ended early: agentd ended while it ran/)
    }).pipe(Effect.scoped)
  )

  it.live("the live turn is the fold of its runes", () =>
    Effect.gen(function* () {
      const world = yield* make([
        {
          steps: [
            {
              calls: [
                { id: "a", tool: "x", readOnly: true },
                { id: "b", tool: "y", readOnly: true }
              ]
            },
            { say: "ok" }
          ]
        }
      ])
      yield* world.tree.send("work", "queue", caller)
      yield* world.kind("turn.completed")
      yield* idle(world)
      const runes = (yield* world.runes).filter(
        ({ actor, kind }) => actor === "turn/builder" && !kind.endsWith("delta")
      )
      assert.deepInclude(world.tree.turn(), fold(TurnMachine.Turn, TurnMachine.initial(), runes))
    }).pipe(Effect.scoped)
  )

  it.live("no turn begins while the conversation takes none; what was asked waits", () =>
    Effect.gen(function* () {
      const world = yield* make([{ steps: [{ say: "ok" }] }])
      world.barred = "it is paused"
      const refused = yield* Effect.flip(world.tree.send("work", "queue", caller))
      assert.match(refused.message, /accepts no messages: it is paused/)
      world.barred = undefined
      yield* world.tree.send("work", "queue", caller)
      yield* world.kind("turn.completed")
    }).pipe(Effect.scoped)
  )

  it.live("a spent budget ends the turn, then the agent, for good", () =>
    Effect.gen(function* () {
      const world = yield* make([{ steps: [{ usage: { inputTokens: 60, outputTokens: 50 } }], hang: true }], {
        budget: { tokens: 100 }
      })
      yield* world.tree.send("work", "queue", caller)
      const [end] = yield* world.kind("agent.terminated")
      assert.match(String(end!.payload["reason"]), /budget of tokens is spent/)
      const worker = yield* until(
        Effect.sync(() => world.tree.worker()!),
        ({ state }) => state === "Stopped"
      )
      assert.match(worker.data.fatal!.message, /budget of tokens/)
      assert.strictEqual((yield* world.kind("turn.interrupted")).length, 1)
      assert.isTrue(world.tree.member(Date.now()).spent)
    }).pipe(Effect.scoped)
  )

  it.live("a budget of time ends a turn in its midst", () =>
    Effect.gen(function* () {
      const world = yield* make([{ hang: true }], { budget: { wallTime: "30ms" } })
      yield* world.tree.send("work", "queue", caller)
      yield* world.kind("agent.terminated")
      yield* world.kind("turn.interrupted")
    }).pipe(Effect.scoped)
  )

  it.live("a stopped agent is terminated; started again it is a new incarnation with nothing spent", () =>
    Effect.gen(function* () {
      const world = yield* make([{ steps: [{ usage: { inputTokens: 1, outputTokens: 1 } }, { say: "ok" }] }])
      yield* world.tree.send("work", "queue", caller)
      yield* world.kind("turn.completed")
      yield* world.tree.stop(caller)
      yield* world.kind("agent.terminated")
      yield* world.tree.start(caller)
      yield* world.kind("agent.ready", 2)
      yield* world.tree.send("more", "queue", caller)
      yield* world.kind("turn.completed", 2)
    }).pipe(Effect.scoped)
  )
})
