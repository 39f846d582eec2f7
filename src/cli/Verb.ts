/**
 * Verb: what every verb of the command line is made with: the flags that all of
 * them take, and the loader that brings in a verb's own code when it is called.
 */
import { Effect, Option } from "effect"
import { Flag, GlobalFlag } from "effect/cli"
import * as Invocation from "./Invocation.ts"

const State = GlobalFlag.Setting("state")({
  flag: Flag.String("state").pipe(
    Flag.withMetavar("DIR"),
    Flag.withDescription("Keep and find everything in this folder: a separate world"),
    Flag.optional
  )
})
const Json = GlobalFlag.Setting("json")({
  flag: Flag.Boolean("json").pipe(
    Flag.withDescription("Print one JSON value, or one a line where it is a stream"),
    Flag.withDefault(false)
  )
})

/** Loads the verb, then runs it as it was invoked. */
export const verb =
  <I, A, E, R>(load: () => Promise<{ readonly run: (input: I) => Effect.Effect<A, E, R> }>) =>
  (input: I) =>
    Effect.gen(function* () {
      const invocation = yield* Invocation.make({ state: yield* State, json: yield* Json })
      const { run } = yield* Effect.promise(load)
      return yield* Effect.provideService(run(input), Invocation.Invocation, invocation)
    })

export const globalFlags = [State, Json] as const

export const maybe = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar(metavar),
    Flag.withDescription(description),
    Flag.optional,
    Flag.map(Option.getOrUndefined)
  )
