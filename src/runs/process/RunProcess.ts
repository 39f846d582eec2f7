/**
 * RunProcess: one process of a run (with the run's mark), and all processes that it starts.
 *
 * If the backend requests it, the keeper holds the process, and a process that an earlier daemon left is resumed. Every
 * other process is the daemon's child, which the reaper ends if the daemon dies.
 *
 * Guarantees: The process leads its own session and process group. Its environment has the run's mark. The reaper knows
 * the run before the process is started. Its output is always read, so a full pipe never blocks it. `ended` completes
 * only when all processes of the run have ended. Closing the scope ends all processes, waits for their end, and cannot
 * fail. Exception: a daemon that leaves its runs to the next daemon does not end them.
 */
import { Deferred, type Duration, Effect, Fiber, type Scope } from "effect"
import type { Point } from "../keeper/KeeperProgram.ts"
import { Keeper } from "../keeper/Keeper.ts"
import { BackendError, type Place, type RunEvent } from "../Backend.ts"
import type { Outcome } from "../Outcome.ts"
import { type ExitStatus, type Pipe, type Program, Spawn } from "./ChildProcess.ts"
import * as KeptProcess from "./KeptProcess.ts"
import { type Line, LineSplitter } from "../../config/LineSplitter.ts"
import * as ProcessTable from "./ProcessTable.ts"
import { environmentOf, type Mark, type ProcessesSurvived, ProcessTree, type Quarry } from "./ProcessTree.ts"
import { Reaper } from "./Reaper.ts"

/** The program to start; the run's mark is added to its environment. */
export interface RunProcessSpec extends Mark, Program {
  /**
   * True for an additional process of a run that has already begun. The process has the run's mark, so it ends when the
   * run ends, or earlier. If only this process is ended, its own processes (by parent, group or session) end with it;
   * all other processes of the run continue.
   */
  readonly part?: boolean | undefined
  /** If true and there is a keeper, the keeper holds the process, so that the next daemon can resume it. */
  readonly keeps?: boolean | undefined
  /** Number of this process among the run's own processes, which run one after another. By default 1. */
  readonly count?: number | undefined
  /** If true, resumes a process that an earlier daemon has left. */
  readonly takesUp?: boolean | undefined
  /** Grace period from SIGTERM to SIGKILL. */
  readonly grace: Duration.Duration
}

export interface RunProcess {
  readonly pid: number
  /** Set for a process that was resumed: its output is read again from its beginning or from its last checkpoint. */
  readonly before: KeptProcess.Before | undefined
  /** True if the process survives the daemon. */
  readonly isKept: boolean
  /** Whether enough output was written since the last checkpoint to make a new one. */
  readonly isDue: (out: number, err: number) => boolean
  /** Stores `point` as the checkpoint from which the next daemon reads the output. */
  readonly keep: (point: Point) => Effect.Effect<void>
  readonly stdout: Pipe
  readonly stderr: Pipe
  /** Writes to the input, like `write` of ChildProcess. Requires `keepInput`. */
  readonly write: (text: string, note?: string) => Effect.Effect<void>
  /** Closes the input. The process can still read what was written before. */
  readonly closeInput: Effect.Effect<void>
  /** Exit status of the first process. Other processes of the run may still be running. */
  readonly exited: Effect.Effect<ExitStatus>
  /**
   * Completes when all processes of the run have ended. Processes that the first one leaves behind are ended after the
   * grace period.
   */
  readonly ended: Effect.Effect<void, ProcessesSurvived>
  /** Begins to end the run: SIGTERM, grace period, SIGKILL. `ended` completes when this is done. */
  readonly interrupt: Effect.Effect<void>
  /** Sends SIGKILL to all processes, now. */
  readonly kill: Effect.Effect<void>
  /**
   * Ends the processes that the run started in the last `ms` milliseconds, unless they end by themselves shortly.
   * Returns the commands of the processes that it ended.
   */
  readonly endBegun: (ms: number) => Effect.Effect<ReadonlyArray<string>, ProcessesSurvived>
}

/** How long a program may take to end the processes of a call that was stopped. */
const BY_ITSELF = "3 seconds"
/** Maximum length of a command in a report, characters. */
const MAX_COMMAND = 200

/** How long a pipe can stay open without output after all known processes of a run have ended. */
const HELD_LIMIT = "1 second"

/** Reads a pipe. If an unknown process holds the pipe open, reading ends with the run. */
export const drain = Effect.fnUntraced(function* (
  pipe: Pipe,
  ended: Effect.Effect<unknown, unknown>,
  take: (chunk: Uint8Array) => Effect.Effect<unknown>
) {
  const held = Effect.exit(ended).pipe(Effect.andThen(Effect.sleep(HELD_LIMIT)), Effect.as(undefined))
  const next = Effect.raceFirst(pipe.read, held)
  for (let chunk = yield* next; chunk !== undefined; chunk = yield* next) yield* take(chunk)
})

/**
 * Like `drain`, but by lines of at most `limit` characters. `take` gets the lines of each chunk with their positions,
 * and the rest at the end. `size`: number of bytes up to the end of the chunk. `whole`: number of bytes up to the end
 * of the last line; undefined within a long line.
 */
export const drainPlaced = Effect.fnUntraced(function* (
  pipe: Pipe,
  ended: Effect.Effect<unknown, unknown>,
  limit: number,
  take: (lines: ReadonlyArray<Line>, size: number, whole: number | undefined) => Effect.Effect<unknown>
) {
  const splitter = new LineSplitter(limit, pipe.from)
  yield* drain(pipe, ended, (chunk) => take(splitter.push(chunk), splitter.size, splitter.whole))
  yield* take(splitter.end(), splitter.size, undefined)
})

/** Adds positions to events whose output ends at `end`. `count`: the program's number in its run. */
export const placed = (events: ReadonlyArray<RunEvent>, count: number, end: number): ReadonlyArray<RunEvent> =>
  events.map((event, index) => ({ ...event, place: { out: [count, end, index + 1] } }))

/** Events for lines of standard error. `count`: the program's number in its run. */
export const errorsOf = (
  { isKept }: Pick<RunProcess, "isKept">,
  count: number,
  lines: ReadonlyArray<Line>
): ReadonlyArray<RunEvent> =>
  lines.map(({ end, text }) => {
    const place: Place = { err: [count, end] }
    return { _tag: "Delta", stream: "stderr", text, ...(isKept ? { place } : {}) }
  })

/**
 * Waits until all processes of the run have ended. Returns an error outcome if a process could not be ended, otherwise
 * undefined.
 */
export const survival = ({ ended }: Pick<RunProcess, "ended">): Effect.Effect<Outcome | undefined> =>
  ended.pipe(
    Effect.as(undefined),
    Effect.catchTag("ProcessesSurvived", ({ message }) => Effect.succeed<Outcome>({ _tag: "Error", detail: message }))
  )

const notHeld = new BackendError({
  message: "the keeper of runs cannot be reached now, so no further program can be started",
  remedy: "try again in a moment",
  fatal: false
})

const endBegun = Effect.fnUntraced(function* (
  tree: ProcessTree["Service"],
  quarry: Quarry,
  { grace, runId, store }: RunProcessSpec,
  ms: number
) {
  const since = ProcessTable.ticksNow() - ms / 10
  const begun = (yield* tree.find(quarry)).filter(({ start }) => start >= since)
  if (begun.length === 0) return []
  yield* Effect.sleep(BY_ITSELF)
  const left = begun.filter(ProcessTable.isAlive)
  if (left.length === 0) return []
  const commands = left.map(({ pid }) =>
    ProcessTable.commandLine(pid).replaceAll("\0", " ").slice(0, MAX_COMMAND).trim()
  )
  const seen = new Map(left.map(({ pid, start }) => [pid, start]))
  yield* tree.terminate({ store, runId: `part of ${runId}`, seen }, grace)
  return commands
})

export const make = Effect.fnUntraced(function* (
  spec: RunProcessSpec
): Effect.fn.Return<RunProcess, BackendError, Scope.Scope | ProcessTree | Reaper> {
  const keeper = yield* Keeper
  const tree = yield* ProcessTree
  const reaper = yield* Reaper
  const spawn = yield* Spawn

  const acquire = Effect.gen(function* () {
    const known = spec.part !== true
    const program = { ...spec, env: { ...spec.env, PWD: spec.cwd, ...environmentOf(spec) } }
    const name = KeptProcess.nameOf(spec.runId, spec.count ?? 1)
    const left = spec.takesUp === true ? yield* KeptProcess.take(name) : undefined
    const kept = left ?? (spec.keeps === true ? yield* KeptProcess.start(name, program) : undefined)
    // the next daemon could start this part again, so if there is a keeper that cannot hold it, it is not started
    if (!known && spec.keeps === true && kept === undefined && (yield* keeper.isThere)) return yield* notHeld
    const isReaped = known && kept === undefined
    const forget = isReaped ? reaper.remove(spec.runId) : Effect.void
    if (isReaped) yield* reaper.add(spec.runId)
    const child = kept ?? (yield* Effect.onError(spawn(program), () => forget))
    // run ids contain no space, so no mark is equal to this id
    const quarry: Quarry = {
      store: spec.store,
      runId: known ? spec.runId : `part of ${spec.runId}`,
      root: child.id,
      starter: kept?.starter,
      births: kept?.births,
      seen: new Map()
    }
    const stop = Deferred.makeUnsafe<void>()
    // not bound to a scope: once begun, the processes are ended even if all callers are interrupted; this takes a
    // limited time
    const ending = yield* Deferred.await(stop).pipe(
      Effect.raceFirst(child.exited),
      // if the exit status is unknown, the keeper has not ended the anchor
      Effect.flatMap((exit) => {
        const isKnown = exit !== undefined && (exit.code !== null || exit.signal !== null)
        return tree.terminate(isKnown ? { ...quarry, anchor: kept?.anchor } : quarry, spec.grace)
      }),
      // a search no longer finds the process, but this daemon may still have to reap it
      Effect.andThen(child.exited),
      Effect.ensuring(forget),
      Effect.forkDetach({ startImmediately: true })
    )
    return { child, kept, quarry, ending, stop: Deferred.succeed(stop, undefined) }
  })

  const { child, ending, kept, quarry, stop } = yield* Effect.acquireRelease(acquire, ({ child, ending, kept, stop }) =>
    kept !== undefined && keeper.isLeaving()
      ? child.close
      : child.discard.pipe(
          Effect.andThen(stop),
          Effect.andThen(Fiber.join(ending)),
          Effect.catchTag("ProcessesSurvived", (error) => Effect.logError(error.message, error.remedy)),
          Effect.ensuring(child.close)
        )
  )
  return {
    pid: child.id.pid,
    before: kept?.before,
    isKept: kept !== undefined,
    isDue: kept?.isDue ?? (() => false),
    keep: kept?.keep ?? (() => Effect.void),
    stdout: child.stdout,
    stderr: child.stderr,
    write: child.write,
    closeInput: child.closeInput,
    exited: child.exited,
    ended: Fiber.join(ending),
    interrupt: Effect.asVoid(stop),
    kill: tree.kill(quarry),
    // stop waiting when the run ends, because everything ends with it
    endBegun: (ms) => Effect.raceFirst(endBegun(tree, quarry, spec, ms), Effect.as(Fiber.await(ending), []))
  }
})
