/** Door: a console whose lines all pass the terminal's door. */
import { Console, Effect } from "effect"
import { through } from "./TerminalDoor.ts"

const PRINTS = ["debug", "error", "group", "info", "log", "trace", "warn"] as const

/** Runs the program with that console. */
export const behindDoor = <A, E, R>(program: Effect.Effect<A, E, R>, colour: boolean) =>
  Effect.gen(function* () {
    const inner = yield* Console.Console
    const print = (allowed: boolean) => (arg: unknown) => (typeof arg === "string" ? through(arg, allowed) : arg)
    const console = Object.assign(
      Object.create(inner) as Console.Console,
      Object.fromEntries(
        PRINTS.map((name) => {
          // an error has no colours of ours
          const shown = print(colour && name !== "error")
          return [name, (...args: ReadonlyArray<unknown>) => inner[name](...args.map(shown))]
        })
      )
    )
    return yield* Effect.provideService(program, Console.Console, console)
  })
