/**
 * RunProcess: one marked process of a run, with all that it starts.
 *
 * Guarantees: it leads a session and a process group of its own; its environment
 * carries the run's mark and none of the daemon's own service variables; the reaper
 * knows the run before it is spawned; what it writes is read always, kept or not, so that
 * a full pipe never stops it; `ended` comes only when every process of the run
 * is gone; closing the scope ends them all and waits for it, and cannot fail to.
 *
 * It wraps `node:child_process` itself: `effect/process` tells no signal from an error,
 * waits without end for a pipe that a grandchild holds, and knows groups, not trees.
 */
import { Deferred, type Duration, Effect, Fiber, type Scope } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import * as fs from "node:fs"
import type { Readable } from "node:stream"
import { BackendError } from "./Backend.ts"
import { identify, type ProcessId } from "./ProcessTable.ts"
import { environmentOf, type Mark, type ProcessesSurvived, ProcessTree, type Quarry } from "./ProcessTree.ts"
import { Reaper } from "./Reaper.ts"

export interface RunProcessSpec extends Mark {
  readonly argv: readonly [string, ...ReadonlyArray<string>]
  readonly cwd: string
  /** All of it; the mark is added. */
  readonly env: Environment
  /** Written to its standard input, which is closed then; left out, it reads nothing. */
  readonly input?: string | undefined
  /** From SIGTERM to SIGKILL. */
  readonly grace: Duration.Duration
}

export type Environment = { readonly [name: string]: string | undefined }

export interface RunProcess {
  readonly pid: number
  readonly stdout: Readable
  readonly stderr: Readable
  /** How the first process ended; others of the run may still live. */
  readonly exited: Effect.Effect<ExitStatus>
  /** When all of the run is gone; what the first process leaves behind is ended with the grace. */
  readonly ended: Effect.Effect<void, ProcessesSurvived>
  /** Begins SIGTERM, grace, SIGKILL; `ended` says when that is over. */
  readonly interrupt: Effect.Effect<void>
  /** SIGKILL to all, now. */
  readonly kill: Effect.Effect<void>
}

export interface ExitStatus {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** What a service manager tells the daemon about itself: a child that took it for its own would speak in our name. */
const OURS =
  /^(NOTIFY_SOCKET|WATCHDOG_(PID|USEC)|LISTEN_(PID|FDS|FDNAMES)|INVOCATION_ID|JOURNAL_STREAM|SYSTEMD_EXEC_PID|MAINPID|AGENTD_.*)$/

/** What a child may have of the daemon's own environment. */
export const inheritable = (env: Environment): Environment =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !OURS.test(name)))

const refusal = (message: string, remedy: string, fatal: boolean) => new BackendError({ message, remedy, fatal })

const isFolder = (path: string) => {
  try {
    return fs.statSync(path).isDirectory()
  } catch {
    return false
  }
}

/** Which failures to spawn a retry may mend: too many processes, files, too little memory. */
const spawnError = ({ argv, cwd }: RunProcessSpec, cause: unknown): BackendError => {
  const code = cause instanceof Error ? (cause as NodeJS.ErrnoException).code : undefined
  const program = argv[0]
  switch (code) {
    case "ENOENT":
      return isFolder(cwd)
        ? refusal(
            `there is no program "${program}"`,
            "install it, or correct argv in agentd.jsonc or the daemon's PATH",
            true
          )
        : refusal(`the folder ${cwd} does not exist`, "create it, or correct cwd in agentd.jsonc", true)
    case "ENOTDIR":
      return refusal(
        `${cwd} is no folder, or "${program}" lies below a file`,
        "correct cwd or argv in agentd.jsonc",
        true
      )
    case "EACCES":
      return refusal(
        `"${program}" may not be executed, or ${cwd} not be entered`,
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
    case "ERR_INVALID_ARG_VALUE":
      return refusal("an argument or variable holds a NUL byte", "remove it from the prompt or the configuration", true)
    default:
      return refusal(
        `"${program}" could not be started: ${cause instanceof Error ? cause.message : String(cause)}`,
        "see whether the system is short of processes, open files or memory; agentd tries again",
        false
      )
  }
}

interface Spawned {
  readonly child: ChildProcess
  /** Read at once, before anything can reap it. */
  readonly root: ProcessId
}

const spawnChild = (spec: RunProcessSpec) =>
  Effect.callback<Spawned, BackendError>((resume) => {
    try {
      const child = spawn(spec.argv[0], spec.argv.slice(1), {
        cwd: spec.cwd,
        env: { ...spec.env, PWD: spec.cwd, ...environmentOf(spec) },
        detached: true,
        stdio: [spec.input === undefined ? "ignore" : "pipe", "pipe", "pipe"]
      })
      const root = identify(child.pid ?? 0)
      child.on("error", (error) => resume(Effect.fail(spawnError(spec, error))))
      child.once("spawn", () => resume(Effect.succeed({ child, root })))
      // a child that reads nothing, or dies, breaks its pipes; how it ended is told by its exit
      for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe?.on("error", () => {})
      // at the exit Node throws away what is unread of a pipe that nobody listens to
      for (const pipe of [child.stdout, child.stderr]) pipe?.on("readable", () => {})
    } catch (error) {
      // some failures are thrown instead of told by an event
      resume(Effect.fail(spawnError(spec, error)))
    }
  })

const exitOf = (child: ChildProcess) => {
  const exited = Deferred.makeUnsafe<ExitStatus>()
  const tell = (code: number | null, signal: NodeJS.Signals | null) =>
    Deferred.doneUnsafe(exited, Effect.succeed({ code, signal }))
  child.once("exit", tell)
  if (child.exitCode !== null || child.signalCode !== null) tell(child.exitCode, child.signalCode)
  return exited
}

/** The next bytes; none at the end. Reads nothing ahead, so that a slow reader slows the writer down. */
export const read = (pipe: Readable): Effect.Effect<Buffer | undefined> =>
  Effect.callback((resume) => {
    const events = ["readable", "end", "close"] as const
    const stop = () => events.forEach((event) => pipe.off(event, look))
    const look = () => {
      const chunk: Buffer | null = pipe.read()
      if (chunk === null && !pipe.readableEnded && !pipe.destroyed) return
      stop()
      resume(Effect.succeed(chunk ?? undefined))
    }
    events.forEach((event) => pipe.on(event, look))
    look()
    return Effect.sync(stop)
  })

/** From here on what comes is thrown away: nobody reads, and the child must not block. */
const discard = (pipe: Readable) => pipe.removeAllListeners("readable").resume()

export const make = Effect.fnUntraced(function* (
  spec: RunProcessSpec
): Effect.fn.Return<RunProcess, BackendError, Scope.Scope | ProcessTree | Reaper> {
  const tree = yield* ProcessTree
  const reaper = yield* Reaper

  const acquire = Effect.gen(function* () {
    yield* reaper.add(spec.runId)
    const { child, root } = yield* Effect.onError(spawnChild(spec), () => reaper.remove(spec.runId))
    const quarry: Quarry = { store: spec.store, runId: spec.runId, root }
    const exited = exitOf(child)
    const stop = Deferred.makeUnsafe<void>()
    // Bound to no scope: once begun it goes on to its end, whoever loses patience. It is bounded itself.
    const ending = yield* Deferred.await(stop).pipe(
      Effect.raceFirst(Deferred.await(exited)),
      Effect.andThen(tree.terminate(quarry, spec.grace)),
      Effect.ensuring(reaper.remove(spec.runId)),
      Effect.forkDetach({ startImmediately: true })
    )
    return { child, root, quarry, exited, ending, stop: Deferred.succeed(stop, undefined) }
  })

  const { child, root, quarry, exited, ending, stop } = yield* Effect.acquireRelease(
    acquire,
    ({ child, ending, stop }) => {
      for (const pipe of [child.stdout, child.stderr]) if (pipe !== null) discard(pipe)
      return stop.pipe(
        Effect.andThen(Fiber.join(ending)),
        Effect.catchTag("ProcessesSurvived", (error) => Effect.logError(error.message, error.remedy)),
        Effect.ensuring(Effect.sync(() => [child.stdin, child.stdout, child.stderr].forEach((pipe) => pipe?.destroy())))
      )
    }
  )
  child.stdin?.end(spec.input)
  return {
    pid: root.pid,
    stdout: child.stdout!,
    stderr: child.stderr!,
    exited: Deferred.await(exited),
    ended: Fiber.join(ending),
    interrupt: Effect.asVoid(stop),
    kill: tree.kill(quarry)
  }
})
