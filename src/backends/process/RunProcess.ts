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
import type { Readable, Writable } from "node:stream"
import { BackendError } from "../Backend.ts"
import * as LineSplitter from "./LineSplitter.ts"
import { identify, type ProcessId } from "./ProcessTable.ts"
import { environmentOf, type Mark, type ProcessesSurvived, ProcessTree, type Quarry } from "./ProcessTree.ts"
import { Reaper } from "./Reaper.ts"

export interface RunProcessSpec extends Mark {
  readonly argv: readonly [string, ...ReadonlyArray<string>]
  readonly cwd: string
  /** All of it; the mark is added. */
  readonly env: Environment
  /** The config's field that names the program: what an error tells to correct. Default: argv. */
  readonly setting?: string | undefined
  /** Written to its standard input, which is closed then; left out, it reads nothing. */
  readonly input?: string | undefined
  /** Its standard input stays open after `input`, for `write`, until `closeInput`. */
  readonly keepInput?: boolean | undefined
  /**
   * One more process of a run that has begun: it carries the same mark, so it ends with the run at
   * the latest; what ends it alone ends what parent, group and session show to be its own.
   */
  readonly part?: boolean | undefined
  /** From SIGTERM to SIGKILL. */
  readonly grace: Duration.Duration
}

export type Environment = { readonly [name: string]: string | undefined }

export interface RunProcess {
  readonly pid: number
  readonly stdout: Readable
  readonly stderr: Readable
  /**
   * With `keepInput`. Returns when the system has taken the text, in the order of the calls; what a
   * process that has ended, or has closed its input, would not read is dropped: its exit tells.
   */
  readonly write: (text: string) => Effect.Effect<void>
  /** Nothing more is written: it reads to the end of what was. */
  readonly closeInput: Effect.Effect<void>
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
const spawnError = ({ argv, cwd, setting = "argv" }: RunProcessSpec, cause: unknown): BackendError => {
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
        `${cwd} is no folder, or "${program}" lies below a file`,
        `correct cwd or ${setting} in agentd.jsonc`,
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
        stdio: [spec.input === undefined && spec.keepInput !== true ? "ignore" : "pipe", "pipe", "pipe"]
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

/** How long an open pipe may be silent when all known processes of a run are gone. */
const HELD_LIMIT = "1 second"

/** Hands on each chunk of a pipe, to its end. A pipe that somebody unknown holds open ends with the run. */
export const drain = Effect.fnUntraced(function* (
  pipe: Readable,
  ended: Effect.Effect<unknown, unknown>,
  take: (chunk: Buffer) => Effect.Effect<unknown>
) {
  const held = Effect.exit(ended).pipe(Effect.andThen(Effect.sleep(HELD_LIMIT)), Effect.as(undefined))
  const next = Effect.raceFirst(read(pipe), held)
  for (let chunk = yield* next; chunk !== undefined; chunk = yield* next) yield* take(chunk)
})

/** The same by lines of at most so many characters: `take` gets those of each chunk, and the rest at the end. */
export const drainLines = Effect.fnUntraced(function* (
  pipe: Readable,
  ended: Effect.Effect<unknown, unknown>,
  limit: number,
  take: (lines: ReadonlyArray<string>) => Effect.Effect<unknown>
) {
  const splitter = LineSplitter.make(limit)
  yield* drain(pipe, ended, (chunk) => take(splitter.push(chunk)))
  yield* take(splitter.end())
})

/** Its callback comes with an error, too: a broken pipe throws nothing and holds nobody up. */
const write = (pipe: Writable | null, text: string): Effect.Effect<void> =>
  Effect.callback((resume) => {
    if (pipe === null || !pipe.writable) return resume(Effect.void)
    pipe.write(text, () => resume(Effect.void))
  })

/** From here on what comes is thrown away: nobody reads, and the child must not block. */
const discard = (pipe: Readable) => pipe.removeAllListeners("readable").resume()

export const make = Effect.fnUntraced(function* (
  spec: RunProcessSpec
): Effect.fn.Return<RunProcess, BackendError, Scope.Scope | ProcessTree | Reaper> {
  const tree = yield* ProcessTree
  const reaper = yield* Reaper

  const acquire = Effect.gen(function* () {
    const known = spec.part !== true
    const forget = known ? reaper.remove(spec.runId) : Effect.void
    if (known) yield* reaper.add(spec.runId)
    const { child, root } = yield* Effect.onError(spawnChild(spec), () => forget)
    // no run's id holds a blank: by this mark nothing is found
    const quarry: Quarry = {
      store: spec.store,
      runId: known ? spec.runId : `part of ${spec.runId}`,
      root,
      seen: new Map()
    }
    const exited = exitOf(child)
    const stop = Deferred.makeUnsafe<void>()
    // Bound to no scope: once begun it goes on to its end, whoever loses patience. It is bounded itself.
    const ending = yield* Deferred.await(stop).pipe(
      Effect.raceFirst(Deferred.await(exited)),
      Effect.andThen(tree.terminate(quarry, spec.grace)),
      // Gone for a search, it may still wait to be reaped by us.
      Effect.andThen(Deferred.await(exited)),
      Effect.ensuring(forget),
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
  if (spec.keepInput !== true) child.stdin?.end(spec.input)
  else if (spec.input !== undefined) child.stdin?.write(spec.input)
  return {
    pid: root.pid,
    stdout: child.stdout!,
    stderr: child.stderr!,
    write: (text) => write(child.stdin, text),
    closeInput: Effect.sync(() => void child.stdin?.end()),
    exited: Deferred.await(exited),
    ended: Fiber.join(ending),
    interrupt: Effect.asVoid(stop),
    kill: tree.kill(quarry)
  }
})
