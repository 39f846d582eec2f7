/**
 * DaemonLauncher: starts the daemon in the background. The daemon becomes a service of the user's systemd, if there is
 * one. Otherwise it becomes a detached process with its own session and log file.
 *
 * Guarantees: neither the daemon nor any program that it starts inherits the caller's open files.
 *
 * With systemd, the launcher returns when the daemon has reported that it is ready; without systemd, when the daemon's
 * process exists. The caller then checks whether the daemon answers on its control socket.
 */
import { spawn } from "node:child_process"
import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  statSync
} from "node:fs"
import { devNull } from "node:os"
import { dirname, isAbsolute } from "node:path"
import { Effect, Schema } from "effect"
import { attempt } from "../config/Attempt.ts"
import * as Unit from "./Unit.ts"

/**
 * Maximum size of the log, in bytes. A larger log is renamed to `<log>.1` at the next start, replacing the previous
 * one.
 */
const LOG_LIMIT = 8 * 1024 * 1024

export interface LaunchOptions extends Unit.Service {
  /** Absolute path of the log file of a detached daemon. With systemd, the journal is used instead. */
  readonly log: string
}

export type How =
  | { readonly _tag: "Systemd"; readonly unit: string }
  | {
      readonly _tag: "Detached"
      readonly pid: number
      readonly log: string
      /** Waits until the process has ended; returns its exit code and its last output. */
      readonly ended: Effect.Effect<{ readonly code: number | null; readonly words: string }>
    }

export class LaunchError extends Schema.TaggedError<LaunchError>()("LaunchError", {
  message: Schema.String,
  remedy: Schema.String
}) {}

export const launch = Effect.fn("launch")(function* (options: LaunchOptions) {
  // The socket's path depends on XDG_RUNTIME_DIR. If the service had this variable but the shell did not, the shell
  // would not find the service's socket.
  const managed = options.env["XDG_RUNTIME_DIR"] !== undefined && (yield* Unit.hasUserManager)
  if (!managed) return yield* detach(options)
  yield* Unit.start(options).pipe(
    Effect.catchTag("SystemdError", ({ message, remedy }) => new LaunchError({ message, remedy }))
  )
  const how: How = { _tag: "Systemd", unit: options.unit }
  return how
})

const CLOSE_ON_EXEC = 0o2000000

/**
 * True if a child process would inherit the descriptor. False if the descriptor has been closed meanwhile, like the one
 * that was used to list the folder.
 */
const isInherited = (name: string): boolean => {
  try {
    const flags = /^flags:\s+([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${name}`, "latin1"))?.[1] ?? "0"
    return (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0
  } catch {
    return false
  }
}

/**
 * Below this number all descriptors are replaced, without gaps, because Node marks inherited descriptors only up to the
 * first gap.
 */
const DENSE = 4096

/**
 * The child's descriptors from 3 on, chosen so that the child inherits none of this process's descriptors. Node has
 * already marked those up to the first gap as not inheritable. The others are replaced by `nothing`, without a gap, so
 * that the child's Node marks them.
 */
const replacing = (nothing: number): ReadonlyArray<number | "ignore"> => {
  let names: ReadonlyArray<string>
  try {
    names = readdirSync("/proc/self/fd")
  } catch {
    return []
  }
  const beyond = new Set(names.filter(isInherited).map(Number))
  const length = Math.max(2, ...beyond) - 2
  return Array.from({ length }, (_, at) => (at + 3 < DENSE || beyond.has(at + 3) ? nothing : "ignore"))
}

/** Minimum number of open files that a daemon with agents needs. */
const FEW = 1024

/**
 * A message that explains a failure by a low limit for open files. Undefined if the limit is high enough or unknown.
 */
export const fewFiles = (): string | undefined => {
  const limits = attempt(() => readFileSync("/proc/self/limits", "utf8")) ?? ""
  const limit = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? FEW)
  return limit < FEW ? `Only ${limit} files may be open here: raise that limit (ulimit -n ${FEW}).` : undefined
}

/** True if the state directory cannot be made: without HOME, it would lie in the folder `/`. */
const isClosed = (error: unknown): boolean =>
  error instanceof Error &&
  "syscall" in error &&
  error.syscall === "mkdir" &&
  "code" in error &&
  error.code === "EACCES"

/**
 * Starts a detached daemon. Uses Node directly, because a ChildProcess of Effect ends with its scope, and the daemon
 * must outlive this process.
 */
export const detach = ({
  command: [program = "", ...args],
  cwd,
  env,
  log
}: LaunchOptions): Effect.Effect<How, LaunchError> =>
  Effect.callback((resume) => {
    const failed = (error: unknown) =>
      resume(
        new LaunchError({
          message: `The daemon could not be started: ${error instanceof Error ? error.message : String(error)}`,
          remedy: isClosed(error)
            ? "Set HOME to a folder that you can write to, or choose another: agentd --state DIR start"
            : (fewFiles() ?? `Check that ${program} can be run and that ${log} can be written, or try 'agentd up'.`)
        })
      )
    try {
      // a child with replaced descriptors does not always report that its program is missing
      if (isAbsolute(program)) accessSync(program, constants.X_OK)
      const fd = openLog(log)
      const from = fstatSync(fd).size
      const nothing = openSync(devNull, "r+")
      const child = spawn(program, args, { cwd, env, detached: true, stdio: [nothing, fd, fd, ...replacing(nothing)] })
      for (const one of [fd, nothing]) closeSync(one)
      child.once("error", failed)
      const code = new Promise<number | null>((ended) => child.once("exit", ended))
      child.once("spawn", () => {
        child.unref()
        const ended = Effect.map(
          Effect.promise(() => code),
          (code) => ({ code, words: wordsOf(log, from) })
        )
        resume(Effect.succeed({ _tag: "Detached", pid: child.pid ?? 0, log, ended }))
      })
    } catch (error) {
      failed(error)
    }
  })

/** Maximum length of a daemon's last output, in bytes. */
const WORDS = 4_096

/** The last part of the output that was written to the log after position `from`; empty if the log cannot be read. */
const wordsOf = (log: string, from: number): string => {
  try {
    const fd = openSync(log, "r")
    try {
      const { size } = fstatSync(fd)
      const begin = Math.max(from, size - WORDS)
      const bytes = Buffer.alloc(Math.max(0, size - begin))
      return bytes.toString("utf8", 0, readSync(fd, bytes, 0, bytes.length, begin)).trim()
    } finally {
      closeSync(fd)
    }
  } catch {
    return ""
  }
}

/** Opens the log. Only its owner may read it, because it contains messages to agents. */
const openLog = (log: string): number => {
  mkdirSync(dirname(log), { recursive: true, mode: 0o700 })
  if ((statSync(log, { throwIfNoEntry: false })?.size ?? 0) > LOG_LIMIT) renameSync(log, `${log}.1`)
  return openSync(log, "a", 0o600)
}
