/** Runs that break the contract, and moments that come at the worst time. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import * as ScriptedBackend from "../../../src/runs/ScriptedBackend.ts"
import type { RunEvent } from "../../../src/runs/Backend.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { leave } from "./Leave.ts"
import { AgentWorld, caller, make as makeWorld, memoryLog } from "./AgentWorld.ts"
import type { TestLog } from "./TestLog.ts"
import * as Puppet from "./Puppet.ts"
import { until } from "./World.ts"

const call = (callId: string, more: Partial<Extract<RunEvent, { _tag: "ToolCall" }>> = {}): RunEvent => ({
  _tag: "ToolCall",
  callId,
  tool: "shell",
  arguments: {},
  readOnly: false,
  ...more
})
const asks = (callId: string): RunEvent => ({ _tag: "ApprovalRequested", callId, reason: "" })
const result = (callId: string, output: unknown = null): RunEvent => ({
  _tag: "ToolResult",
  callId,
  status: "success",
  output
})
const completed = (turnId: string, output = "done"): RunEvent => ({ _tag: "TurnCompleted", turnId, output })
const exited: RunEvent = { _tag: "Exited", outcome: { _tag: "Success" } }

const make = Effect.fnUntraced(function* (config: object = {}, options: Parameters<typeof Puppet.make>[0] = {}) {
  const puppet = Puppet.make(options)
  const gate = Puppet.holding(yield* memoryLog)
  const world = yield* makeWorld([], { interruptGrace: "50ms", ...config }, { log: gate.log, puppet })
  return { world, puppet, gate }
})
/** With one turn under way. */
const working = Effect.fnUntraced(function* (config: object = {}, options: Parameters<typeof Puppet.make>[0] = {}) {
  const made = yield* make(config, options)
  yield* made.world.tree.send("work", "queue", caller)
  const run = yield* made.puppet.run()
  yield* until(
    Effect.sync(() => made.world.tree.worker()!.state),
    (state) => state === "Running"
  )
  yield* until(
    Effect.sync(() => made.world.tree.turn().state),
    (state) => state === "streaming"
  )
  return { ...made, run, turnId: run.spec.turnId }
})
const state = (world: AgentWorld, wanted: string) =>
  until(
    Effect.sync(() => world.tree.turn().state),
    (now) => now === wanted
  )
const asked = (world: AgentWorld) =>
  Effect.map(
    until(
      Effect.sync(() => world.tree.calls()),
      (calls) => calls.some((one) => one.state === "awaiting_approval")
    ),
    (calls) => calls.find((one) => one.state === "awaiting_approval")!
  )
const statuses = (world: AgentWorld) =>
  Effect.map(world.runes, (runes) =>
    runes.filter(({ kind }) => kind === "tool.result").map(({ payload }) => payload["status"])
  )

/** The log as it stands, in a store of its own: what that daemon still writes is not there. */
const cut = Effect.fnUntraced(function* (world: AgentWorld, holds: (rune: Rune) => boolean) {
  const runes = yield* world.runes
  const log = yield* memoryLog
  for (const { actor, cause, from, kind, payload, stream, to, trigger } of runes.filter(holds)) {
    yield* log.append([{ actor, cause, from, kind, payload, stream, to, trigger }])
  }
  return log
})

/** The next daemon on it, which starts nobody. */
/** The next daemon, which finds what the one before has kept. */
const revived = Effect.fnUntraced(function* (log: TestLog, config: object, waiting?: AgentWorld["waiting"]) {
  const world = new AgentWorld(log, [], config)
  if (waiting !== undefined) world.waiting = waiting
  world.puppet = Puppet.make()
  yield* world.open
  yield* Effect.addFinalizer(() => world.lose)
  return world
})

describe("many commands at once", () => {
  it.live("starts and stops from everywhere: each incarnation's life begins and ends once, and nothing is left", () =>
    Effect.gen(function* () {
      const { world } = yield* make({ mode: "loop", prompt: "x", backoff: { base: "1ms" } })
      const { tree } = world
      const commands = Array.from({ length: 60 }, (_, n) => (n % 2 === 0 ? tree.stop(caller) : tree.start(caller)))
      yield* Effect.all(commands, { concurrency: "unbounded" })
      yield* tree.stop(caller)
      const started = yield* world.kind("worker.started", 30)
      yield* world.kind("agent.terminated", started.length)
      assert.lengthOf(yield* world.kind("agent.spawning"), started.length)
      assert.lengthOf(yield* world.kind("agent.terminated"), started.length)
      assert.isUndefined(world.tree.slot.current())
    }).pipe(Effect.scoped)
  )
})

describe("a question that is asked again after the daemon's end", () => {
  it.live("is withdrawn before it stands again: whoever reads along answers the new one", () =>
    Effect.gen(function* () {
      const { run, world } = yield* working()
      yield* run.say(call("c"), asks("c"))
      yield* asked(world)
      const gate = Puppet.holding(yield* cut(world, () => true))
      const next = yield* revived(gate.log, { backoff: { base: "1ms" } }, world.waiting)
      const second = yield* (next.puppet as Puppet.Puppet).run()
      yield* next.kind("turn.started", 2)
      gate.hold(({ kind }) => kind === "tool.result")
      yield* second.say(call("c"), asks("c"))
      yield* gate.caught
      yield* Effect.sleep(30)
      assert.lengthOf(yield* next.kind("tool.approval_requested"), 1)
      yield* gate.free
      yield* next.kind("tool.approval_requested", 2)
      assert.deepStrictEqual(yield* statuses(next), ["cancelled"])
    }).pipe(Effect.scoped)
  )
})

describe("a run that breaks the contract", () => {
  it.live("says twice that it is up: the turn goes on and ends", () =>
    Effect.gen(function* () {
      const { run, turnId, world } = yield* working()
      yield* run.say({ _tag: "Started" }, completed(turnId))
      yield* world.over()
      assert.lengthOf(yield* world.kind("turn.started"), 1)
    }).pipe(Effect.scoped)
  )

  it.live("ends turns that are none of its own: nothing ends, and the next turn comes", () =>
    Effect.gen(function* () {
      const { run, turnId, world } = yield* working()
      yield* run.say(completed("other"), {
        _tag: "TurnError",
        turnId: "other",
        errorType: "x",
        message: "x",
        retry: true
      })
      yield* run.say(completed(turnId), completed(turnId))
      yield* state(world, "idle")
      yield* world.tree.send("more", "queue", caller)
      yield* until(
        Effect.sync(() => run.sent.length),
        (sent) => sent === 1
      )
      assert.lengthOf(yield* world.kind("turn.completed"), 1)
    }).pipe(Effect.scoped)
  )

  it.live("calls the first message of a conversation too long: final at once, and nothing is offered again", () =>
    Effect.gen(function* () {
      const { puppet, run, turnId, world } = yield* working({ backoff: { base: "1ms" } })
      const tooLong = { errorType: "overflow", message: "Prompt is too long", retry: true }
      yield* run.say(
        { _tag: "TurnError", turnId, ...tooLong },
        { _tag: "Exited", outcome: { _tag: "Uncounted", reason: "overflow" } }
      )
      const [end] = yield* world.kind("turn.error")
      assert.deepInclude(end!.payload["event"], { retry: false })
      yield* world.tree.send("less", "queue", caller)
      const next = yield* puppet.run(1)
      assert.include(next.spec.prompt, "less")
      assert.notInclude(next.spec.prompt, "\nwork\n")
    }).pipe(Effect.scoped)
  )

  it.live("says that its conversation was compacted: the log does, and the turn goes on", () =>
    Effect.gen(function* () {
      const { run, turnId, world } = yield* working()
      yield* run.say({ _tag: "Compacted", from: 190_000.4, to: 60_000, cutResults: 3, summarised: 40 })
      const [rune] = yield* world.kind("agent.compacted")
      assert.deepInclude(rune!.payload, { from: 190_000, to: 60_000, cut_results: 3, summarised: 40, turn_id: turnId })
      yield* run.say(completed(turnId))
      yield* world.over()
    }).pipe(Effect.scoped)
  )

  it.live("results without calls, second results, calls outside a turn: one result a call, and the log is clean", () =>
    Effect.gen(function* () {
      const { run, turnId, world } = yield* working()
      yield* run.say(result("none"), call("a"), result("a"), result("a"), completed(turnId), call("b"), result("a"))
      yield* world.over()
      assert.deepStrictEqual(yield* statuses(world), ["success"])
      assert.deepStrictEqual((yield* world.log.verify).problems, [])
    }).pipe(Effect.scoped)
  )

  it.live("asks for a call that nobody knows: it is denied, and does not wait for ever", () =>
    Effect.gen(function* () {
      const { run, turnId, world } = yield* working()
      yield* run.say(completed(turnId))
      yield* state(world, "idle")
      yield* run.say(call("late"), asks("late"))
      yield* until(
        Effect.sync(() => run.answers),
        (answers) => answers.some(([id, { behavior }]) => id === "late" && behavior === "deny")
      )
    }).pipe(Effect.scoped)
  )

  it.live("goes on without the answer that it asked for: the question is closed", () =>
    Effect.gen(function* () {
      const { run, turnId, world } = yield* working()
      yield* run.say(call("a"), asks("a"))
      yield* asked(world)
      yield* run.say(result("a"))
      yield* until(
        Effect.sync(() => world.tree.calls()),
        (calls) => calls.length === 0
      )
      yield* run.say(completed(turnId))
      yield* world.kind("turn.completed")
      assert.deepStrictEqual(yield* statuses(world), ["cancelled"])
    }).pipe(Effect.scoped)
  )

  it.live("exits in the midst of calls: each has its result, the turn its end", () =>
    Effect.gen(function* () {
      const { run, world } = yield* working()
      yield* run.say(call("a"), call("b"), asks("a"), { _tag: "ToolStarted", callId: "b" })
      yield* asked(world)
      yield* run.say(exited)
      yield* world.over()
      assert.deepStrictEqual((yield* statuses(world)).toSorted(), ["cancelled", "unknown"])
    }).pipe(Effect.scoped)
  )

  it.live("makes thousands of calls at once", () =>
    Effect.gen(function* () {
      const { run, turnId, world } = yield* working()
      const ids = Array.from({ length: 3_000 }, (_, index) => `c${index}`)
      yield* run.say(...ids.map((id) => call(id, { readOnly: true })), ...ids.map((id) => result(id)))
      yield* run.say(completed(turnId))
      yield* world.kind("turn.completed")
      const results = yield* world.log.tail({ kinds: ["tool.result"] }, 10_000)
      assert.lengthOf(results, 3_000)
    }).pipe(Effect.scoped)
  )

  it.live("outputs, arguments, names and answers that no rune can hold are cut, and the turn ends", () =>
    Effect.gen(function* () {
      for (const text of ["\u0001", "漢", '"']) {
        const { run, turnId, world } = yield* working()
        const huge = text.repeat(1_100_000)
        yield* run.say(
          { _tag: "Delta", stream: "assistant", text: huge },
          { _tag: "Notice", text: huge },
          call("a", { arguments: { text: huge }, tool: huge }),
          call("b", { arguments: huge }),
          asks("b"),
          { _tag: "ToolProgress", callId: "a", stream: "stdout", chunk: huge },
          result("a", huge),
          { _tag: "ToolResult", callId: "b", status: "error", output: { text: huge } },
          { _tag: "Delta", stream: "assistant", text: huge },
          completed(turnId, huge)
        )
        const [done] = yield* world.kind("turn.completed")
        assert.isAbove(String(done!.payload["final_output"]).length, 1_000)
        assert.lengthOf(yield* statuses(world), 2)
      }
    }).pipe(Effect.scoped)
  )

  it.live("a command that prints more than a rune can hold: its turn ends, and the next one comes", () =>
    Effect.gen(function* () {
      const line = { _tag: "Delta", stream: "stdout", text: "x".repeat(1_000) } as const
      const command = ScriptedBackend.make([
        { steps: [{ _tag: "Started" }, ...Array.from({ length: 523 }, () => line)] }
      ])
      const log = yield* memoryLog
      const world = yield* makeWorld([], {}, { log, puppet: command })
      for (const n of [1, 2]) {
        yield* world.tree.send("work", "queue", caller)
        yield* world.over(n)
      }
      assert.lengthOf(yield* world.kind("turn.completed"), 2)
    }).pipe(Effect.scoped)
  )

  it.live("a turn that has said more than a rune can hold can be interrupted", () =>
    Effect.gen(function* () {
      const { run, world } = yield* working()
      yield* run.say({ _tag: "Delta", stream: "assistant", text: "漢".repeat(5_000_000) })
      yield* Effect.sleep(20)
      yield* world.tree.interrupt(caller)
      yield* world.kind("turn.interrupted")
    }).pipe(Effect.scoped)
  )

  it.live("usage that is no number, or less than nothing, takes nothing from the budget", () =>
    Effect.gen(function* () {
      const { run, world } = yield* working({ budget: { tokens: 100 } })
      const usage = (inputTokens: number, outputTokens: number): RunEvent => ({
        _tag: "Usage",
        inputTokens,
        outputTokens,
        usd: Number.NaN
      })
      yield* run.say(usage(Number.NaN, 10), usage(-1_000, 10), usage(Number.POSITIVE_INFINITY, 10), usage(70, 0))
      yield* world.kind("agent.budget_exhausted")
      assert.deepStrictEqual(
        { ...world.tree.life().spent, wallTime: 0 },
        { tokens: 100, toolCalls: 0, wallTime: 0, usd: 0 }
      )
    }).pipe(Effect.scoped)
  )

  it.live("goes on spending while it is interrupted: its budget is spent once", () =>
    Effect.gen(function* () {
      const { run, world } = yield* working({ budget: { tokens: 100 }, interruptGrace: "150ms" })
      for (let count = 0; count < 5; count++) {
        yield* run.say({ _tag: "Usage", inputTokens: 100, outputTokens: 0 })
        yield* Effect.sleep(10)
      }
      yield* world.kind("agent.terminated")
      assert.lengthOf(yield* world.kind("agent.budget_exhausted"), 1)
    }).pipe(Effect.scoped)
  )

  it.live(
    "takes no further turn though it lives: it is ended, and the next run carries the message, without errors",
    () =>
      Effect.gen(function* () {
        const { puppet, run, turnId, world } = yield* working({}, { deaf: true })
        puppet.refuses = true
        yield* run.say(completed(turnId))
        yield* state(world, "idle")
        yield* world.tree.send("more", "queue", caller)
        yield* until(
          Effect.sync(() => run.ends),
          (ends) => ends > 0
        )
        yield* Effect.sleep(50)
        assert.isAtMost((yield* world.kind("turn.error")).length, 1)
        yield* run.say(exited)
        const next = yield* puppet.run(1)
        assert.match(next.spec.prompt, /more/)
      }).pipe(Effect.scoped)
  )
})

describe("at the worst moment", () => {
  it.live("an interrupt while the run is being spawned drops what it carries", () =>
    Effect.gen(function* () {
      const { puppet, world } = yield* make({}, { up: false })
      yield* world.tree.send("work", "queue", caller)
      const run = yield* puppet.run()
      const done = yield* Effect.forkChild(world.tree.interrupt(caller))
      yield* Effect.sleep(10)
      yield* run.say({ _tag: "Started" })
      yield* Fiber.join(done)
      yield* world.over()
      assert.deepStrictEqual(world.tree.turn().data.unfinished, [])
      yield* until(
        Effect.sync(() => world.tree.worker()!.state),
        (now) => now === "BuildingPrompt"
      )
      yield* Effect.sleep(20)
      assert.lengthOf(puppet.runs, 1)
    }).pipe(Effect.scoped)
  )

  it.live("so does a sender who interrupts it then; and one may interrupt the second run, too", () =>
    Effect.gen(function* () {
      const { puppet, world } = yield* make({}, { up: false })
      const from = { from: "plan:1", alone: true }
      yield* world.tree.post({ messageId: "m1", text: "one", ...from })
      const first = yield* puppet.run()
      yield* world.tree.interruptMessage("m1", "not needed")
      yield* first.say({ _tag: "Started" })
      yield* world.over()
      yield* until(world.tree.fate("m1"), ({ _tag }) => _tag === "Ended")
      yield* world.tree.post({ messageId: "m2", text: "two", ...from })
      const second = yield* puppet.run(1)
      const done = yield* Effect.forkChild(world.tree.interrupt(caller))
      yield* Effect.sleep(10)
      yield* second.say({ _tag: "Started" })
      yield* Fiber.join(done)
      yield* world.over(2)
      yield* until(world.tree.fate("m2"), ({ _tag }) => _tag === "Ended")
      assert.lengthOf(puppet.runs, 2)
    }).pipe(Effect.scoped)
  )

  it.live("a run that is killed for its turn takes no other message with it", () =>
    Effect.gen(function* () {
      const { puppet, run, world } = yield* working({ interruptGrace: "20ms" }, { deaf: true })
      yield* world.tree.post({ messageId: "m2", from: "plan:1", text: "two", alone: true })
      yield* world.tree.interrupt(caller)
      yield* world.over()
      yield* until(
        Effect.sync(() => run.kills),
        (kills) => kills > 0
      )
      const next = yield* puppet.run(1)
      assert.match(next.spec.prompt, /two/)
      assert.deepStrictEqual(run.sent, [])
      assert.lengthOf(yield* world.kind("turn.started", 2), 2)
    }).pipe(Effect.scoped)
  )

  it.live("a steer that waits for a tool loses nothing when its turn is to be taken up again", () =>
    Effect.gen(function* () {
      const { run, world } = yield* working()
      yield* run.say(call("a", { readOnly: true }), { _tag: "ToolStarted", callId: "a" })
      yield* state(world, "tool_executing")
      yield* world.tree.send("rather this", "steer", caller)
      yield* world.tree.control.interruptTurn("ada", "paused", true)
      yield* state(world, "interrupted")
      yield* run.say({ _tag: "TurnInterrupted", turnId: run.spec.turnId, output: "" })
      yield* until(
        Effect.sync(() => run.sent.length),
        (sent) => sent > 0
      )
      assert.include(run.sent[0]!.text, "work")
      yield* run.say(completed(run.sent[0]!.turnId))
      yield* until(
        Effect.sync(() => run.sent.length),
        (sent) => sent > 1
      )
      assert.match(run.sent[1]!.text, /rather this/)
    }).pipe(Effect.scoped)
  )

  it.live("an urgent message to a run that is idle is told once", () =>
    Effect.gen(function* () {
      const { puppet, run, turnId, world } = yield* working()
      yield* run.say(completed(turnId))
      yield* state(world, "idle")
      yield* world.tree.send("fire", "urgent", caller)
      const next = yield* puppet.run(1)
      assert.match(next.spec.prompt, /fire/)
      yield* state(world, "streaming")
      assert.deepStrictEqual(run.sent, [])
      assert.lengthOf(yield* world.kind("turn.started", 2), 2)
    }).pipe(Effect.scoped)
  )

  it.live(
    "there is nothing to interrupt before the turn is durable, and nobody has heard of it; the run lives on",
    () =>
      Effect.gen(function* () {
        const { gate, puppet, run, turnId, world } = yield* working({ interruptGrace: "5s" })
        yield* run.say(completed(turnId))
        yield* state(world, "idle")
        gate.hold(({ kind }) => kind === "turn.started")
        const sent = yield* Effect.forkChild(world.tree.send("more", "queue", caller))
        yield* gate.caught
        assert.match((yield* Effect.flip(world.tree.interrupt(caller))).message, /nothing to interrupt/)
        assert.deepStrictEqual(run.sent, [])
        yield* gate.free
        yield* Fiber.join(sent)
        yield* until(
          Effect.sync(() => run.sent.length),
          (count) => count === 1
        )
        yield* run.say(completed(run.sent[0]!.turnId))
        yield* state(world, "idle")
        yield* world.tree.send("other", "queue", caller)
        yield* until(
          Effect.sync(() => run.sent.length),
          (count) => count === 2
        )
        assert.match(run.sent[1]!.text, /other/)
        assert.lengthOf(puppet.runs, 1)
        assert.strictEqual(run.kills, 0)
      }).pipe(Effect.scoped)
  )

  it.live("a conversation that closes its door as a turn begins costs the run nothing", () =>
    Effect.gen(function* () {
      const { puppet, run, turnId, world, gate } = yield* working()
      yield* run.say(completed(turnId))
      yield* state(world, "idle")
      gate.hold(({ trigger }) => trigger === "start_turn")
      yield* Effect.forkChild(world.tree.send("more", "queue", caller))
      yield* gate.caught
      world.barred = "it is paused"
      yield* gate.free
      yield* world.over(2)
      world.barred = undefined
      yield* world.tree.control.wake
      yield* until(
        Effect.sync(() => run.sent.length),
        (sent) => sent === 1
      )
      assert.match(run.sent[0]!.text, /more/)
      assert.strictEqual(run.interrupts, 0)
      assert.lengthOf(puppet.runs, 1)
    }).pipe(Effect.scoped)
  )

  it.live("a message is not taken back while its turn is being written: that carries it", () =>
    Effect.gen(function* () {
      const { run, turnId, world, gate } = yield* working()
      yield* run.say(completed(turnId))
      yield* state(world, "idle")
      gate.hold(({ trigger }) => trigger === "start_turn")
      yield* Effect.forkChild(world.tree.post({ messageId: "m2", from: "plan:1", text: "two", alone: true }))
      yield* gate.caught
      const taken = yield* Effect.forkChild(world.tree.withdraw(["m2"]))
      yield* gate.free
      assert.isFalse(yield* Fiber.join(taken))
      yield* until(
        Effect.sync(() => run.sent.length),
        (count) => count === 1
      )
    }).pipe(Effect.scoped)
  )

  it.live("so where it is the run's prompt that is being written", () =>
    Effect.gen(function* () {
      const { gate, puppet, world } = yield* make()
      yield* until(
        Effect.sync(() => world.tree.worker()!.state),
        (now) => now === "BuildingPrompt"
      )
      gate.hold(({ trigger }) => trigger === "PromptReady")
      yield* Effect.forkChild(world.tree.post({ messageId: "m1", from: "plan:1", text: "one", alone: true }))
      yield* gate.caught
      const taken = yield* Effect.forkChild(world.tree.withdraw(["m1"]))
      yield* gate.free
      assert.isFalse(yield* Fiber.join(taken))
      const run = yield* puppet.run()
      assert.match(run.spec.prompt, /one/)
    }).pipe(Effect.scoped)
  )

  it.live("a message that was worked on and comes again under the same id changes nothing", () =>
    Effect.gen(function* () {
      const { run, world, turnId } = yield* working()
      yield* run.say(completed(turnId))
      yield* state(world, "idle")
      for (const messageId of ["m1", "m2", "m1"]) {
        const before = run.sent.length
        yield* world.tree.post({ messageId, from: "plan:1", text: messageId, alone: true })
        yield* Effect.sleep(30)
        if (run.sent.length > before) yield* run.say(completed(run.sent.at(-1)!.turnId))
        yield* state(world, "idle")
      }
      assert.deepStrictEqual(
        run.sent.map(({ text }) => text.match(/m\d/)?.[0]),
        ["m1", "m2"]
      )
    }).pipe(Effect.scoped)
  )

  it.live(
    "the turn of a message that is forced to end says what there was of the answer, live and after a restart",
    () =>
      Effect.gen(function* () {
        const { run, world } = yield* working({ interruptGrace: "20ms" })
        yield* run.say({ _tag: "Delta", stream: "assistant", text: "half" })
        yield* world.kind("turn.assistant_delta")
        const id = world.tree.turn().data.messageIds[0]!
        yield* world.tree.interruptMessage(id, "enough")
        yield* world.over()
        const live = yield* until(world.tree.fate(id), ({ _tag }) => _tag !== "Carried")
        assert.deepInclude(live, { _tag: "Ended", outcome: "interrupted", output: "half" })
        yield* world.lose
        yield* world.open
        assert.deepStrictEqual(yield* world.tree.fate(id), live)
      }).pipe(Effect.scoped)
  )

  it.live("messages that are long only in writing go one after the other, and end nobody", () =>
    Effect.gen(function* () {
      const { puppet, world } = yield* make()
      for (const _ of [1, 2, 3]) yield* world.tree.send("\u0001".repeat(80_000), "queue", caller)
      const run = yield* puppet.run()
      yield* state(world, "streaming")
      yield* run.say(completed(run.spec.turnId))
      yield* until(
        Effect.sync(() => run.sent.length),
        (sent) => sent > 0
      )
      assert.notStrictEqual(world.tree.worker()!.state, "Stopped")
    }).pipe(Effect.scoped)
  )
})

describe("what an earlier daemon left", () => {
  it.live("an agent whose budget is spent, and that had not ended: it ends, and takes no further turn", () =>
    Effect.gen(function* () {
      const { run, world } = yield* working({ budget: { tokens: 100 } })
      yield* run.say({ _tag: "Usage", inputTokens: 100, outputTokens: 0 })
      const [usage] = yield* world.kind("agent.usage")
      // an older daemon wrote the end in an append of its own
      const log = yield* cut(world, ({ eventId }) => eventId <= usage!.eventId)
      const next = yield* revived(log, { budget: { tokens: 100 }, backoff: { base: "1ms" } })
      yield* next.kind("agent.terminated")
      yield* until(
        Effect.sync(() => next.tree.worker()!.state),
        (now) => now === "Stopped"
      )
      assert.lengthOf(yield* next.kind("turn.started"), 1)
    }).pipe(Effect.scoped)
  )

  it.live("an agent that had ended, and its worker had not: it does not rise again", () =>
    Effect.gen(function* () {
      const { run, turnId, world } = yield* working({ budget: { tokens: 100 } })
      yield* run.say(completed(turnId))
      yield* state(world, "idle")
      yield* run.say({ _tag: "Usage", inputTokens: 100, outputTokens: 0 })
      const [end] = yield* world.kind("agent.terminated")
      // an older daemon told its worker in an append of its own
      const log = yield* cut(world, ({ eventId }) => eventId <= end!.eventId)
      const next = yield* revived(log, { budget: { tokens: 100 } })
      yield* until(
        Effect.sync(() => next.tree.worker()!.state),
        (now) => now === "Stopped"
      )
      assert.match(next.tree.worker()!.data.fatal!.message, /budget of tokens/)
      assert.lengthOf(yield* next.kind("agent.spawning"), 1)
    }).pipe(Effect.scoped)
  )
})

describe("a question, at the worst moment", () => {
  it.live("its answer comes as its time runs out: the agent is told, whoever was first", () =>
    Effect.gen(function* () {
      const { gate, run, world } = yield* working({ approvals: { timeout: "60ms" } })
      // before it asks: on a slow machine its time may be over before anybody looks
      gate.hold(({ trigger }) => trigger === "approval_timeout")
      yield* run.say(call("a"), asks("a"))
      const { callId } = yield* asked(world)
      yield* gate.caught
      const answer = yield* Effect.forkChild(Effect.exit(world.tree.answer(callId, leave(world.tree, callId), caller)))
      yield* Effect.sleep(10)
      yield* gate.free
      assert.strictEqual((yield* Fiber.join(answer))._tag, "Failure")
      yield* until(
        Effect.sync(() => run.answers),
        (answers) => answers.some(([, { behavior }]) => behavior === "deny")
      )
    }).pipe(Effect.scoped)
  )

  it.live("whoever answers goes away before it is written: the turn ends all the same", () =>
    Effect.gen(function* () {
      const { gate, run, turnId, world } = yield* working()
      yield* run.say(call("a"), asks("a"), call("b"))
      const { callId } = yield* asked(world)
      gate.hold(({ actor }) => actor.startsWith("tool/"))
      const answer = yield* Effect.forkChild(world.tree.answer(callId, leave(world.tree, callId), caller))
      yield* gate.caught
      yield* Fiber.interrupt(answer)
      yield* gate.free
      yield* run.say(completed(turnId))
      yield* world.kind("turn.completed")
      assert.lengthOf(yield* statuses(world), 2)
    }).pipe(Effect.scoped)
  )

  it.live("an approval that was used before a crash is not used again", () =>
    Effect.gen(function* () {
      const { puppet, run, world } = yield* working({ backoff: { base: "1ms" } })
      yield* run.say(call("a", { arguments: { command: "pay 100" } }), asks("a"))
      const { callId } = yield* asked(world)
      yield* world.tree.answer(callId, leave(world.tree, callId), caller)
      yield* until(
        Effect.sync(() => run.answers.length),
        (answers) => answers === 1
      )
      for (const n of [1, 2]) {
        yield* world.lose
        yield* world.open
        const next = yield* puppet.run(n)
        yield* state(world, "streaming")
        yield* next.say(call("a", { arguments: { command: "pay 100" } }), asks("a"))
        yield* asked(world)
        assert.deepStrictEqual(next.answers, [])
      }
    }).pipe(Effect.scoped)
  )

  it.live("a late approval holds across another restart, once", () =>
    Effect.gen(function* () {
      const { puppet, run, world } = yield* working({ backoff: { base: "1ms" } })
      const command = { command: "x".repeat(30_000), token: "sk-1" }
      yield* run.say(call("a", { arguments: command }), asks("a"))
      const { callId } = yield* asked(world)
      yield* world.lose
      yield* world.open
      yield* world.tree.answer(callId, leave(world.tree, callId), caller)
      yield* world.kind("tool.result")
      yield* puppet.run(1)
      yield* state(world, "streaming")
      yield* world.lose
      yield* world.open
      const next = yield* puppet.run(2)
      yield* state(world, "streaming")
      // another one that only looks the same
      yield* next.say(
        call("o", { arguments: { command: `${"x".repeat(15_000)}y${"x".repeat(14_999)}`, token: "sk-1" } }),
        asks("o")
      )
      yield* asked(world)
      assert.deepStrictEqual(next.answers, [])
      yield* next.say(call("a", { arguments: command }), asks("a"))
      yield* until(
        Effect.sync(() => next.answers),
        (answers) => answers.some(([id, { behavior }]) => id === "a" && behavior === "allow")
      )
      yield* next.say(result("a"), call("b", { arguments: command }), asks("b"))
      yield* until(
        Effect.sync(() => world.tree.calls()),
        (calls) => calls.filter((one) => one.state === "awaiting_approval").length === 2
      )
      assert.lengthOf(next.answers, 1)
    }).pipe(Effect.scoped)
  )
})
