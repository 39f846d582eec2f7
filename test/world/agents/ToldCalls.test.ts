/** Calls that a run only tells of: nobody is asked about them, and it does not say when they begin. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, HashMap } from "effect"
import type { Place, RunEvent } from "../../../src/runs/Backend.ts"
import { type AgentWorld, caller, make } from "./AgentWorld.ts"
import { leave } from "./Leave.ts"
import * as Puppet from "./Puppet.ts"
import { until } from "./World.ts"

const out = (end: number, index = 1): { readonly place: Place } => ({ place: { out: [1, end, index] } })
const call = (callId: string): RunEvent => ({
  _tag: "ToolCall",
  callId,
  tool: "shell",
  arguments: { callId },
  readOnly: false
})
const asks = (callId: string): RunEvent => ({ _tag: "ApprovalRequested", callId, reason: "" })
const result = (callId: string): RunEvent => ({ _tag: "ToolResult", callId, status: "success", output: "" })

const begun = Effect.fnUntraced(function* (config: object, holds = false) {
  const puppet = { ...Puppet.make({ holds }), runsTools: false }
  const world = yield* make([], config, { puppet })
  yield* world.tree.send("go", "queue", caller)
  const run = yield* puppet.run()
  return { world, run, turnId: run.spec.turnId }
})

/** A call that nobody asks about is taken to run after so long at most. */
const SOON = { maxToolTimeout: "2 seconds" }

const inState = (world: AgentWorld, state: string) =>
  until(
    Effect.sync(() => world.tree.calls().filter((one) => one.state === state)),
    ({ length }) => length > 0
  )

const ends = (world: AgentWorld) =>
  Effect.map(world.runes, (runes) =>
    runes.flatMap(({ actor, kind, payload }) =>
      kind === "tool.result" ? [[actor.slice(actor.lastIndexOf("-") + 1), payload["status"]]] : []
    )
  )

describe("a call that is only told of", () => {
  it.live("runs, is limited by maxToolTimeout, and the turn goes on without it", () =>
    Effect.gen(function* () {
      const { run, turnId, world } = yield* begun({ maxToolTimeout: "50ms", toolTimeout: "1h" })
      yield* run.say(call("a"))
      yield* world.kind("tool.started")
      assert.deepStrictEqual(
        world.tree.calls().map(({ state }) => state),
        ["executing"]
      )
      yield* world.kind("turn.tools_finished")
      assert.deepStrictEqual(yield* ends(world), [["1", "timeout"]])
      assert.deepStrictEqual(run.cancelled, ["a"])
      yield* run.say(result("a"), { _tag: "TurnCompleted", turnId, output: "done" })
      yield* world.over(1)
      assert.deepStrictEqual(yield* ends(world), [["1", "timeout"]], "it has one result")
    }).pipe(Effect.scoped)
  )

  it.live("behind another one has its time when that one is over, or has had its leave", () =>
    Effect.gen(function* () {
      const { run, world } = yield* begun({ maxToolTimeout: "50ms" })
      yield* run.say(call("a"), asks("a"), call("b"))
      const [first] = yield* inState(world, "awaiting_approval")
      yield* Effect.sleep("1300 millis")
      assert.deepStrictEqual(yield* world.kinds("tool/builder"), ["tool.call", "tool.approval_requested", "tool.call"])
      yield* world.tree.answer(first!.callId, leave(world.tree, first!.callId), caller)
      yield* world.kind("turn.tools_finished")
      assert.deepStrictEqual(yield* ends(world), [
        ["1", "timeout"],
        ["2", "timeout"]
      ])
    }).pipe(Effect.scoped)
  )

  it.live("that asks after all runs with leave alone, also after a restart of the daemon", () =>
    Effect.gen(function* () {
      const { run, turnId, world } = yield* begun(SOON, true)
      yield* run.say({ ...call("a"), ...out(10) })
      yield* inState(world, "executing")
      yield* run.say({ ...asks("a"), ...out(20) })
      const [late] = yield* inState(world, "awaiting_approval")
      assert.match(late!.callId, /-1a$/)
      assert.deepStrictEqual(run.cancelled, [], "its run goes on")
      const { made } = world.tree.actors.tools.state
      assert.deepStrictEqual(
        [...HashMap.values(made!.times)],
        [1],
        "it counts once towards the calls that are the same"
      )
      yield* world.lose

      const second = Puppet.make({ holds: true, up: false })
      world.puppet = second
      yield* world.open
      const left = yield* second.run()
      yield* left.say({ _tag: "Given", input: turnId }, { _tag: "Started", ...out(5) })
      yield* left.say({ ...call("a"), ...out(10) }, { ...asks("a"), ...out(20) }, { _tag: "Resumed", given: turnId })
      yield* Effect.sleep("50 millis")
      const [same] = yield* inState(world, "awaiting_approval")
      assert.strictEqual(same!.callId, late!.callId)
      assert.deepStrictEqual(left.answers, [], "nobody has allowed it")
      yield* world.tree.answer(same!.callId, leave(world.tree, same!.callId), caller)
      yield* until(
        Effect.sync(() => left.answers),
        ({ length }) => length === 1
      )
      assert.deepStrictEqual(left.answers, [["a", { behavior: "allow" }]])
      yield* left.say({ ...result("a"), ...out(30) }, { _tag: "TurnCompleted", turnId, output: "", ...out(40) })
      yield* world.over(1)
      assert.deepStrictEqual(yield* ends(world), [
        ["1", "cancelled"],
        ["1a", "success"]
      ])
    }).pipe(Effect.scoped)
  )

  it.live("and asks while no daemon hears it has no leave by having been taken to run", () =>
    Effect.gen(function* () {
      const { run, turnId, world } = yield* begun(SOON, true)
      yield* run.say({ ...call("a"), ...out(10) })
      yield* inState(world, "executing")
      yield* world.lose
      const second = Puppet.make({ holds: true, up: false })
      world.puppet = second
      yield* world.open
      const left = yield* second.run()
      yield* left.say({ _tag: "Given", input: turnId }, { _tag: "Started", ...out(5) })
      yield* left.say({ ...call("a"), ...out(10) }, { ...asks("a"), ...out(20) }, { _tag: "Resumed", given: turnId })
      yield* inState(world, "awaiting_approval")
      assert.deepStrictEqual(left.answers, [])
    }).pipe(Effect.scoped)
  )

  it.live("and is open when its turn ends well ends with it: the turn needs no further answer", () =>
    Effect.gen(function* () {
      const { run, turnId, world } = yield* begun({})
      yield* run.say(call("a"), { _tag: "TurnCompleted", turnId, output: "done" })
      const [completed] = yield* world.kind("turn.completed")
      assert.deepInclude(completed!, { from: "tool_executing", trigger: "tools_finished" })
      assert.deepInclude(completed!.payload, { final_output: "done" })
      assert.deepStrictEqual(yield* ends(world), [["1", "unknown"]])
      assert.deepStrictEqual(yield* world.kinds("turn/"), [
        "turn.started",
        "turn.tool_calls_received",
        "turn.completed"
      ])
      yield* world.tree.send("more", "queue", caller)
      yield* world.kind("turn.started", 2)
    }).pipe(Effect.scoped)
  )
})
