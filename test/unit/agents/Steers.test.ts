/** Steers that come at the worst time: each is heard, in its order, and takes nothing else with it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { type AgentWorld, caller, make as makeWorld, memoryLog } from "../../world/agents/AgentWorld.ts"
import * as Puppet from "../../world/agents/Puppet.ts"
import { until } from "../../world/agents/World.ts"

const make = Effect.fnUntraced(function* (options: Parameters<typeof Puppet.make>[0] = {}) {
  const puppet = Puppet.make(options)
  const gate = Puppet.holding(yield* memoryLog)
  const world = yield* makeWorld([], {}, { log: gate.log, puppet })
  return { world, puppet, gate }
})

const state = (world: AgentWorld, wanted: string) =>
  until(
    Effect.sync(() => world.tree.turn().state),
    (now) => now === wanted
  )

/** With a first turn, about "work", under way. */
const working = Effect.fnUntraced(function* () {
  const made = yield* make()
  yield* made.world.tree.send("work", "queue", caller)
  const run = yield* made.puppet.run()
  yield* state(made.world, "streaming")
  return { ...made, run }
})

const sent = (run: Puppet.Pulled, count: number) =>
  until(
    Effect.sync(() => run.sent.length),
    (length) => length >= count
  )

/** The run completes each further turn until it has heard all of it; what it was given, in order. */
const heard = Effect.fnUntraced(function* (run: Puppet.Pulled, texts: ReadonlyArray<string>) {
  const has = (text: string) => run.sent.some((input) => input.text.includes(text))
  for (let count = 0; count < run.sent.length || !texts.every(has); count++) {
    yield* sent(run, count + 1)
    yield* run.say({ _tag: "TurnCompleted", turnId: run.sent[count]!.turnId, output: "done" })
  }
  return run.sent.map(({ text }) => text).join("\n")
})

const isOnceInOrder = (said: string, texts: ReadonlyArray<string>) => {
  const places = texts.map((text) => said.indexOf(text))
  assert.deepStrictEqual(
    places,
    places.toSorted((a, b) => a - b)
  )
  for (const text of texts) assert.lengthOf(said.split(text), 2, `${text} is heard once`)
}

describe("a steer", () => {
  it.live("three while a call waits for approval: the call is called off, and all three are heard", () =>
    Effect.gen(function* () {
      const { run, world } = yield* working()
      yield* run.say(
        { _tag: "ToolCall", callId: "a", tool: "shell", arguments: {}, readOnly: false },
        { _tag: "ApprovalRequested", callId: "a", reason: "" }
      )
      yield* until(
        Effect.sync(() => world.tree.calls()),
        (calls) => calls.some((one) => one.state === "awaiting_approval")
      )
      const texts = ["rather the first", "rather the second", "rather the third"]
      const [first] = yield* Effect.forEach(texts, (text) => world.tree.send(text, "steer", caller), {
        concurrency: "unbounded"
      })
      assert.match(first!.message, /is steered/)
      const [cut] = yield* world.kind("turn.interrupted")
      assert.strictEqual(cut!.payload["reason"], "steered")
      const [result] = yield* world.kind("tool.result")
      assert.strictEqual(result!.payload["status"], "cancelled")
      yield* run.say({ _tag: "TurnInterrupted", turnId: run.spec.turnId, output: "" })
      isOnceInOrder(yield* heard(run, texts), texts)
      yield* until(
        Effect.sync(() => world.tree.inbox().data.waiting.length),
        (waiting) => waiting === 0
      )
      assert.lengthOf(yield* world.kind("turn.interrupted"), 1)
    }).pipe(Effect.scoped)
  )

  it.live("between a turn's start and the moment when the run has its input: the turn is heard, then the steer", () =>
    Effect.gen(function* () {
      const { gate, run, world } = yield* working()
      yield* run.say({ _tag: "TurnCompleted", turnId: run.spec.turnId, output: "done" })
      yield* state(world, "idle")
      let received = 0
      gate.hold(({ kind, trigger }) => {
        if (kind === "inbox.received") received++
        return trigger === "start_turn"
      })
      const turn = yield* Effect.forkChild(world.tree.send("the next work", "queue", caller))
      // the turn has begun, and is being written: its run knows nothing of it
      yield* gate.caught
      const steer = yield* Effect.forkChild(world.tree.send("rather this", "steer", caller))
      yield* until(
        Effect.sync(() => received),
        (count) => count === 2
      )
      assert.deepStrictEqual(run.sent, [])
      yield* gate.free
      yield* Fiber.join(turn)
      assert.notMatch((yield* Fiber.join(steer)).message, /is steered/)
      const texts = ["the next work", "rather this"]
      isOnceInOrder(yield* heard(run, texts), texts)
      yield* state(world, "idle")
      assert.notInclude(yield* world.kinds("turn/"), "turn.interrupted")
    }).pipe(Effect.scoped)
  )

  it.live("while the run is being spawned: its prompt is heard, then the steer", () =>
    Effect.gen(function* () {
      const { puppet, world } = yield* make({ up: false })
      yield* world.tree.send("work", "queue", caller)
      const run = yield* puppet.run()
      const { message } = yield* world.tree.send("rather this", "steer", caller)
      assert.notMatch(message, /is steered/)
      assert.include(run.spec.prompt, "work")
      yield* run.say({ _tag: "Started" }, { _tag: "TurnStarted", turnId: run.spec.turnId })
      yield* state(world, "streaming")
      yield* run.say({ _tag: "TurnCompleted", turnId: run.spec.turnId, output: "done" })
      isOnceInOrder(yield* heard(run, ["rather this"]), ["rather this"])
      yield* state(world, "idle")
      assert.notInclude(yield* world.kinds("turn/"), "turn.interrupted")
    }).pipe(Effect.scoped)
  )
})

describe("a message that is taken back from a turn", () => {
  it.live("ends the turn, and takes nothing else with it: what the turn carries beside it is heard again", () =>
    Effect.gen(function* () {
      const { puppet, world } = yield* make({ up: false })
      const aside = { messageId: "channel:room:1/1", from: "ada", text: "an aside", alone: false } as const
      yield* world.tree.send("first", "queue", caller)
      const run = yield* puppet.run()
      yield* world.tree.post(aside)
      yield* world.tree.send("second", "queue", caller)
      yield* run.say({ _tag: "Started" }, { _tag: "TurnStarted", turnId: run.spec.turnId })
      yield* state(world, "streaming")
      yield* run.say({ _tag: "TurnCompleted", turnId: run.spec.turnId, output: "done" })
      yield* sent(run, 1)
      const [given] = run.sent
      assert.include(given!.text, "an aside")
      assert.include(given!.text, "second")
      yield* run.say({ _tag: "TurnStarted", turnId: given!.turnId })
      yield* until(
        Effect.sync(() => world.tree.turn().data.turnId),
        (turnId) => turnId === given!.turnId
      )
      yield* world.tree.interruptMessage(aside.messageId, "the floor was given away")
      yield* run.say({ _tag: "TurnInterrupted", turnId: given!.turnId, output: "" })
      yield* sent(run, 2)
      assert.include(run.sent[1]!.text, "second")
      assert.notInclude(run.sent[1]!.text, "an aside")
    })
  )

  it.live("comes back with the others or not at all: what waits behind one that is carried is still heard", () =>
    Effect.gen(function* () {
      const { run, world } = yield* working()
      const ids = ["channel:room:1", "channel:room:1/1", "channel:room:1/2"]
      for (const messageId of ids)
        yield* world.tree.post({ messageId, from: "ada", text: `word ${messageId}`, alone: true })
      yield* run.say({ _tag: "TurnCompleted", turnId: run.spec.turnId, output: "done" })
      yield* sent(run, 1)
      assert.isFalse(yield* world.tree.withdraw(ids), "the first is carried")
      assert.isTrue(yield* world.tree.withdraw(ids.slice(2)))
      assert.isTrue(yield* world.tree.withdraw(ids.slice(1)), "what is back already is no hindrance")
      assert.deepStrictEqual(world.tree.inbox().data.waiting, [])
      assert.lengthOf(yield* world.kind("inbox.withdrawn", 2), 2)
    })
  )
})
