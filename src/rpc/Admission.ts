/**
 * Admission: the calls under way, counted and bounded, whatever they are about.
 *
 * Guarantees: a call beyond the limit is refused at once and costs nothing; one
 * that was begun is carried out, though its asker goes away, and makes room again
 * at its end; the daemon's end is the end of all of them.
 */
import { Effect, Fiber } from "effect"
import { CommandRefused } from "../domain/Messages.ts"
import { Limits } from "./Limits.ts"

/** Ends with its scope. */
export const make = Effect.gen(function* () {
  const scope = yield* Effect.scope
  let open = 0
  const acquire = Effect.suspend(() => {
    if (open >= Limits.calls) {
      return Effect.fail(
        new CommandRefused({
          message: `${Limits.calls} calls are under way already.`,
          remedy: "Try again in a moment; end some `agentd log -f`."
        })
      )
    }
    open++
    return Effect.void
  })
  const release = Effect.sync(() => {
    open--
  })
  return {
    call: <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      // a command of several steps is never left half done
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          yield* acquire
          const work = Effect.ensuring(Effect.interruptible(effect), release)
          const fiber = yield* Effect.forkIn(work, scope, { startImmediately: true })
          return yield* restore(Fiber.join(fiber))
        })
      ),
    /** Admits a stream, for as long as its caller listens. */
    held: <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.acquireUseRelease(
        acquire,
        () => effect,
        () => release
      )
  }
})
