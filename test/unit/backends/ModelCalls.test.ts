/** The time limit of each call of one answer. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { ModelCalls, plan } from "../../../src/model-agent/ModelCalls.ts"
import type { Tool } from "../../../src/model-agent/Tool.ts"
import type { RunEvent } from "../../../src/runs/Backend.ts"

const wait: Tool = {
  name: "wait",
  description: "",
  inputSchema: { type: "object" },
  readOnly: true,
  parallel: false,
  run: (input) => Effect.as(Effect.sleep(`${(input as { s: number }).s} seconds`), { status: "success", output: "" })
}

const results = (...seconds: ReadonlyArray<number>) =>
  Effect.gen(function* () {
    const seen: Array<string> = []
    const emit = (event: RunEvent) =>
      Effect.sync(() => void (event._tag === "ToolResult" && seen.push(`${event.callId} ${event.status}`)))
    const calls = new ModelCalls(emit, Effect.void, Duration.seconds(4))
    const tools = new Map([[wait.name, wait]])
    const part = (s: number, at: number) => ({ type: "call", id: `${at}`, name: "wait", input: { s } }) as const
    yield* calls.begin(seconds.map((s, at) => plan(part(s, at) as never, tools, false)))
    for (const at of seconds.keys()) yield* calls.answer(`${at}`, { behavior: "allow" })
    const fiber = yield* Effect.forkChild(calls.run)
    for (let second = 0; second < 20; second++) yield* TestClock.adjust("1 second")
    yield* Fiber.join(fiber)
    return seen
  })

describe("the time limit of a call", () => {
  it.effect("runs from the call's own start, though both were allowed at once", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* results(3, 3), ["0 success", "1 success"])
    })
  )

  it.effect("ends a call that takes longer, and only that one", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* results(9, 3), ["0 timeout", "1 success"])
    })
  )
})
