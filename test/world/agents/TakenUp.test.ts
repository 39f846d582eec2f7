/** Runs that a daemon takes up as an earlier one left them. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import type { Place, RunEvent } from "../../../src/runs/Backend.ts"
import { caller, make } from "./AgentWorld.ts"
import * as SteppedClock from "../../support/SteppedClock.ts"
import * as Puppet from "./Puppet.ts"
import { until } from "./World.ts"

const out = (end: number, index = 1): { readonly place: Place } => ({ place: { out: [1, end, index] } })

describe("a run that is taken up", () => {
  it.live("is given nothing new before all is told again that it had heard", () =>
    Effect.gen(function* () {
      const first = Puppet.make({ holds: true })
      const world = yield* make([], {}, { puppet: first })
      yield* world.tree.send("one", "queue", caller)
      const run = yield* first.run()
      const one = run.spec.turnId
      yield* run.say({ _tag: "TurnCompleted", turnId: one, output: "1", ...out(10) })
      yield* world.over(1)
      yield* world.tree.send("two", "queue", caller)
      yield* world.kind("turn.started", 2)
      const two = run.sent[0]!.turnId
      yield* run.say({ _tag: "TurnCompleted", turnId: two, output: "2", ...out(20) })
      yield* world.over(2)
      yield* world.lose

      const second = Puppet.make({ holds: true, up: false })
      world.puppet = second
      yield* world.open
      const left = yield* second.run()
      const told: ReadonlyArray<RunEvent> = [
        { _tag: "Given", input: one },
        { _tag: "Started", ...out(5) },
        { _tag: "TurnCompleted", turnId: one, output: "1", ...out(10) }
      ]
      yield* left.say(...told)
      yield* Effect.sleep("50 millis")
      // between two turns of before it only looks free
      yield* world.tree.send("three", "queue", caller)
      yield* Effect.sleep("50 millis")
      assert.deepStrictEqual(left.sent, [])
      yield* left.say(
        { _tag: "Given", input: two },
        { _tag: "TurnCompleted", turnId: two, output: "2", ...out(20) },
        { _tag: "Resumed", given: undefined }
      )
      yield* world.kind("turn.started", 3)
      assert.lengthOf(left.sent, 1)
      assert.match(left.sent[0]!.text, /three/)
      assert.lengthOf(yield* world.kind("turn.completed", 2), 2)
    }).pipe(Effect.scoped)
  )

  it.live("ends its turn and all calls of that with itself, though the machine has lost what it had told of them", () =>
    Effect.gen(function* () {
      const first = Puppet.make({ holds: true })
      const world = yield* make([], {}, { puppet: first })
      yield* world.tree.send("one", "queue", caller)
      const run = yield* first.run()
      const call = { _tag: "ToolCall", tool: "look", arguments: {}, readOnly: false } as const
      yield* run.say({ ...call, callId: "x", ...out(10) }, { _tag: "ToolStarted", callId: "x", ...out(10, 2) })
      const asked = { _tag: "ApprovalRequested", callId: "y", reason: "" } as const
      yield* run.say({ ...call, callId: "y", ...out(20) }, { ...asked, ...out(20, 2) })
      yield* world.kind("tool.approval_requested")
      yield* world.lose

      const second = Puppet.make({ holds: true, up: false })
      world.puppet = second
      yield* world.open
      const left = yield* second.run()
      const { turnId } = run.spec
      yield* left.say({ _tag: "Given", input: turnId }, { _tag: "Started", ...out(5) })
      yield* left.say({ _tag: "Resumed", given: turnId })
      const message = "it ended"
      yield* left.say({ _tag: "TurnError", turnId, errorType: "exit", message, retry: true })
      yield* left.say({ _tag: "Exited", outcome: { _tag: "Error", detail: message } })
      yield* world.rune(({ trigger }) => trigger === "SessionExited")
      assert.lengthOf(yield* world.kind("turn.error"), 1)
      const results = yield* world.kind("tool.result", 2)
      assert.deepStrictEqual(
        results.map(({ payload }) => payload["status"]),
        ["unknown", "cancelled"]
      )
      assert.deepStrictEqual(yield* world.kind("actor.dead_letter", 0), [])
    }).pipe(Effect.scoped)
  )

  it.live("has the names for its calls that it had, whatever runs its agent had before", () =>
    Effect.gen(function* () {
      const first = Puppet.make({ holds: true })
      const world = yield* make([], {}, { puppet: first })
      yield* world.tree.send("one", "queue", caller)
      const before = yield* first.run()
      const call = { _tag: "ToolCall", tool: "look", arguments: {}, readOnly: true } as const
      yield* before.say({ ...call, callId: "x" }, { _tag: "ToolResult", callId: "x", status: "success", output: 1 })
      yield* before.say({ _tag: "TurnCompleted", turnId: before.spec.turnId, output: "1" })
      yield* world.over(1)
      yield* before.say({ _tag: "Exited", outcome: { _tag: "Success" } })
      yield* world.tree.send("two", "queue", caller)
      const run = yield* first.run(1)
      yield* run.say({ ...call, callId: "y", ...out(10) }, { _tag: "ToolStarted", callId: "y", ...out(10, 2) })
      yield* world.kind("tool.started", 2)
      yield* world.lose

      const second = Puppet.make({ holds: true, up: false })
      world.puppet = second
      yield* world.open
      const left = yield* second.run()
      const { turnId } = run.spec
      yield* left.say({ _tag: "Given", input: turnId }, { _tag: "Started", ...out(5) })
      yield* left.say({ ...call, callId: "y", ...out(10) }, { _tag: "ToolStarted", callId: "y", ...out(10, 2) })
      yield* left.say({ _tag: "Resumed", given: turnId })
      yield* left.say({ _tag: "ToolResult", callId: "y", status: "success", output: 2, ...out(20) })
      const results = yield* world.kind("tool.result", 2)
      assert.deepStrictEqual(
        results.map(({ payload }) => payload["status"]),
        ["success", "success"]
      )
    }).pipe(Effect.scoped)
  )

  it.live("does not deny a call that no daemon had stored, as if it had been decided before", () =>
    Effect.gen(function* () {
      const first = Puppet.make({ holds: true })
      const world = yield* make([], {}, { puppet: first })
      yield* world.tree.send("one", "queue", caller)
      const run = yield* first.run()
      yield* world.kind("turn.started")
      yield* world.lose

      const second = Puppet.make({ holds: true, up: false })
      world.puppet = second
      yield* world.open
      const left = yield* second.run()
      const { turnId } = run.spec
      const call = { _tag: "ToolCall", callId: "x", tool: "look", arguments: {}, readOnly: true, ...out(10) } as const
      const asked = { _tag: "ApprovalRequested", callId: "x", reason: "", ...out(10, 2) } as const
      yield* left.say({ _tag: "Given", input: turnId }, { _tag: "Started", ...out(5) }, call, asked, {
        _tag: "Resumed",
        given: turnId
      })
      yield* world.kind("tool.started")
      yield* Effect.sleep("50 millis")
      assert.deepStrictEqual(
        left.answers.map(([, { behavior }]) => behavior).filter((behavior) => behavior !== "allow"),
        []
      )
    }).pipe(Effect.scoped)
  )

  it.live("tells of a call's result, though the call's time was over before anybody heard of that", () =>
    Effect.gen(function* () {
      const first = Puppet.make({ holds: true })
      const world = yield* make([], { toolTimeout: "100 millis" }, { puppet: first })
      yield* world.tree.send("one", "queue", caller)
      const run = yield* first.run()
      const call = { _tag: "ToolCall", callId: "x", tool: "look", arguments: {}, readOnly: true } as const
      yield* run.say({ ...call, ...out(10) }, { _tag: "ToolStarted", callId: "x", ...out(10, 2) })
      yield* world.kind("tool.started")
      yield* world.lose
      yield* Effect.sleep("120 millis")

      const second = Puppet.make({ holds: true, up: false })
      world.puppet = second
      yield* world.open
      const left = yield* second.run()
      yield* Effect.sleep("50 millis")
      const { turnId } = run.spec
      yield* left.say(
        { _tag: "Given", input: turnId },
        { _tag: "Started", ...out(5) },
        { ...call, ...out(10) },
        { _tag: "ToolStarted", callId: "x", ...out(10, 2) },
        { _tag: "ToolResult", callId: "x", status: "success", output: 2, ...out(20) },
        { _tag: "TurnCompleted", turnId, output: "done", ...out(30) },
        { _tag: "Resumed", given: undefined }
      )
      yield* world.over(1)
      assert.deepStrictEqual(yield* world.kinds("turn/"), [
        "turn.started",
        "turn.tool_calls_received",
        "turn.tools_finished",
        "turn.completed"
      ])
    }).pipe(Effect.scoped)
  )

  it.live("that is not taken up is ended before the next one begins, in whatever its worker was", () =>
    Effect.forEach(
      [true, false],
      (isInterrupted) =>
        Effect.gen(function* () {
          const first = Puppet.make({ deaf: true, holds: true })
          const world = yield* make([], {}, { puppet: first })
          yield* world.tree.send("one", "queue", caller)
          const { spec } = yield* first.run()
          yield* world.kind("turn.started")
          if (isInterrupted) {
            yield* world.tree.send("two", "urgent", caller)
            yield* world.rune(({ to }) => to === "Interrupting")
          }
          yield* world.lose

          const isGone = yield* Deferred.make<void>()
          const ended: Array<string> = []
          const drop = (runId: string) =>
            Effect.andThen(
              Effect.sync(() => ended.push(runId)),
              Deferred.await(isGone)
            )
          const second = Puppet.make({ drop })
          world.puppet = second
          yield* world.open
          yield* until(
            Effect.sync(() => ended.length),
            (length) => length > 0
          )
          yield* Effect.sleep("50 millis")
          assert.lengthOf(second.runs, 0)
          yield* Deferred.succeed(isGone, undefined)
          const next = yield* second.run()
          assert.deepStrictEqual(ended, [spec.runId])
          assert.notStrictEqual(next.spec.runId, spec.runId)
        }).pipe(Effect.scoped),
      { discard: true }
    )
  )

  it.live("goes on with its time: that of the turn counts from where it was counted", () =>
    Effect.gen(function* () {
      const clock = yield* SteppedClock.make
      yield* Effect.gen(function* () {
        const first = Puppet.make({ holds: true })
        const world = yield* make([], { budget: { wallTime: "1 minute" } }, { puppet: first })
        yield* world.tree.send("one", "queue", caller)
        const { spec } = yield* first.run()
        yield* world.kind("turn.started")
        yield* world.lose
        yield* clock.step(90_000)

        const second = Puppet.make({ holds: true, up: false })
        world.puppet = second
        yield* world.open
        const left = yield* second.run()
        yield* left.say(
          { _tag: "Given", input: spec.turnId },
          { _tag: "Started", ...out(5) },
          { _tag: "Resumed", given: spec.turnId }
        )
        const [usage] = yield* world.kind("agent.usage")
        assert.isAtLeast(Number(usage!.payload["wall_time"]), 90_000)
        const [ended] = yield* world.kind("agent.terminated")
        assert.match(String(ended!.payload["reason"]), /budget of wall_time is spent/)
      }).pipe(clock.within)
    }).pipe(Effect.scoped)
  )

  for (const isOver of [true, false]) {
    it.live(
      isOver
        ? "is ended at the time at which it would have been"
        : "has ended by itself, though its time is over by now: that is how it ended",
      () =>
        Effect.gen(function* () {
          const clock = yield* SteppedClock.make
          yield* Effect.gen(function* () {
            const first = Puppet.make({ holds: true, turns: false })
            const world = yield* make([], { runTimeout: "1 minute" }, { puppet: first })
            yield* world.tree.send("one", "queue", caller)
            const { spec } = yield* first.run()
            yield* world.kind("turn.started")
            yield* world.lose
            yield* clock.step(90_000)

            const second = Puppet.make({ holds: true, turns: false, up: false })
            world.puppet = second
            yield* world.open
            const left = yield* second.run()
            yield* left.say(
              { _tag: "Given", input: spec.turnId },
              { _tag: "Started", ...out(5) },
              { _tag: "Resumed", given: spec.turnId }
            )
            if (!isOver) yield* left.say({ _tag: "Exited", outcome: { _tag: "Success" } })
            const { payload } = yield* world.rune(({ kind }) => ["turn.error", "turn.completed"].includes(kind))
            assert.strictEqual(payload["error_type"], isOver ? "timeout" : undefined)
          }).pipe(clock.within)
        }).pipe(Effect.scoped)
    )
  }
})

describe("the wall clock is set while a turn runs", () => {
  it.live("a day ahead: its time is what has passed", () =>
    Effect.gen(function* () {
      const clock = yield* SteppedClock.make
      yield* Effect.gen(function* () {
        const puppet = Puppet.make()
        const world = yield* make([], { budget: { wallTime: "1 hour" } }, { puppet })
        yield* world.tree.send("one", "queue", caller)
        const run = yield* puppet.run()
        yield* world.kind("turn.started")
        yield* clock.step(SteppedClock.DAY)
        yield* run.say({ _tag: "TurnCompleted", turnId: run.spec.turnId, output: "1" })
        yield* world.over(1)
        const times = (yield* world.kind("agent.usage", 0)).map(({ payload }) => Number(payload["wall_time"]))
        assert.isBelow(Math.max(0, ...times), 3_600_000)
        assert.lengthOf(yield* world.kind("turn.completed"), 1)
      }).pipe(clock.within)
    }).pipe(Effect.scoped)
  )

  it.live("a day back: its time is over as before", () =>
    Effect.gen(function* () {
      const clock = yield* SteppedClock.make
      yield* Effect.gen(function* () {
        const puppet = Puppet.make()
        const world = yield* make([], { budget: { wallTime: "500 millis" } }, { puppet })
        yield* world.tree.send("one", "queue", caller)
        yield* world.kind("turn.started")
        yield* clock.step(-SteppedClock.DAY)
        yield* world.kind("agent.terminated")
      }).pipe(clock.within)
    }).pipe(Effect.scoped)
  )
})
