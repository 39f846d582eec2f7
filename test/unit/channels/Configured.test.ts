/** A command that follows a project's registration finds the channels that the project's file names. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { CONVERSATION, run } from "../../world/channels/World.ts"

describe("a conversation is configured", () => {
  it.effect("once its file was heard of and its channels are there, for who waited and for who asks later", () =>
    run((world) =>
      Effect.gen(function* () {
        const { configured, isConfigured, list } = world.channels
        assert.isFalse(yield* isConfigured(CONVERSATION))
        const waiting = yield* Effect.forkChild(Effect.andThen(configured(CONVERSATION), list), {
          startImmediately: true
        })
        assert.isUndefined(waiting.pollUnsafe())
        yield* world.configure({ reviews: { agents: ["pm"] } })
        assert.deepStrictEqual(
          (yield* Fiber.join(waiting)).map(({ name }) => name),
          ["reviews"]
        )
        yield* configured(CONVERSATION)
        assert.isTrue(yield* isConfigured(CONVERSATION))
      })
    )
  )
})
