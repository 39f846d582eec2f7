/**
 * DoorConsole: the console of the whole program: what any verb, any error and any log line prints
 * passes the door, in characters that the terminal shows.
 */
import { Effect, Stdio } from "effect"
import { TerminalCapabilities } from "effect/cli"
import { behindDoor } from "./Door.ts"
import { asciiOnly } from "./Locale.ts"

/** Runs the program with that console. What goes elsewhere than to a terminal keeps its marks. */
export const behind = <A, E, R>(program: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const { canColor } = yield* TerminalCapabilities.TerminalCapabilities
    const { stdoutIsTerminal } = yield* Stdio.Stdio
    return yield* behindDoor(program, canColor, (yield* stdoutIsTerminal) && (yield* asciiOnly))
  })
