/**
 * AcpTerminals: the commands that an agent has agentd run for it.
 *
 * Guarantees: each is a call of the agent's that was told and allowed (AcpDeeds); it runs in the
 * sandbox, where the machine has one, with no variable that speaks of a secret, and what the
 * agent sets in its environment reaches the command alone; it is a process of the run, with its
 * mark, and ends with it; they begin in the workspace; so many at most; of what they write the newest is kept, as much as the agent
 * asks for and no more than the limit; `kill` and `release` end all that a command has started.
 */
import type { TerminalExitStatus, TerminalOutputResponse } from "@agentclientprotocol/sdk"
import { type Duration, Effect, Exit, Fiber, Scope } from "effect"
import type { AcpDeeds } from "./AcpDeeds.ts"
import type { BackendError } from "../Backend.ts"
import * as Messages from "./AcpMessages.ts"
import { INTERNAL_ERROR, INVALID_PARAMS, type Refusal } from "./AcpWire.ts"
import { NOT_FOUND } from "./AcpFault.ts"
import type { ProcessTree, Mark } from "../process/ProcessTree.ts"
import type { Reaper } from "../process/Reaper.ts"
import type { MountRefused } from "../sandbox/Confinement.ts"
import type { Environment } from "../process/ChildProcess.ts"
import * as RunProcess from "../process/RunProcess.ts"
import type { Argv } from "../Host.ts"
import type { Workspace } from "../model/Workspace.ts"
import { services } from "../Services.ts"

export interface Options extends Mark {
  readonly cwd: string
  /** Of the run. */
  readonly env: Environment
  readonly grace: Duration.Duration
  readonly workspace: Workspace | undefined
  /** Puts a command that begins in this folder into the sandbox, where there is one. */
  readonly confine: (
    cwd: string,
    argv: Argv
  ) => Effect.Effect<Pick<RunProcess.RunProcessSpec, "argv" | "handed">, MountRefused | BackendError>
  readonly deeds: AcpDeeds
  /** The call is this terminal's. */
  readonly opened: (callId: string, terminalId: string) => void
  readonly notice: (text: string) => Effect.Effect<void>
  /** Takes a command's output, as it comes. */
  readonly written: (terminalId: string, chunk: string) => Effect.Effect<void>
}

interface Terminal {
  readonly callId: string
  readonly program: RunProcess.RunProcess
  readonly scope: Scope.Closeable
  readonly output: () => { readonly output: string; readonly truncated: boolean }
  /** All that it wrote has been read. */
  readonly drained: Effect.Effect<void>
  exit: TerminalExitStatus | undefined
}

const MAX_TERMINALS = 32
const MAX_BYTES = 1024 * 1024

const refuse = (code: number, message: string) => Effect.fail<Refusal>({ code, message })

/** The newest bytes; whole characters. */
const tail = (limit: number) => {
  const kept: Array<Uint8Array> = []
  let [size, truncated] = [0, false]
  return {
    push: (chunk: Uint8Array) => {
      kept.push(chunk)
      size += chunk.length
      while (kept[0] !== undefined && size - kept[0].length >= limit) {
        size -= kept.shift()!.length
        truncated = true
      }
    },
    read: () => {
      const all = Buffer.concat(kept)
      let from = Math.max(0, all.length - limit)
      // a character that would be cut is left out
      if (from > 0 || truncated) while (from < all.length && (all[from]! & 0xc0) === 0x80) from++
      return { output: all.subarray(from).toString("utf8"), truncated: truncated || from > 0 }
    }
  }
}

const folderOf = (options: Options, cwd: string | null | undefined): Effect.Effect<string, Refusal> => {
  if (cwd === null || cwd === undefined || options.workspace === undefined) return Effect.succeed(options.cwd)
  return options.workspace
    .folder(cwd)
    .pipe(
      Effect.catch((error) =>
        Effect.andThen(
          error._tag === "WorkspaceViolation"
            ? options.notice(`the agent was not let run a command: ${error.message}`)
            : Effect.void,
          refuse(INVALID_PARAMS, `${error.message}; ${error.remedy}`)
        )
      )
    )
}

/** A command as the agent asked for it, checked. */
interface Asked {
  readonly argv: Argv
  readonly cwd: string
  readonly env: ReadonlyArray<readonly [name: string, value: string]>
  readonly outputByteLimit: number | null | undefined
}

const VARIABLE = /^[A-Za-z_]\w*$/
/** Variables by which agentd knows its own. */
const RESERVED = /^AGENTD_/
const MAX_VARIABLES = 100

const checked = Effect.fnUntraced(function* (options: Options, request: typeof Messages.CreateTerminal.Type) {
  const { args, command, cwd, outputByteLimit } = request
  const env = (request.env ?? []).map(({ name, value }) => [name, value] as const)
  const wrong = env.find(([name, value]) => !VARIABLE.test(name) || RESERVED.test(name) || value.includes("\0"))
  if (wrong !== undefined || env.length > MAX_VARIABLES)
    return yield* refuse(INVALID_PARAMS, "terminal/create: env has a name that cannot be set, or too many")
  const asked: Asked = {
    // without arguments many send a whole line
    argv: args === null || args === undefined || args.length === 0 ? ["/bin/sh", "-c", command] : [command, ...args],
    cwd: yield* folderOf(options, cwd),
    env,
    outputByteLimit
  }
  return asked
})

/** In a scope of its own within the outer one. */
const spawn = Effect.fnUntraced(function* (
  options: Options,
  outer: Scope.Scope,
  { argv, cwd, env, outputByteLimit }: Asked,
  terminalId: string,
  callId: string
) {
  // a variable of the agent's is set within the sandbox: what starts the sandbox would load what LD_PRELOAD names
  const within: Argv =
    env.length === 0 ? argv : ["/usr/bin/env", ...env.map(([name, value]) => `${name}=${value}`), ...argv]
  const started = yield* Effect.mapError(options.confine(cwd, within), ({ message, remedy }): Refusal => ({
    code: INTERNAL_ERROR,
    message: `${message}; ${remedy}`
  }))
  const kept = tail(Math.max(0, Math.min(outputByteLimit ?? MAX_BYTES, MAX_BYTES)))
  const scope = yield* Scope.fork(outer)
  const program = yield* RunProcess.make({
    store: options.store,
    runId: options.runId,
    part: true,
    ...started,
    cwd,
    env: options.env,
    grace: options.grace
  }).pipe(
    Effect.catchTag("BackendError", ({ message }) => refuse(INTERNAL_ERROR, message)),
    Scope.provide(scope),
    Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
  )
  const pumps = yield* Effect.forEach(["stdout", "stderr"] as const, (name) => {
    const decoder = new TextDecoder()
    return RunProcess.drain(program[name], program.ended, (chunk) => {
      kept.push(chunk)
      return options.written(terminalId, decoder.decode(chunk, { stream: true }))
    }).pipe(Effect.forkIn(scope))
  })
  const terminal: Terminal = {
    callId,
    program,
    scope,
    output: kept.read,
    drained: Effect.asVoid(Fiber.awaitAll(pumps)),
    exit: undefined
  }
  const watch = Effect.gen(function* () {
    const { code, signal } = yield* program.exited
    terminal.exit = { exitCode: code, signal }
    yield* terminal.drained
    yield* told(options, terminal)
  })
  yield* Effect.forkIn(watch, scope)
  return terminal
})

/** The call's result: how the command ended, and the newest that it wrote. */
const told = ({ deeds }: Options, { callId, exit, output }: Terminal): Effect.Effect<void> => {
  const how =
    exit === undefined ? "ended" : exit.signal == null ? `exit code ${exit.exitCode}` : `killed by ${exit.signal}`
  return deeds.settle(callId, exit?.exitCode === 0 ? "success" : "error", `${output().output}\n[${how}]`)
}

export const make = Effect.fnUntraced(function* (options: Options) {
  const outer = yield* Effect.scope
  const context = yield* services<ProcessTree | Reaper>()
  const terminals = new Map<string, Terminal>()
  let [count, opening] = [0, 0]

  const create = Effect.fnUntraced(function* (params: unknown) {
    const request = Messages.read(Messages.CreateTerminal, params)
    if (request === undefined) return yield* refuse(INVALID_PARAMS, "terminal/create: command is missing")
    if (terminals.size + opening >= MAX_TERMINALS)
      return yield* refuse(INTERNAL_ERROR, `${MAX_TERMINALS} terminals are open already: release one`)
    const terminalId = `terminal-${++count}`
    opening++
    const { args, command, cwd, env } = request
    const given = Object.entries({ command, args, cwd, env }).filter(([, value]) => value != null)
    const opened = Effect.gen(function* () {
      const asked = yield* checked(options, request)
      return yield* options.deeds.begin(
        { tool: "terminal/create", arguments: Object.fromEntries(given), readOnly: false },
        (callId) => {
          options.opened(callId, terminalId)
          return Effect.provideContext(spawn(options, outer, asked, terminalId, callId), context)
        }
      )
    })
    const terminal = yield* Effect.ensuring(
      opened,
      Effect.sync(() => opening--)
    )
    terminals.set(terminalId, terminal)
    return { terminalId }
  })

  const named = (params: unknown) => {
    const terminalId = Messages.read(Messages.NamedTerminal, params)?.terminalId
    const terminal = terminalId === undefined ? undefined : terminals.get(terminalId)
    return terminal === undefined
      ? refuse(NOT_FOUND, `there is no terminal ${terminalId ?? ""}`)
      : Effect.succeed({ terminal, terminalId: terminalId! })
  }

  return {
    create,
    output: (params: unknown) =>
      Effect.map(named(params), ({ terminal }): TerminalOutputResponse => ({
        ...terminal.output(),
        exitStatus: terminal.exit ?? null
      })),
    waitForExit: Effect.fnUntraced(function* (params: unknown) {
      const { terminal } = yield* named(params)
      const { code, signal } = yield* terminal.program.exited
      yield* terminal.drained
      const status: TerminalExitStatus = { exitCode: code, signal }
      return status
    }),
    kill: (params: unknown) =>
      Effect.flatMap(named(params), ({ terminal }) => Effect.as(terminal.program.interrupt, {})),
    release: Effect.fnUntraced(function* (params: unknown) {
      const { terminal, terminalId } = yield* named(params)
      terminals.delete(terminalId)
      yield* Scope.close(terminal.scope, Exit.void)
      // what ended it was the release, where it had not ended before
      const { code, signal } = yield* terminal.program.exited
      terminal.exit ??= { exitCode: code, signal }
      yield* told(options, terminal)
      return {}
    }),
    /** Ends the command of this call. */
    cancel: (callId: string) =>
      Effect.suspend(
        () => [...terminals.values()].find((terminal) => terminal.callId === callId)?.program.interrupt ?? Effect.void
      )
  }
})
export type AcpTerminals = Effect.Success<ReturnType<typeof make>>
