/**
 * RunProcess: one marked process of a run, with all that it starts.
 *
 * A run's own process is held by the keeper where its backend asks for that, and one that an earlier daemon left is
 * taken up; any other is the daemon's child, which the reaper ends if the daemon dies.
 *
 * Guarantees: it leads a session and a process group of its own; its environment
 * carries the run's mark; the reaper
 * knows the run before it is spawned; what it writes is read always, kept or not, so that
 * a full pipe never stops it; `ended` comes only when every process of the run
 * is gone; closing the scope ends them all and waits for it, and cannot fail to, but where the daemon
 * leaves its runs to the next one.
 */
import { Deferred, type Duration, Effect, Fiber, type Scope } from "effect"
import type { Point } from "../keeper/HeldProgram.ts"
import { Keeper } from "../keeper/Keeper.ts"
import { BackendError, type Place, type RunEvent } from "../Backend.ts"
import type { Outcome } from "../Outcome.ts"
import { type ExitStatus, type Pipe, type Program, Spawn } from "./ChildProcess.ts"
import * as KeptProcess from "./KeptProcess.ts"
import { type Line, LineSplitter } from "./LineSplitter.ts"
import * as ProcessTable from "./ProcessTable.ts"
import { environmentOf, type Mark, type ProcessesSurvived, ProcessTree, type Quarry } from "./ProcessTree.ts"
import { Reaper } from "./Reaper.ts"

/** The mark is added to its environment. */
export interface RunProcessSpec extends Mark, Program {
  /**
   * A further process of a run that has begun: it carries the same mark, so it ends with the run at
   * the latest; an end of it alone ends what parent, group and session show to be its own.
   */
  readonly part?: boolean | undefined
  /** The keeper holds it, where there is one: whoever started the run can take it up. */
  readonly keeps?: boolean | undefined
  /** Counts the run's own processes, one after the other. Default 1. */
  readonly count?: number | undefined
  /** Takes up one that an earlier daemon has left. */
  readonly takesUp?: boolean | undefined
  /** From SIGTERM to SIGKILL. */
  readonly grace: Duration.Duration
}

export interface RunProcess {
  readonly pid: number
  /** Of a process that was taken up: it is read again from its beginning, or its last point. */
  readonly before: KeptProcess.Before | undefined
  /** True where it outlives the daemon. */
  readonly isKept: boolean
  /** Whether so much was written since the last point that one there is worth its while. */
  readonly isDue: (out: number, err: number) => boolean
  /** The next daemon reads on from there. */
  readonly keep: (point: Point) => Effect.Effect<void>
  readonly stdout: Pipe
  readonly stderr: Pipe
  /**
   * With `keepInput`. Returns when the system has taken the text, in the order of the calls; what a
   * process that has ended, or has closed its input, would not read is dropped: its exit tells.
   */
  readonly write: (text: string, note?: string) => Effect.Effect<void>
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
  /** Ends what the run has begun in so many ms up to now, where that does not end by itself soon: the commands of those that were ended. */
  readonly endBegun: (ms: number) => Effect.Effect<ReadonlyArray<string>, ProcessesSurvived>
}

/** The time in which a program that was told to stop a call may end itself what the call has begun. */
const BY_ITSELF = "3 seconds"
/** Most characters of a command that are told. */
const MAX_COMMAND = 200

/** How long an open pipe may be silent when all known processes of a run are gone. */
const HELD_LIMIT = "1 second"

/** Hands on each chunk of a pipe, to its end. A pipe that somebody unknown holds open ends with the run. */
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
 * The same by lines of at most so many characters: `take` gets those of each chunk with their places, the bytes up
 * to the chunk's end, and those up to the end of the last line, but in the midst of a long one; the rest at the end.
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

/** Events of the output that ends there; `count`: of the program. */
export const placed = (events: ReadonlyArray<RunEvent>, count: number, end: number): ReadonlyArray<RunEvent> =>
  events.map((event, index) => ({ ...event, place: { out: [count, end, index + 1] } }))

/** Lines of standard error as events; `count`: of the program. */
export const errorsOf = (
  { isKept }: Pick<RunProcess, "isKept">,
  count: number,
  lines: ReadonlyArray<Line>
): ReadonlyArray<RunEvent> =>
  lines.map(({ end, text }) => {
    const place: Place = { err: [count, end] }
    return { _tag: "Delta", stream: "stderr", text, ...(isKept ? { place } : {}) }
  })

/** When every process of the run is gone; the outcome where one could not be ended. */
export const survival = ({ ended }: Pick<RunProcess, "ended">): Effect.Effect<Outcome | undefined> =>
  ended.pipe(
    Effect.as(undefined),
    Effect.catchTag("ProcessesSurvived", ({ message }) => Effect.succeed<Outcome>({ _tag: "Error", detail: message }))
  )

const notHeld = new BackendError({
  message: "the keeper of runs is not there just now, and holds no further program",
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
    // a part that might be begun again by the next daemon is held, or does not begin
    if (!known && spec.keeps === true && kept === undefined && (yield* keeper.isThere)) return yield* notHeld
    const isReaped = known && kept === undefined
    const forget = isReaped ? reaper.remove(spec.runId) : Effect.void
    if (isReaped) yield* reaper.add(spec.runId)
    const child = kept ?? (yield* Effect.onError(spawn(program), () => forget))
    // no run's id holds a blank: by this mark nothing is found
    const quarry: Quarry = {
      store: spec.store,
      runId: known ? spec.runId : `part of ${spec.runId}`,
      root: child.id,
      starter: kept?.starter,
      births: kept?.births,
      seen: new Map()
    }
    const stop = Deferred.makeUnsafe<void>()
    // Bound to no scope: once begun it goes on to its end, whoever loses patience. It is bounded itself.
    const ending = yield* Deferred.await(stop).pipe(
      Effect.raceFirst(child.exited),
      // where nobody knows how it ended, there was nobody to end its anchor
      Effect.flatMap((exit) => {
        const isKnown = exit !== undefined && (exit.code !== null || exit.signal !== null)
        return tree.terminate(isKnown ? { ...quarry, anchor: kept?.anchor } : quarry, spec.grace)
      }),
      // Gone for a search, it may still wait to be reaped by us.
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
    // with the run all of it ends
    endBegun: (ms) => Effect.raceFirst(endBegun(tree, quarry, spec, ms), Effect.as(Fiber.await(ending), []))
  }
})
