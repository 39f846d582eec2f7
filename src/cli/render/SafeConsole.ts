/** SafeConsole: a console that passes all its lines through TerminalDoor, so that no text can control the terminal. */
import { Console, Effect } from "effect"
import { ascii } from "./Ascii.ts"
import { through } from "./TerminalDoor.ts"

const PRINTS = ["debug", "error", "group", "info", "log", "trace", "warn"] as const

/**
 * Runs a program with a console that passes all text through TerminalDoor. `isAscii`: replace agentd's symbols by ASCII
 * characters.
 */
export const behindDoor = <A, E, R>(program: Effect.Effect<A, E, R>, colour: boolean, isAscii = false) =>
  Effect.gen(function* () {
    const inner = yield* Console.Console
    const print = (allowed: boolean) => (arg: unknown) => {
      if (typeof arg !== "string") return arg
      return isAscii ? ascii(through(arg, allowed)) : through(arg, allowed)
    }
    const console = Object.assign(
      Object.create(inner) as Console.Console,
      Object.fromEntries(
        PRINTS.map((name) => {
          // agentd prints errors without colours
          const shown = print(colour && name !== "error")
          return [name, (...args: ReadonlyArray<unknown>) => inner[name](...args.map(shown))]
        })
      )
    )
    return yield* Effect.provideService(program, Console.Console, console)
  })
