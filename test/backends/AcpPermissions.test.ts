/** A call that an agent asks leave for is told as begun only where the agent can be given leave. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { AcpPermissions } from "../../src/backends/acp/AcpPermissions.ts"
import { AcpUpdates } from "../../src/backends/acp/AcpUpdates.ts"
import type { RunEvent } from "../../src/backends/Backend.ts"

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
    notice: (text) => Effect.sync(() => void notices.push(text))
  })
  updates.begin("turn-1")
  const asking = yield* Effect.forkChild(
    permissions.ask({ sessionId: "s", toolCall, options: kinds.map((kind) => option(kind)) }),
    { startImmediately: true }
  )
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
      const { events } = updates.ask({ ...toolCall, kind, title: "Ready to code?" })!
      return events.find((event) => event._tag === "ApprovalRequested")
    }
    assert.deepInclude(asked("switch_mode"), { always: true, reason: "Ready to code?" })
    assert.notProperty(asked("execute"), "always")
  })
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
