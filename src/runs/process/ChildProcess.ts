/**
 * ChildProcess: starts a program as the leader of its own session and process group. `Spawn` is a `Context.Reference`,
 * so a simulation can use its own programs.
 *
 * Guarantees: The start time of the process is read before its pid can be used again. Nothing is read ahead, so a slow
 * reader slows the writer down. Output that was written before the exit can still be read afterwards. Input is written
 * in the order of the calls.
 *
 * Uses `node:child_process` directly. `effect/process` does not distinguish a signal from an error, waits forever for a
 * pipe that a grandchild holds open, and ends only process groups, not process trees.
 */
import { Context, Deferred, Effect } from "effect"
import * as Process from "node:child_process"
import * as fs from "node:fs"
import type { Readable, Writable } from "node:stream"
import { attempt } from "../../config/Attempt.ts"
import type { LimitsConfig } from "../../config/LimitsConfig.ts"
import { BackendError } from "../Backend.ts"
import { identify, type ProcessId } from "./ProcessTable.ts"

export type Environment = { readonly [name: string]: string | undefined }

export interface Program {
  readonly argv: readonly [string, ...ReadonlyArray<string>]
  readonly cwd: string
  /** All environment variables of the process. */
  readonly env: Environment
  /** Name of the config field that names the program, for error messages; by default argv. */
  readonly setting?: string | undefined
  /** Text for standard input, which is closed afterwards. If omitted, standard input is empty. */
  readonly input?: string | undefined
  /** If true, standard input stays open for `write` until `closeInput` is called. */
  readonly keepInput?: boolean | undefined
  /**
   * Contents of the file descriptors 3, 4 and so on. For data that must not be in a file, an argument or a variable.
   */
  readonly handed?: ReadonlyArray<Uint8Array> | undefined
  /** Limits that the kernel enforces, if the keeper has a cgroup that it can divide. */
  readonly limits?: LimitsConfig | undefined
}

export interface ExitStatus {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export interface Pipe {
  /** The next chunk of output; undefined at the end of the output. */
  readonly read: Effect.Effect<Uint8Array | undefined>
  /** Offset of the first byte that is read; by default 0. */
  readonly from?: number
}

export interface ChildProcess {
  readonly id: ProcessId
  readonly stdout: Pipe
  readonly stderr: Pipe
  /** The exit status of the process. Processes that it has started may still be running then. */
  readonly exited: Effect.Effect<ExitStatus>
  /**
   * Writes text to standard input. Returns when the system has accepted the text. If the process has ended or has
   * closed its input, the text is discarded without an error, because `exited` reports the end.
   */
  readonly write: (text: string, note?: string) => Effect.Effect<void>
  readonly closeInput: Effect.Effect<void>
  /** Discards all further output, so that the process does not block when its output is no longer read. */
  readonly discard: Effect.Effect<void>
  /** Closes the pipes to the process. */
  readonly close: Effect.Effect<void>
}

export type Spawn = (program: Program) => Effect.Effect<ChildProcess, BackendError>

const refusal = (message: string, remedy: string, fatal: boolean) => new BackendError({ message, remedy, fatal })

const isFolder = (path: string) => attempt(() => fs.statSync(path).isDirectory()) ?? false

/**
 * Builds the error for a program that cannot be started. The error is not fatal if a retry can help: too many processes
 * or open files, too little memory.
 */
export const spawnError = ({ argv, cwd, setting = "argv" }: Program, cause: unknown): BackendError => {
  const code = cause instanceof Error ? (cause as NodeJS.ErrnoException).code : undefined
  const program = argv[0]
  switch (code) {
    case "ENOENT":
      return isFolder(cwd)
        ? refusal(
            `there is no program "${program}"`,
            `install it, or correct ${setting} in agentd.jsonc or the daemon's PATH`,
            true
          )
        : refusal(`the folder ${cwd} does not exist`, "create it, or correct cwd in agentd.jsonc", true)
    case "ENOTDIR":
      return refusal(
        `${cwd} is not a folder, or the path of "${program}" leads through a file`,
        `correct cwd or ${setting} in agentd.jsonc`,
        true
      )
    case "EACCES":
      return refusal(
        `"${program}" cannot be executed, or ${cwd} cannot be entered`,
        `make it executable (chmod +x) and the folder accessible to this user`,
        true
      )
    case "ENOEXEC":
      return refusal(`"${program}" is not a program`, "give a script its #! line, or run it by its interpreter", true)
    case "E2BIG":
      return refusal(
        "the arguments or environment are too long for the system",
        'set promptBy to "stdin" or "file"',
        true
      )
    case "EINVAL":
    case "ERR_INVALID_ARG_VALUE":
      return refusal(
        "an argument or variable contains a NUL byte",
        "remove it from the prompt or the configuration",
        true
      )
    default:
      return refusal(
        `"${program}" could not be started: ${cause instanceof Error ? cause.message : String(cause)}`,
        "check whether the system is short of processes, open files or memory; agentd tries again",
        false
      )
  }
}

const exitOf = (child: Process.ChildProcess): Effect.Effect<ExitStatus> => {
  const exited = Deferred.makeUnsafe<ExitStatus>()
  const tell = (code: number | null, signal: NodeJS.Signals | null) =>
    Deferred.doneUnsafe(exited, Effect.succeed({ code, signal }))
  child.once("exit", tell)
  if (child.exitCode !== null || child.signalCode !== null) tell(child.exitCode, child.signalCode)
  return Deferred.await(exited)
}

const read = (pipe: Readable): Effect.Effect<Uint8Array | undefined> =>
  Effect.callback((resume) => {
    const events = ["readable", "end", "close"] as const
    const stop = () => events.forEach((event) => pipe.off(event, look))
    const look = () => {
      const chunk: Uint8Array | null = pipe.read()
      if (chunk === null && !pipe.readableEnded && !pipe.destroyed) return
      stop()
      resume(Effect.succeed(chunk ?? undefined))
    }
    events.forEach((event) => pipe.on(event, look))
    look()
    return Effect.sync(stop)
  })

/**
 * Writes to the pipe. The callback is called even if there is an error, so that a broken pipe neither throws nor
 * blocks.
 */
const write = (pipe: Writable | null, text: string): Effect.Effect<void> =>
  Effect.callback((resume) => {
    if (pipe === null || !pipe.writable) return resume(Effect.void)
    pipe.write(text, () => resume(Effect.void))
  })

/** Writes `bytes` to a file descriptor of the child. If the child does not read them, only this pipe breaks. */
export const hand = (pipe: Readable | Writable | null | undefined, bytes: Uint8Array): void => {
  pipe?.on("error", () => {})
  if (pipe !== null && pipe !== undefined && "end" in pipe) pipe.end(bytes)
}

const childOf = (child: Process.ChildProcess, id: ProcessId): ChildProcess => {
  const { stderr, stdin, stdout } = child
  const outputs = [stdout!, stderr!]
  return {
    id,
    stdout: { read: read(stdout!) },
    stderr: { read: read(stderr!) },
    exited: exitOf(child),
    write: (text) => write(stdin, text),
    closeInput: Effect.sync(() => void stdin?.end()),
    discard: Effect.sync(() => outputs.forEach((pipe) => pipe.removeAllListeners("readable").resume())),
    close: Effect.sync(() => [stdin, ...outputs].forEach((pipe) => pipe?.destroy()))
  }
}

const spawn: Spawn = (program) =>
  Effect.callback((resume) => {
    const { argv, cwd, env, handed = [], input, keepInput = false } = program
    try {
      const child = Process.spawn(argv[0], argv.slice(1), {
        cwd,
        env: { ...env },
        detached: true,
        stdio: [
          input === undefined && !keepInput ? "ignore" : "pipe",
          "pipe",
          "pipe",
          ...handed.map(() => "pipe" as const)
        ]
      })
      handed.forEach((bytes, index) => hand(child.stdio[index + 3], bytes))
      const id = identify(child.pid ?? 0)
      child.on("error", (error) => resume(Effect.fail(spawnError(program, error))))
      child.once("spawn", () => {
        if (!keepInput) child.stdin?.end(input)
        else if (input !== undefined) child.stdin?.write(input)
        resume(Effect.succeed(childOf(child, id)))
      })
      // ignored: a child that reads nothing, or dies, breaks its pipes, and its exit status reports how it ended
      for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe?.on("error", () => {})
      // when the process exits, Node discards unread data in a pipe that has no listener
      for (const pipe of [child.stdout, child.stderr]) pipe?.on("readable", () => {})
    } catch (error) {
      // some failures are thrown instead of emitted as an event
      resume(Effect.fail(spawnError(program, error)))
    }
  })

export const Spawn = Context.Reference<Spawn>("agentd/backends/process/Spawn", { defaultValue: () => spawn })
