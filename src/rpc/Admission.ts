/**
 * Admission: the calls under way, counted and bounded, whatever they are about.
 *
 * Guarantees: a call beyond the limit is refused at once and costs nothing; one
 * that ends, fails or is given up makes room again.
 */
import { Context, Effect, Layer, Stream } from "effect"
import { CommandRefused } from "../domain/Messages.ts"
import { Limits } from "./Procedure.ts"

const make = Effect.sync(() => {
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
      Effect.acquireUseRelease(
        acquire,
        () => effect,
        () => release
      ),
    stream: <A, E, R>(stream: Stream.Stream<A, E, R>) =>
      Stream.unwrap(
        Effect.as(
          Effect.acquireRelease(acquire, () => release),
          stream
        )
      )
  }
})

export class Admission extends Context.Service<Admission, Effect.Success<typeof make>>()("agentd/control/Admission") {}

export const layer = Layer.effect(Admission)(make)
