import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { AgentLatch } from "../../../src/agents/actors/AgentLatch.ts"

describe("Gate", () => {
  it.effect("holds nobody while it is open", () => new AgentLatch(true).await)

  it.effect("lets all who wait go on, also where it is closed again at once, and holds who comes then", () =>
    Effect.gen(function* () {
      const gate = new AgentLatch(false)
      const wait = Effect.forkChild(gate.await, { startImmediately: true })
      const [first, second] = [yield* wait, yield* wait]
      gate.openUnsafe()
      gate.closeUnsafe()
      const late = yield* wait
      yield* Fiber.join(first)
      yield* Fiber.join(second)
      yield* Effect.yieldNow
      assert.isUndefined(late.pollUnsafe())
      assert.isFalse(gate.isOpen())
      yield* gate.open
      yield* Fiber.join(late)
      assert.isTrue(gate.isOpen())
    })
  )

  it.effect("lets go of who gives up to wait, and of nobody else", () =>
    Effect.gen(function* () {
      const gate = new AgentLatch(false)
      const wait = Effect.forkChild(gate.await, { startImmediately: true })
      const [impatient, patient] = [yield* wait, yield* wait]
      yield* Fiber.interrupt(impatient)
      assert.isUndefined(patient.pollUnsafe())
      gate.openUnsafe()
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(patient)))
    })
  )
})
