/** Approvals that last for a run: the rules are kept in its state, and are tried on the calls that wait. */
import { assert, describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { AskedCall } from "../../../src/domain/Messages.ts"
import { type AgentWorld, caller, make } from "./AgentWorld.ts"
import * as Puppet from "./Puppet.ts"
import { until } from "./World.ts"

const asks = (run: Puppet.Pulled, callId: string, command: string) =>
  Effect.andThen(
    run.say({ _tag: "ToolCall", callId, tool: "Bash", arguments: { command }, readOnly: false }),
    run.say({ _tag: "ApprovalRequested", callId, reason: "" })
  )
const waiting = (world: AgentWorld, count: number) =>
  until(
    Effect.sync(() => world.tree.calls().filter(({ state }) => state === "awaiting_approval")),
    (calls) => calls.length === count
  )
const seen = (world: AgentWorld, callId: string) => world.tree.asked(callId) as AskedCall
const forRun = (world: AgentWorld, callId: string, command: string) =>
  ({
    behavior: "allow",
    reason: "",
    hash: seen(world, callId).hash,
    lasting: { scope: "run", rules: [{ command }] }
  }) as const
const opened = Effect.gen(function* () {
  const world = yield* make([])
  const puppet = Puppet.make()
  world.puppet = puppet
  yield* world.tree.send("go", "queue", caller)
  return { world, run: yield* puppet.run(), puppet }
})
const approvals = (world: AgentWorld) =>
  Effect.map(world.runes, (runes) =>
    runes.filter(({ kind }) => kind === "tool.approved").map(({ payload }) => payload["event"] as object)
  )

describe("a rule for a run", () => {
  it.live("is offered with the parts of the call, and allows the calls that wait and the later ones", () =>
    Effect.gen(function* () {
      const { run, world } = yield* opened
      yield* asks(run, "a", "npm test")
      yield* asks(run, "b", "npm test")
      yield* asks(run, "c", "npm publish")
      const [first, , other] = yield* waiting(world, 3)
      const asked = seen(world, first!.callId)
      expect(asked.parts).toMatchObject([{ text: "npm test", verdict: "ask" }])
      expect(asked.offers?.[0]).toEqual({ words: "npm test", rules: ["npm test"] })
      assert.deepStrictEqual(asked.scopes, ["run"])
      yield* world.tree.answer(first!.callId, forRun(world, first!.callId, "npm test"), caller)
      assert.deepStrictEqual(
        (yield* waiting(world, 1)).map(({ callId }) => callId),
        [other!.callId]
      )
      const [answered, ruled] = yield* approvals(world)
      expect(answered).toMatchObject({ approver: "ada", scope: "run", rules: [{ command: "npm test" }] })
      expect(ruled).toMatchObject({ approver: "rules" })
      expect((ruled as { policyReason: string }).policyReason).toContain("npm test")
      yield* asks(run, "d", "npm test")
      yield* until(
        Effect.sync(() => world.tree.calls()),
        (calls) => calls.some(({ callId, state }) => callId.endsWith("-4") && state === "executing")
      )
    }).pipe(Effect.scoped)
  )

  it.live("is gone with the run", () =>
    Effect.gen(function* () {
      const { puppet, run, world } = yield* opened
      yield* asks(run, "a", "npm test")
      const [first] = yield* waiting(world, 1)
      yield* world.tree.answer(first!.callId, forRun(world, first!.callId, "npm test"), caller)
      yield* run.say({ _tag: "Exited", outcome: { _tag: "Success" } })
      yield* world.tree.send("again", "queue", caller)
      const next = yield* puppet.run(1)
      yield* asks(next, "a", "npm test")
      yield* waiting(world, 1)
    }).pipe(Effect.scoped)
  )

  it.live("is refused for a run that has ended, for a call that is gone, and without what was seen", () =>
    Effect.gen(function* () {
      const { run, world } = yield* opened
      yield* asks(run, "a", "npm test")
      const [first] = yield* waiting(world, 1)
      const said = forRun(world, first!.callId, "npm test")
      const refused = yield* Effect.flip(world.tree.answer(first!.callId, { ...said, hash: "0".repeat(64) }, caller))
      expect(refused.message).toContain("has changed since it was shown")
      yield* run.say({ _tag: "ApprovalWithdrawn", callId: "a" })
      yield* world.kind("tool.approval_withdrawn")
      expect((yield* Effect.flip(world.tree.answer(first!.callId, said, caller))).message).toContain("withdrawn")
      yield* asks(run, "b", "npm publish")
      const [second] = yield* waiting(world, 1)
      const late = forRun(world, second!.callId, "npm publish")
      yield* world.lose
      yield* world.open
      const over = yield* Effect.flip(world.tree.answer(second!.callId, late, caller))
      expect(over.message).toContain("The run that made call")
      assert.isUndefined(seen(world, second!.callId).offers)
      assert.lengthOf(yield* approvals(world), 0)
    }).pipe(Effect.scoped)
  )
})

it.live("a rule of a config that comes in force runs the calls that it allows, and leaves the others", () =>
  Effect.gen(function* () {
    const { run, world } = yield* opened
    yield* asks(run, "a", "npm test")
    yield* asks(run, "b", "npm publish")
    yield* waiting(world, 2)
    const place = { scope: "user project", at: "config.jsonc:4" } as const
    world.rules = [{ effect: "allow", subject: { command: "npm test" }, place }]
    yield* world.tree.weigh
    const [left] = yield* waiting(world, 1)
    assert.include(left!.arguments, "publish")
    const [ruled] = yield* approvals(world)
    expect((ruled as { policyReason: string }).policyReason).toContain("config.jsonc:4")
  }).pipe(Effect.scoped)
)

it.live("a run begins so that it asks about every call if a rule denies or asks", () =>
  Effect.gen(function* () {
    const { puppet, run, world } = yield* opened
    assert.isFalse(run.spec.asksAll)
    const place = { scope: "user", at: "config.jsonc:4" } as const
    const subject = { command: "npm test" }
    for (const [index, effect] of (["allow", "ask", "deny"] as const).entries()) {
      world.rules = [{ effect, subject, place }]
      yield* world.lose
      yield* world.open
      yield* world.tree.send("go", "queue", caller)
      const { spec } = yield* puppet.run(index + 1)
      assert.strictEqual(spec.asksAll, effect !== "allow", effect)
    }
  }).pipe(Effect.scoped)
)
