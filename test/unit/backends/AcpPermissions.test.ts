/** A call that an agent asks leave for is told as begun only where the agent can be given leave. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { AcpPermissions } from "../../../src/runs/acp/AcpPermissions.ts"
import { AcpUpdates } from "../../../src/runs/acp/AcpUpdates.ts"
import type { RunEvent } from "../../../src/runs/Backend.ts"

const toolCall = { toolCallId: "c1", title: "touch a", kind: "execute", rawInput: { command: "touch a" } }
const option = (kind: string) => ({ optionId: kind, name: kind, kind })

/** The told events and the answer, where a person decides so about a call with these options. */
const decided = Effect.fnUntraced(function* (behavior: "allow" | "deny", kinds: ReadonlyArray<string>) {
  const updates = new AcpUpdates()
  const told: Array<RunEvent> = []
  const notices: Array<string> = []
  const permissions = new AcpPermissions({
    updates,
    tell: (make) => Effect.sync(() => void told.push(...make())),
    hear: (make) => Effect.sync(() => void told.push(...make())),
    noted: (_, make) => Effect.sync(() => void told.push(...make())),
    notice: (text) => Effect.sync(() => void notices.push(text))
  })
  updates.begin("turn-1")
  const asking = yield* Effect.forkChild(
    permissions.ask({ sessionId: "s", toolCall, options: kinds.map((kind) => option(kind)) }, 7),
    { startImmediately: true }
  )
  told.push(...updates.settle(updates.version))
  const { callId } = told.find((event) => event._tag === "ApprovalRequested")!
  assert.isTrue(permissions.answer(callId, behavior === "allow" ? { behavior } : { behavior, message: "no" }))
  const { outcome } = yield* Fiber.join(asking)
  return { outcome, notices, hasBegun: told.some(({ _tag }) => _tag === "ToolStarted") }
})

describe("leave to go from a plan to its work", () => {
  it("is a person's to give, whatever the agent's approval mode is; of other calls it is that mode's", () => {
    const asked = (kind: string) => {
      const updates = new AcpUpdates()
      updates.begin("turn-1")
      updates.ask({ ...toolCall, kind, title: "Ready to code?" })
      return updates.settle(updates.version).find((event) => event._tag === "ApprovalRequested")
    }
    assert.deepInclude(asked("switch_mode"), { always: true, reason: "Ready to code?" })
    assert.notProperty(asked("execute"), "always")
  })
})

describe("a request that the agent takes back", () => {
  const world = () => {
    const updates = new AcpUpdates()
    const told: Array<RunEvent> = []
    const tell = (make: () => ReadonlyArray<RunEvent>) => Effect.sync(() => void told.push(...make()))
    const noted = (_: unknown, make: () => ReadonlyArray<RunEvent>) => tell(make)
    const permissions = new AcpPermissions({ updates, tell, hear: tell, noted, notice: () => Effect.void })
    const settle = () => told.push(...updates.settle(updates.version))
    updates.begin("turn-1")
    const withdraw = (id: unknown) => told.push(...updates.withdrawn(id, (callId) => permissions.withdraw(callId)))
    return { updates, told, permissions, settle, withdraw }
  }
  const request = { sessionId: "s", toolCall, options: [option("allow_once")] }

  it.effect("is refused as cancelled, its question is withdrawn, and the call may ask again", () =>
    Effect.gen(function* () {
      const { permissions, settle, told, withdraw } = world()
      const asking = yield* Effect.forkChild(Effect.flip(permissions.ask(request, "r-1")), { startImmediately: true })
      settle()
      withdraw("another")
      withdraw("r-1")
      withdraw("r-1")
      assert.strictEqual((yield* Fiber.join(asking)).code, -32800)
      assert.isFalse(permissions.answer("c1", { behavior: "allow" }))
      const again = yield* Effect.forkChild(permissions.ask(request, "r-2"), { startImmediately: true })
      settle()
      assert.isTrue(permissions.answer("c1", { behavior: "allow" }))
      yield* Fiber.join(again)
      assert.deepStrictEqual(
        told.flatMap((event) => ("callId" in event ? [`${event._tag} ${event.callId}`] : [])),
        ["ToolCall c1", "ApprovalRequested c1", "ApprovalWithdrawn c1", "ApprovalRequested c1", "ToolStarted c1"]
      )
    })
  )

  it.effect("for a deed of agentd's own ends that call: nothing is done for nobody", () =>
    Effect.gen(function* () {
      const { permissions, told, updates, withdraw } = world()
      const deed = { tool: "terminal/create", arguments: {}, readOnly: false, request: 7 }
      const asking = yield* Effect.forkChild(Effect.flip(permissions.leave(() => updates.deed(deed))), {
        startImmediately: true
      })
      withdraw(7)
      assert.strictEqual((yield* Fiber.join(asking)).code, -32800)
      assert.deepInclude(told.at(-1), { _tag: "ToolResult", status: "cancelled" })
    })
  )
})

describe("a permission that is asked for", () => {
  it.effect("is given by the option that holds once", () =>
    Effect.gen(function* () {
      const given = yield* decided("allow", ["allow_always", "allow_once", "reject_once"])
      assert.deepStrictEqual(given, {
        outcome: { outcome: "selected", optionId: "allow_once" },
        notices: [],
        hasBegun: true
      })
    })
  )

  it.effect("is asked for again where the call is another one by then, and the second answer counts", () =>
    Effect.gen(function* () {
      const updates = new AcpUpdates()
      const told: Array<RunEvent> = []
      const take = (make: () => ReadonlyArray<RunEvent>) => Effect.sync(() => void told.push(...make()))
      const requests: Array<unknown> = []
      const noted = (request: unknown, make: () => ReadonlyArray<RunEvent>) =>
        Effect.andThen(
          Effect.sync(() => requests.push(request)),
          take(make)
        )
      const permissions = new AcpPermissions({ updates, tell: take, hear: take, noted, notice: () => Effect.void })
      updates.begin("turn-1")
      const options = [option("allow_once"), option("reject_once")]
      const asking = yield* Effect.forkChild(permissions.ask({ sessionId: "s", toolCall, options }, 7), {
        startImmediately: true
      })
      told.push(...updates.settle(updates.version))
      updates.update({ sessionUpdate: "tool_call_update", toolCallId: "c1", rawInput: { command: "rm a" } } as never)
      assert.isTrue(permissions.answer("c1", { behavior: "allow" }))
      yield* Effect.yieldNow
      assert.deepInclude(
        told.findLast(({ _tag }) => _tag === "ToolCall"),
        { arguments: { command: "rm a" } }
      )
      assert.isTrue(permissions.answer("c1#2", { behavior: "deny", message: "no" }))
      assert.deepStrictEqual((yield* Fiber.join(asking)).outcome, { outcome: "selected", optionId: "reject_once" })
      assert.deepStrictEqual(requests, [7])
      assert.isFalse(told.some(({ _tag }) => _tag === "ToolStarted"))
    })
  )

  it.effect("cannot be given where no option gives it: the call is cancelled, and never told as begun", () =>
    Effect.gen(function* () {
      const given = yield* decided("allow", ["reject_once"])
      assert.deepStrictEqual(given.outcome, { outcome: "cancelled" })
      assert.lengthOf(given.notices, 1)
      assert.isFalse(given.hasBegun)
    })
  )

  it.effect("cannot be refused where no option refuses it: the call is cancelled", () =>
    Effect.gen(function* () {
      const given = yield* decided("deny", ["allow_once"])
      assert.deepStrictEqual(given.outcome, { outcome: "cancelled" })
      assert.isFalse(given.hasBegun)
    })
  )
})
