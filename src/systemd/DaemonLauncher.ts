/**
 * DaemonLauncher: starts the daemon in the background. It becomes a service of the user's systemd if there is one; otherwise a
 * detached process in its own session, which writes to a log file.
 *
 * Guarantees: neither the daemon nor any program that it starts inherits the caller's open files.
 *
 * Returns under systemd when the daemon has reported that it is ready, and detached when its process exists. The caller
 * checks over the control socket whether the daemon answers.
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
  /** Absolute path of the log of a detached daemon. Under systemd the journal is used instead. */
  readonly log: string
}

export type How =
  | { readonly _tag: "Systemd"; readonly unit: string }
  | {
      readonly _tag: "Detached"
      readonly pid: number
      readonly log: string
      /** Returns when the process has ended, with its exit code and its last output. */
      readonly ended: Effect.Effect<{ readonly code: number | null; readonly words: string }>
    }

export class LaunchError extends Schema.TaggedError<LaunchError>()("LaunchError", {
  message: Schema.String,
  remedy: Schema.String
}) {}

export const launch = Effect.fn("launch")(function* (options: LaunchOptions) {
  // The socket's path depends on XDG_RUNTIME_DIR: a shell without it would not find a service that has it.
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
 * Whether a child would inherit the descriptor. False if the descriptor is closed by now, like that of the listed
 * folder.
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
 * Below this number descriptors are replaced without gaps, because Node marks inherited ones only up to the first gap.
 */
const DENSE = 4096

/**
 * The child's descriptors from 3 on, so that it inherits none of ours. Node has marked its own inherited ones, up to
 * the first gap, as not inheritable. The others are replaced by `nothing`, without a gap, so that the child's Node
 * marks those.
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

/** A daemon with agents needs at least this number of open files. */
const FEW = 1024

/** Explains a failure by a low limit of open files. Undefined if the limit is high enough or unknown. */
export const fewFiles = (): string | undefined => {
  const limits = attempt(() => readFileSync("/proc/self/limits", "utf8")) ?? ""
  const limit = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? FEW)
  return limit < FEW ? `Only ${limit} files may be open here: raise that limit (ulimit -n ${FEW}).` : undefined
}

/**
 * Uses Node directly, because a ChildProcess of Effect ends with its scope, and the daemon must outlive this process.
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
          remedy: fewFiles() ?? `Check that ${program} can be run and that ${log} can be written, or try 'agentd up'.`
        })
      )
    try {
      // a child with replaced descriptors does not always report that its program does not exist
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

/** Maximum length of the last output, in bytes. */
const WORDS = 4_096

/** The end of what was written to the log after `from`; empty if the log cannot be read. */
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

/** Only the owner may read the log: it contains what agents were sent. */
const openLog = (log: string): number => {
  mkdirSync(dirname(log), { recursive: true, mode: 0o700 })
  if ((statSync(log, { throwIfNoEntry: false })?.size ?? 0) > LOG_LIMIT) renameSync(log, `${log}.1`)
  return openSync(log, "a", 0o600)
}
