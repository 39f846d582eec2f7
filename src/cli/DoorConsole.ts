/**
 * DoorConsole: the console of the whole program: what any verb, any error and any log line prints
 * passes the door.
 */
import { Effect } from "effect"
import { TerminalCapabilities } from "effect/cli"
import { behindDoor } from "./Door.ts"

/** Runs the program with that console. */
export const behind = <A, E, R>(program: Effect.Effect<A, E, R>) =>
  Effect.flatMap(TerminalCapabilities.TerminalCapabilities, ({ canColor }) => behindDoor(program, canColor))
