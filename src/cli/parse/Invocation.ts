/**
 * Invocation: what every verb needs to know of how it was called: the paths, who
 * asks from where, how to print, and how this very program was started.
 */
import { Console, Context, Effect, Option, Schema, Stdio, Terminal } from "effect"
import { TerminalCapabilities } from "effect/cli"
import { userInfo } from "node:os"
import type { Caller, ConfigChangeInfo } from "../../domain/Messages.ts"
import * as Hint from "./Hint.ts"
import * as Paths from "./Paths.ts"
import { worldOf } from "../../config/Places.ts"
import { json as jsonOf } from "../render/TerminalDoor.ts"

/** How the bin was started, and what it can start; the bin provides it. */
export class Entry extends Context.Service<
  Entry,
  {
    /** Node and the script, absolute: the beginning of the daemon's command line. */
    readonly command: ReadonlyArray<string>
    readonly env: { readonly [name: string]: string }
    /** The daemon in this process, until it ends. Loaded on demand. */
    readonly daemon: (options: DaemonOptions) => Effect.Effect<void, DaemonFailure>
    /** A program in this terminal; whatever the verb comes to, this process ends with the program's status. */
    readonly foreground: (options: ProgramOptions) => Effect.Effect<Program, NotStarted>
  }
>()("agentd/cli/Entry") {}

export interface DaemonOptions {
  readonly state: string
  readonly socket: string
  /** The project to register at once. */
  readonly config?: string
  /** Whether a person agrees to a change of its file, which they are shown; not there: nobody is there to be asked. */
  readonly agrees?: (change: ConfigChangeInfo) => Effect.Effect<boolean>
  /** The user's own config file, which need not be there. */
  readonly userConfig: string
  /** The daemon's own environment: agents inherit it. */
  readonly environment: { readonly [name: string]: string }
}

export interface ProgramOptions {
  readonly command: ReadonlyArray<string>
  readonly env: { readonly [name: string]: string }
}

export interface Program {
  readonly pid: number
  /** The program's exit status, as a shell tells it. */
  readonly ended: Effect.Effect<number>
}

/** The program is not there, or cannot be run. */
export class NotStarted extends Schema.TaggedError<NotStarted>()("NotStarted", {
  message: Schema.String,
  remedy: Schema.String,
  exitCode: Schema.Int
}) {}

/** Why a daemon could not start or go on. */
export interface DaemonFailure {
  readonly _tag: string
  readonly message: string
  readonly remedy: string
  readonly exitCode: number
}

export class Invocation extends Context.Service<
  Invocation,
  {
    readonly paths: Paths.Paths
    readonly json: boolean
    readonly colour: boolean
    /** Somebody is there to answer a question. */
    readonly interactive: boolean
    /** Columns of the terminal; null when the output goes elsewhere. */
    readonly columns: number | null
    readonly caller: Caller
  }
>()("agentd/cli/Invocation") {}

export const make = Effect.fnUntraced(function* (flags: {
  readonly state: Option.Option<string>
  readonly json: boolean
}) {
  const capabilities = yield* TerminalCapabilities.TerminalCapabilities
  const stdio = yield* Stdio.Stdio
  const onTerminal = yield* stdio.stdoutIsTerminal
  const terminal = yield* Terminal.Terminal
  return Invocation.of({
    paths: yield* Paths.resolve(flags.state),
    json: flags.json,
    colour: capabilities.canColor && !flags.json,
    interactive: capabilities.canPrompt,
    columns: onTerminal && !flags.json ? yield* terminal.columns : null,
    caller: { by: yield* Effect.sync(() => userInfo().username), config: yield* Paths.findProject }
  })
})

/** The next step, as it must be typed in this world. */
export const hint = (text: string) => Effect.map(Invocation, ({ paths }) => Hint.inWorld(text, worldOf(paths)))

export const printLines = (lines: ReadonlyArray<string>) =>
  Effect.forEach(lines, (line) => Console.log(line), { discard: true })

/** Prints a JSON value where --json was given, else the lines, whose hints name this world. */
export const print = (value: unknown, lines: () => ReadonlyArray<string>) =>
  Effect.flatMap(Invocation, ({ json, paths }) =>
    printLines(json ? [jsonOf(value)] : lines().map((line) => Hint.inWorld(line, worldOf(paths))))
  )
