/**
 * DoorConsole: the console of the whole program: what any verb, any error and any log line prints
 * passes the door.
 */
import { Console, Effect } from "effect"
import { TerminalCapabilities } from "effect/cli"
import { through } from "./TerminalDoor.ts"

const PRINTS = ["debug", "error", "group", "info", "log", "trace", "warn"] as const

/** Runs the program with that console. */
export const behind = <A, E, R>(program: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const inner = yield* Console.Console
    const { canColor } = yield* TerminalCapabilities.TerminalCapabilities
    const print = (colour: boolean) => (arg: unknown) => (typeof arg === "string" ? through(arg, colour) : arg)
    const console = Object.assign(
      Object.create(inner) as Console.Console,
      Object.fromEntries(
        PRINTS.map((name) => {
          // an error has no colours of ours
          const shown = print(canColor && name !== "error")
          return [name, (...args: ReadonlyArray<unknown>) => inner[name](...args.map(shown))]
        })
      )
    )
    return yield* Effect.provideService(program, Console.Console, console)
  })
