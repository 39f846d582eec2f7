/**
 * AcpTerminals: the commands that agentd runs for an agent.
 *
 * Guarantees: each command is a call of the agent that was emitted and allowed (AcpClientMethods). It runs in the
 * sandbox, if the machine has one, and gets no environment variables that look like secrets. Variables that the agent
 * sets are passed only to the command. The command is a process of the run, with the run's mark, and ends with the run.
 * It starts in the workspace. At most `MAX_TERMINALS` are open. The newest output is stored, up to the size that the
 * agent requests and at most `MAX_BYTES`. `kill` and `release` end everything that a command has started. If a run
 * survives the daemon, so do its commands: the next daemon resumes each command once, with all its output.
 */
import type { TerminalExitStatus, TerminalOutputResponse } from "@agentclientprotocol/sdk"
import { type Duration, Effect, Exit, Fiber, Latch, Scope } from "effect"
import type { AcpClientMethods } from "./AcpClientMethods.ts"
import type { Left } from "./AcpAdoption.ts"
import type { BackendError } from "../Backend.ts"
import * as Messages from "./AcpMessages.ts"
import { INTERNAL_ERROR, INVALID_PARAMS, type Refusal, type Wire } from "./AcpWire.ts"
import { NOT_FOUND } from "./AcpFault.ts"
import * as KeptProcess from "../process/KeptProcess.ts"
import type { ProcessTree, Mark } from "../process/ProcessTree.ts"
import type { Reaper } from "../process/Reaper.ts"
import type { MountRefused } from "../sandbox/Confinement.ts"
import type { Environment } from "../process/ChildProcess.ts"
import * as RunProcess from "../process/RunProcess.ts"
import type { Argv } from "../Host.ts"
import type { Workspace } from "../sandbox/Workspace.ts"
import { services } from "../CapturedServices.ts"

export interface Options extends Mark {
  readonly cwd: string
  readonly env: Environment
  readonly grace: Duration.Duration
  readonly limits: RunProcess.RunProcessSpec["limits"]
  readonly workspace: Workspace | undefined
  /** Confines a command that starts in this folder to the sandbox, if there is one. */
  readonly confine: (
    cwd: string,
    argv: Argv
  ) => Effect.Effect<Pick<RunProcess.RunProcessSpec, "argv" | "handed">, MountRefused | BackendError>
  readonly deeds: AcpClientMethods
  /** Number of commands that earlier daemons started; all of them have ended. */
  readonly begun: number
  readonly opened: (callId: string, terminalId: string) => void
  readonly notice: (text: string) => Effect.Effect<void>
  readonly written: (terminalId: string, stream: "stdout" | "stderr", chunk: string) => Effect.Effect<void>
  /** False while the output of an earlier daemon's run is read again, until `goOn` is called. */
  readonly isNew: boolean
  readonly reply: Wire["reply"]
  /** Stores a note that a request was rejected before it became a call. */
  readonly untold: (id: unknown) => Effect.Effect<void>
}

interface Running {
  readonly program: RunProcess.RunProcess
  readonly scope: Scope.Closeable
  readonly output: () => { readonly output: string; readonly truncated: boolean }
  /** Waits until all output from before the process was resumed has been read. */
  readonly read: Effect.Effect<void>
  /** Waits until all output has been read. */
  readonly drained: Effect.Effect<void>
}

interface Terminal extends Running {
  readonly number: number
  readonly callId: string
  exit: TerminalExitStatus | undefined
}

const nameOf = (number: number): string => `terminal-${number}`
/** Number of the command's process in the run. The agent itself has number 1. */
const countOf = (number: number): number => number + 1

const MAX_TERMINALS = 32
const MAX_BYTES = 1024 * 1024

const refuse = (code: number, message: string) => Effect.fail<Refusal>({ code, message })

/** Keeps the newest bytes, without a partial character at the beginning. */
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
      // leave out a character that would otherwise be cut
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
            ? options.notice(`the agent was not allowed to run a command: ${error.message}`)
            : Effect.void,
          refuse(INVALID_PARAMS, `${error.message}; ${error.remedy}`)
        )
      )
    )
}

/** A command as the agent requested it, validated. */
interface Asked {
  readonly argv: Argv
  readonly cwd: string
  readonly env: ReadonlyArray<readonly [name: string, value: string]>
  readonly outputByteLimit: number | null | undefined
}

const VARIABLE = /^[A-Za-z_]\w*$/
/** Environment variables by which agentd recognizes its own processes. */
const RESERVED = /^AGENTD_/
const MAX_VARIABLES = 100

const checked = Effect.fnUntraced(function* (options: Options, request: typeof Messages.CreateTerminal.Type) {
  const { args, command, cwd, outputByteLimit } = request
  const env = (request.env ?? []).map(({ name, value }) => [name, value] as const)
  const wrong = env.find(([name, value]) => !VARIABLE.test(name) || RESERVED.test(name) || value.includes("\0"))
  if (wrong !== undefined || env.length > MAX_VARIABLES)
    return yield* refuse(INVALID_PARAMS, "terminal/create: env has a name that cannot be set, or too many")
  const asked: Asked = {
    // many agents send a whole shell line as the command if there are no arguments
    argv: args === null || args === undefined || args.length === 0 ? ["/bin/sh", "-c", command] : [command, ...args],
    cwd: yield* folderOf(options, cwd),
    env,
    outputByteLimit
  }
  return asked
})

interface Program extends Pick<RunProcess.RunProcessSpec, "argv" | "handed" | "takesUp"> {
  readonly cwd: string
  readonly number: number
  readonly outputByteLimit: number | null | undefined
}

/** Runs the command in a scope of its own within the run's scope. */
const run = Effect.fnUntraced(function* (
  options: Options,
  outer: Scope.Scope,
  { number, outputByteLimit, ...started }: Program
) {
  const kept = tail(Math.max(0, Math.min(outputByteLimit ?? MAX_BYTES, MAX_BYTES)))
  const scope = yield* Scope.fork(outer)
  const program = yield* RunProcess.make({
    store: options.store,
    runId: options.runId,
    part: true,
    keeps: true,
    count: countOf(number),
    ...started,
    env: options.env,
    limits: options.limits,
    grace: options.grace
  }).pipe(
    Scope.provide(scope),
    Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
  )
  const { before } = program
  const left = { stdout: before?.out ?? 0, stderr: before?.err ?? 0 }
  const read = Latch.makeUnsafe(left.stdout + left.stderr === 0)
  const pumps = yield* Effect.forEach(["stdout", "stderr"] as const, (name) => {
    const decoder = new TextDecoder()
    return RunProcess.drain(program[name], program.ended, (chunk) => {
      kept.push(chunk)
      left[name] -= chunk.length
      if (left.stdout <= 0 && left.stderr <= 0) read.openUnsafe()
      return options.written(nameOf(number), name, decoder.decode(chunk, { stream: true }))
    }).pipe(Effect.forkIn(scope))
  })
  const drained = Effect.asVoid(Fiber.awaitAll(pumps))
  const running: Running = {
    program,
    scope,
    output: kept.read,
    read: Effect.raceFirst(read.await, drained),
    drained
  }
  return running
})

const spawn = Effect.fnUntraced(function* (
  options: Options,
  outer: Scope.Scope,
  { argv, cwd, env, outputByteLimit }: Asked,
  number: number
) {
  // set the agent's variables inside the sandbox: with LD_PRELOAD, the program that starts the sandbox would load the
  // agent's library
  const within: Argv =
    env.length === 0 ? argv : ["/usr/bin/env", ...env.map(([name, value]) => `${name}=${value}`), ...argv]
  const started = yield* Effect.mapError(options.confine(cwd, within), ({ message, remedy }): Refusal => ({
    code: INTERNAL_ERROR,
    message: `${message}; ${remedy}`
  }))
  return yield* Effect.catchTag(
    run(options, outer, { ...started, cwd, number, outputByteLimit }),
    "BackendError",
    ({ message }) => refuse(INTERNAL_ERROR, message)
  )
})

/** Emits the call's result: how the command ended, with its newest output. */
const told = ({ deeds }: Options, { callId, exit, number, output }: Terminal): Effect.Effect<void> => {
  const { exitCode: code = null, signal = null } = exit ?? {}
  const how = signal !== null ? `killed by ${signal}` : code === null ? "ended" : `exit code ${code}`
  const note = { say: "exited", number, code, signal } as const
  return deeds.settle(callId, code === 0 ? "success" : "error", `${output().output}\n[${how}]`, note)
}

const watch = (options: Options, terminal: Terminal): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { code, signal } = yield* terminal.program.exited
    terminal.exit = { exitCode: code, signal }
    yield* terminal.drained
    yield* told(options, terminal)
  })

/** Implements a method of the protocol. */
type Does = (params: unknown) => Effect.Effect<unknown, Refusal>

// One function, because its parts share the terminals.
// oxlint-disable-next-line max-lines-per-function
export const make = Effect.fnUntraced(function* (options: Options) {
  const outer = yield* Effect.scope
  const context = yield* services<ProcessTree | Reaper>()
  const terminals = new Map<string, Terminal>()
  let [count, opening] = [options.begun, 0]
  const caught = Latch.makeUnsafe(options.isNew)
  /** Commands that an earlier daemon started before it could report their start to the agent. */
  const unanswered: Array<Left> = []

  const add = (running: Running, number: number, callId: string): Terminal => {
    const terminal: Terminal = { ...running, number, callId, exit: undefined }
    terminals.set(nameOf(number), terminal)
    return terminal
  }

  const watched = (terminal: Terminal) => Effect.forkIn(watch(options, terminal), terminal.scope)

  /** Validates a request; rejects it if it cannot become a call. */
  const wanted = Effect.fnUntraced(function* (params: unknown) {
    const request = Messages.read(Messages.CreateTerminal, params)
    if (request === undefined) return yield* refuse(INVALID_PARAMS, "terminal/create: command is missing")
    if (terminals.size + opening >= MAX_TERMINALS)
      return yield* refuse(INTERNAL_ERROR, `${MAX_TERMINALS} terminals are open already: release one`)
    opening++
    const asked = yield* Effect.onError(checked(options, request), () => Effect.sync(() => opening--))
    return { asked, request }
  })

  const create = Effect.fnUntraced(function* (params: unknown, id: unknown) {
    const { asked, request } = yield* Effect.tapError(wanted(params), () => options.untold(id))
    const number = ++count
    const terminalId = nameOf(number)
    const deed = { tool: "terminal/create", arguments: Messages.given(request), readOnly: false, request: id }
    const begun = options.deeds.begin(
      deed,
      (callId) => {
        options.opened(callId, terminalId)
        return spawn(options, outer, asked, number).pipe(
          Effect.provideContext(context),
          Effect.map((running) => add(running, number, callId)),
          Effect.tap(watched)
        )
      },
      { say: "terminal", id, number }
    )
    yield* Effect.ensuring(
      begun,
      Effect.sync(() => opening--)
    )
    return { terminalId }
  })

  /** Resumes the command if the keeper still holds it. The command may have ended, or may never have started. */
  const takeUp = Effect.fnUntraced(function* (left: Left) {
    const { callId, isTold, number, request } = left
    if (!isTold) unanswered.push(left)
    count = Math.max(count, number)
    options.opened(callId, nameOf(number))
    if (!(yield* KeptProcess.isLeft(options.runId, countOf(number)))) return
    const program = { argv: [request.command], cwd: options.cwd, number, takesUp: true } as const
    const running = run(options, outer, { ...program, outputByteLimit: request.outputByteLimit })
    yield* Effect.ignore(Effect.map(Effect.provideContext(running, context), (one) => add(one, number, callId)))
  })

  /**
   * Tells the agent that its command has begun. If the keeper does not know the command, it had not been started, and
   * is started now.
   */
  const answer = ({ callId, id, number, request }: Left): Effect.Effect<void> => {
    const terminalId = nameOf(number)
    const begins = Effect.flatMap(checked(options, request), (asked) =>
      Effect.provideContext(spawn(options, outer, asked, number), context)
    )
    const begun = terminals.has(terminalId)
      ? Effect.void
      : Effect.asVoid(Effect.map(begins, (running) => add(running, number, callId)))
    return Effect.matchEffect(begun, {
      onSuccess: () => options.reply(id, { _tag: "Result", result: { terminalId } }),
      onFailure: (refusal) => {
        const note = { say: "exited", number, code: null, signal: null } as const
        const settled = options.deeds.settle(callId, "error", refusal.message, note)
        return Effect.andThen(settled, options.reply(id, { _tag: "Refused", refusal }))
      }
    })
  }

  const named = (params: unknown) => {
    const terminalId = Messages.read(Messages.NamedTerminal, params)?.terminalId
    const terminal = terminalId === undefined ? undefined : terminals.get(terminalId)
    return terminal === undefined
      ? refuse(NOT_FOUND, `there is no terminal ${terminalId ?? ""}`)
      : Effect.succeed({ terminal, terminalId: terminalId! })
  }

  const output = Effect.fnUntraced(function* (params: unknown) {
    const { terminal } = yield* named(params)
    yield* terminal.read
    const answer: TerminalOutputResponse = { ...terminal.output(), exitStatus: terminal.exit ?? null }
    return answer
  })

  const waitForExit = Effect.fnUntraced(function* (params: unknown) {
    const { terminal } = yield* named(params)
    const { code, signal } = yield* terminal.program.exited
    yield* terminal.drained
    const status: TerminalExitStatus = { exitCode: code, signal }
    return status
  })

  const release = Effect.fnUntraced(function* (params: unknown) {
    const { terminal, terminalId } = yield* named(params)
    terminals.delete(terminalId)
    yield* Scope.close(terminal.scope, Exit.void)
    // if the command had not ended before, this release ended it
    const { code, signal } = yield* terminal.program.exited
    terminal.exit ??= { exitCode: code, signal }
    yield* told(options, terminal)
    yield* KeptProcess.forgetOne(options.runId, countOf(terminal.number))
    return {}
  })

  /** Waits until the replay is over: from then on, the terminals of an earlier daemon exist here. */
  const later =
    (does: Does): Does =>
    (params) =>
      Effect.andThen(caught.await, does(params))

  return {
    create,
    takeUp,
    known: () => ({ isAny: terminals.size + opening > 0, begun: count }),
    /** Called when the replay is over and the state of all terminals of the earlier daemon is known. */
    goOn: Effect.suspend(() => {
      caught.openUnsafe()
      return Effect.andThen(
        Effect.forEach(unanswered.splice(0), answer, { discard: true }),
        Effect.forEach(terminals.values(), watched, { discard: true })
      )
    }),
    /** Handles the release of a terminal by an earlier daemon. If the terminal still exists, releases it now. */
    released: (params: unknown) =>
      Effect.asVoid(Effect.forkIn(Effect.ignore(Effect.andThen(caught.await, release(params))), outer)),
    does: {
      "terminal/output": later(output),
      "terminal/wait_for_exit": later(waitForExit),
      "terminal/kill": later((params) =>
        Effect.flatMap(named(params), ({ terminal }) => Effect.as(terminal.program.interrupt, {}))
      ),
      "terminal/release": later(release)
    } as { readonly [method: string]: Does },
    cancel: (callId: string) =>
      Effect.suspend(
        () => [...terminals.values()].find((terminal) => terminal.callId === callId)?.program.interrupt ?? Effect.void
      )
  }
})
export type AcpTerminals = Effect.Success<ReturnType<typeof make>>
