/**
 * Invocation: data about this call of the program that every verb needs: paths, the caller and its project, how to
 * print, and how the program was started.
 */
import { Console, Context, Effect, Option, Schema, Stdio, Terminal } from "effect"
import { TerminalCapabilities } from "effect/cli"
import * as Account from "../../config/Account.ts"
import type { Caller, ConfigChangeInfo } from "../../domain/Messages.ts"
import * as HintCommand from "./HintCommand.ts"
import * as Paths from "./Paths.ts"
import { worldOf } from "../../config/Places.ts"
import { json as jsonOf } from "../render/TerminalDoor.ts"

/** How this program was started, and which other programs it can start. The entry point provides this service. */
export class Entry extends Context.Service<
  Entry,
  {
    /** Absolute paths of Node and of the script, with which the daemon's command line starts. */
    readonly command: ReadonlyArray<string>
    readonly env: { readonly [name: string]: string }
    /** Runs the daemon in this process until the daemon ends. The daemon's code is loaded on demand. */
    readonly daemon: (options: DaemonOptions) => Effect.Effect<void, DaemonFailure>
    /** Runs another program in this terminal. When it ends, this process always exits with the same status. */
    readonly foreground: (options: ProgramOptions) => Effect.Effect<Program, NotStarted>
  }
>()("agentd/cli/Entry") {}

export interface DaemonOptions {
  readonly state: string
  readonly socket: string
  /** Config file of the project to register when the daemon starts. */
  readonly config?: string
  /** Shows a config change to the user, and returns true if the user agrees. If omitted, the daemon cannot ask. */
  readonly agrees?: (change: ConfigChangeInfo) => Effect.Effect<boolean>
  /** Path of the user's own config file, which need not exist. */
  readonly userConfig: string
  /** Environment of the daemon, which its agents inherit. */
  readonly environment: { readonly [name: string]: string }
}

export interface ProgramOptions {
  readonly command: ReadonlyArray<string>
  readonly env: { readonly [name: string]: string }
}

export interface Program {
  readonly pid: number
  /** Exit status of the program, in the form that shells use. */
  readonly ended: Effect.Effect<number>
}

/** Error: the program does not exist or cannot be executed. */
export class NotStarted extends Schema.TaggedError<NotStarted>()("NotStarted", {
  message: Schema.String,
  remedy: Schema.String,
  exitCode: Schema.Int
}) {}

/** The reason why a daemon could not start or continue. */
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
    /** True if the program has a terminal on which it can ask the user. */
    readonly interactive: boolean
    /** Width of the terminal in columns; null if the output is not a terminal, or if it is JSON. */
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
  const paths = yield* Paths.resolve(flags.state)
  return Invocation.of({
    paths,
    json: flags.json,
    colour: capabilities.canColor && !flags.json,
    interactive: capabilities.canPrompt,
    columns: onTerminal && !flags.json ? yield* terminal.columns : null,
    caller: {
      by: yield* Effect.sync(() => Account.userName()),
      config: paths.host === undefined ? yield* Paths.findProject : null
    }
  })
})

/** Adds `--state` or `--host` to the commands in a hint if the daemon is not the default one. */
export const hint = (text: string) => Effect.map(Invocation, ({ paths }) => HintCommand.inWorld(text, worldOf(paths)))

export const printLines = (lines: ReadonlyArray<string>) =>
  Effect.forEach(lines, (line) => Console.log(line), { discard: true })

/** With --json, prints `value` as JSON. Otherwise prints the lines; `--state` is added to their commands if needed. */
export const print = (value: unknown, lines: () => ReadonlyArray<string>) =>
  Effect.flatMap(Invocation, ({ json, paths }) =>
    printLines(json ? [jsonOf(value)] : lines().map((line) => HintCommand.inWorld(line, worldOf(paths))))
  )
