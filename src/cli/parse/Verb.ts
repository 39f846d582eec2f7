/**
 * Verb: building blocks for verbs: the flags that all verbs have, and a loader that imports a verb's code when the verb
 * is called.
 */
import { Effect, Option } from "effect"
import { Argument, Flag, GlobalFlag } from "effect/cli"
import * as StoreOwner from "../../core/event-log/StoreOwner.ts"
import { ExitCode } from "./ExitCode.ts"
import { VerbFailed } from "./Failure.ts"
import * as Invocation from "./Invocation.ts"
import * as Paths from "./Paths.ts"

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const State = GlobalFlag.Setting("state")({
  flag: Flag.String("state").pipe(
    Flag.withMetavar("DIR"),
    Flag.withDescription("Use this state directory instead of the default one"),
    Flag.mapTryCatch((folder) => {
      if (folder.trim() === "") throw new Error("Expected a folder's path, but the value is empty")
      return folder
    }, messageOf),
    Flag.optional
  )
})
const Json = GlobalFlag.Setting("json")({
  flag: Flag.Boolean("json").pipe(
    Flag.withDescription("Print the result as JSON: one value, or one value per line for a stream"),
    Flag.withDefault(false)
  )
})

export const onlyOne = new VerbFailed({
  message: "This command works with one host only.",
  remedy: "These work with --all-hosts: the board, ps, waiting, cost, log. For another, name the host: --host HOST",
  exitCode: ExitCode.usage
})

/** Fails with `--all-hosts`, for a verb that acts on one host. */
export const oneHost = Effect.flatMap(Paths.AllHosts, (hosts) => (hosts === undefined ? Effect.void : onlyOne))

/** Like `loaded`, for a verb that acts on one host. */
export const verb = <I, A, E, R>(load: () => Promise<{ readonly run: (input: I) => Effect.Effect<A, E, R> }>) => {
  const run = loaded(load)
  return (input: I) => Effect.andThen(oneHost, run(input))
}

/** Loads the code of a verb when the verb is called. */
export const loaded =
  <I, A, E, R>(load: () => Promise<{ readonly run: (input: I) => Effect.Effect<A, E, R> }>) =>
  (input: I) =>
    Effect.gen(function* () {
      const invocation = yield* Invocation.make({ state: yield* State, json: yield* Json })
      const { run } = yield* Effect.promise(load)
      return yield* run(input).pipe(
        Effect.provideService(Invocation.Invocation, invocation),
        Effect.provideService(StoreOwner.Here, () =>
          invocation.paths.host === undefined ? StoreOwner.here(invocation.paths.state) : undefined
        )
      )
    })

/** Shown in the help. `HostLine` takes it from the command line before this program reads the other arguments. */
const Host = GlobalFlag.Setting("host")({
  flag: Flag.String("host").pipe(
    Flag.withMetavar("HOST"),
    Flag.withDescription("Use the daemon of another machine: a saved host, or ssh://user@machine"),
    Flag.optional
  )
})

/** Shown in the help. `HostLine` takes it, as `--host`. */
const AllHosts = GlobalFlag.Setting("all-hosts")({
  flag: Flag.Boolean("all-hosts").pipe(
    Flag.withDescription("With the board, ps, waiting, cost and log: list this machine and all saved hosts"),
    Flag.withDefault(false)
  )
})

export const globalFlags = [State, Host, AllHosts, Json] as const

export const maybe = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar(metavar),
    Flag.withDescription(description),
    Flag.optional,
    Flag.map(Option.getOrUndefined)
  )

export const labels = (description: string) =>
  Flag.String("label").pipe(
    Flag.withAlias("l"),
    Flag.withMetavar("LABEL"),
    Flag.withDescription(description),
    Flag.atLeast(0)
  )

export const maybeWord = (name: string, description: string) =>
  Argument.String(name).pipe(
    Argument.withDescription(description),
    Argument.optional,
    Argument.map(Option.getOrUndefined)
  )

export const off = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false))

export const yes = Flag.Boolean("yes").pipe(
  Flag.withAlias("y"),
  Flag.withDescription("Do not ask for confirmation"),
  Flag.withDefault(false)
)

export const agent = Argument.String("agent").pipe(
  Argument.withDescription("The agent: its name in this project, or project/agent")
)

/** A flag whose value `of` parses; `of` throws if the value is invalid. */
export const readFlag = <A>(name: string, [metavar, description]: readonly [string, string], of: (text: string) => A) =>
  Flag.String(name).pipe(Flag.withMetavar(metavar), Flag.withDescription(description), Flag.mapTryCatch(of, messageOf))
