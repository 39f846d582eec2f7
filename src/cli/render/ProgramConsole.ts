/**
 * ProgramConsole: the console of the whole program. Everything that a command, an error or a log line prints passes
 * TerminalDoor, and is converted to characters that the terminal can show.
 */
import { Effect, Stdio } from "effect"
import { TerminalCapabilities } from "effect/cli"
import { behindDoor } from "./SafeConsole.ts"
import { asciiOnly } from "./Locale.ts"

/** Runs the program with this console. Symbols are replaced by ASCII only on a terminal, not in a file or pipe. */
export const behind = <A, E, R>(program: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const { canColor } = yield* TerminalCapabilities.TerminalCapabilities
    const { stdoutIsTerminal } = yield* Stdio.Stdio
    return yield* behindDoor(program, canColor, (yield* stdoutIsTerminal) && (yield* asciiOnly))
  })
