/**
 * RunWatch: ends a run that exceeds its resource limits. Checks all live runs once a second, even if the kernel
 * enforces limits, too.
 *
 * A check reads the process table, and asks `TreeGrowth` how much the run has written. While no run is live, the watch
 * sleeps.
 *
 * Guarantees: A run that exceeded a limit is reported, then all its processes are ended by SIGKILL, and no others.
 * Before a run is ended for its memory, memory that its processes share is counted only once. If several runs share a
 * folder, the run that has written most is ended. Processes are found as `ProcessTree` finds them.
 *
 * Limitation: A run can exceed a limit by the amount that it can use in one second. Files in a tmpfs do not count as
 * memory, and only the disks of a run's folders count.
 */
import { Deferred, Effect, Fiber, Latch, Layer, type Scope } from "effect"
import * as os from "node:os"
import type { LimitsConfig } from "../../config/LimitsConfig.ts"
import { homeIn } from "../sandbox/ConfinedSpawn.ts"
import { within } from "../sandbox/PathContainment.ts"
import * as ProcessTable from "./ProcessTable.ts"
import type { Process } from "./ProcessTable.ts"
import { membersOf, ProcessTree, runIn } from "./ProcessTree.ts"
import * as ProcessUse from "./ProcessUse.ts"
import { type Limited, type Passed, RunLimits } from "./RunLimits.ts"
import * as TreeGrowth from "./TreeGrowth.ts"

const LOOK_EVERY = "1 second"
/** How much earlier than the clock a file's time can be, ms. */
const COARSE = 20
/**
 * Age in ticks. If an older process does not have agentd's mark, it never will, because it started its program long
 * ago.
 */
const SETTLED = 200
/** How many processes are read at the same time. Each read is a few short waits on the thread pool. */
const READERS = 8

interface Watched {
  readonly run: Limited
  readonly limits: LimitsConfig
  readonly passed: Deferred.Deferred<Passed>
  /** Start times of the run's processes, by pid. */
  readonly seen: Map<number, number>
  written: TreeGrowth.Written
}

/** The nice value that is nearest to a CPU weight in the config. A weight of 100 is an equal share. */
const niceOf = (weight: number): number =>
  Math.max(0, Math.min(19, Math.round(Math.log(100 / weight) / Math.log(1.25))))

class Watch {
  private readonly runs = new Set<Watched>()
  /** Old processes without agentd's mark: start times by pid. */
  private strangers = new Set<string>()
  private readonly options: Options
  private readonly tree: ProcessTree["Service"]
  private readonly awake = Latch.makeUnsafe(false)

  constructor(options: Options, tree: ProcessTree["Service"]) {
    this.options = options
    this.tree = tree
  }

  readonly passed = (run: Limited): Effect.Effect<Passed> => {
    const { agent, cwd, limits } = run
    if (limits === undefined) return Effect.never
    const home = agent === undefined ? cwd : homeIn(this.options.homes, agent, cwd)
    const folders = within(cwd, home) ? [cwd] : [cwd, home]
    // measured before the run has written anything
    return Effect.flatMap(TreeGrowth.fromNow(folders, COARSE), (written) =>
      Effect.acquireUseRelease(
        Effect.sync(() => {
          const watched: Watched = { run, limits, passed: Deferred.makeUnsafe<Passed>(), seen: new Map(), written }
          this.runs.add(watched)
          this.awake.openUnsafe()
          return watched
        }),
        (watched) => Deferred.await(watched.passed),
        (watched) =>
          Effect.sync(() => {
            this.runs.delete(watched)
            if (this.runs.size === 0) this.awake.closeUnsafe()
          })
      )
    )
  }

  /** Runs forever. If a check fails, the next check tries again. */
  readonly follow: Effect.Effect<never> = Effect.suspend(() =>
    this.awake.await.pipe(
      Effect.andThen(this.look),
      Effect.catchCause((cause) => Effect.logWarning("a check of the runs' limits failed", cause)),
      Effect.andThen(Effect.sleep(LOOK_EVERY)),
      Effect.forever
    )
  )

  private readonly look = Effect.gen({ self: this }, function* () {
    yield* this.find
    for (const watched of this.runs) {
      const passed = yield* passedBy([...watched.seen.keys()], watched.limits)
      if (passed !== undefined) yield* this.end(watched, passed)
    }
    for (const watched of this.runs) yield* this.lookAtDisk(watched)
  })

  /**
   * Finds the processes of the runs: those with a mark, those already known, and their relatives by parent, group or
   * session.
   */
  private readonly find = Effect.gen({ self: this }, function* () {
    const table = yield* ProcessTable.snapshot
    for (const watched of this.runs) gather(watched, table, [])
    const marked = yield* this.marked(table)
    for (const watched of this.runs) {
      const own = marked.get(watched.run.runId)
      if (own !== undefined) gather(watched, table, own)
    }
  })

  /**
   * Finds processes with a mark that are not yet known to belong to a run. Returns their pids by run id. Checks all
   * processes, because a run can be older than this watch, for example if an earlier daemon started it.
   */
  private readonly marked = Effect.fnUntraced({ self: this }, function* (this: Watch, table: ReadonlyArray<Process>) {
    const settled = ProcessTable.ticksNow() - SETTLED
    const kin = new Set([...this.runs].flatMap(({ seen }) => [...seen.keys()]))
    const byMark = new Map<string, ReadonlyArray<number>>()
    const strangers = new Set<string>()
    yield* Effect.forEach(
      table.filter(({ pid }) => !kin.has(pid)),
      Effect.fnUntraced({ self: this }, function* (this: Watch, { pid, start }: Process) {
        const key = `${pid}.${start}`
        const isKnown = this.strangers.has(key)
        const runId = isKnown ? undefined : runIn(yield* ProcessTable.environmentNow(pid), this.options.store)
        if (runId !== undefined) byMark.set(runId, [...(byMark.get(runId) ?? []), pid])
        else if (isKnown || start < settled) strangers.add(key)
      }),
      { concurrency: READERS, discard: true }
    )
    this.strangers = strangers
    return byMark
  })

  private readonly lookAtDisk = Effect.fnUntraced({ self: this }, function* (this: Watch, watched: Watched) {
    const { limits, seen } = watched
    const written = yield* TreeGrowth.again(watched.written, limits.disk, [...seen.keys()])
    watched.written = written
    if (written.bytes <= limits.disk) return
    // the data may have been written by a run that started since the last check
    yield* this.find
    const sharing = written.inFirst > limits.disk / 2 ? this.sharing(watched) : [watched]
    const writer = mostWritten(sharing)
    if (writer === undefined) return
    yield* Fiber.join(yield* this.end(writer, { limit: "disk", used: written.bytes, most: limits.disk }))
    // files of a run that was ended must not count for the other runs
    for (const other of sharing) other.written = yield* TreeGrowth.fromNow(other.written.folders)
  })

  /** Returns the live runs in the same folder, in a subfolder or in a parent folder. */
  private sharing({ run: { cwd } }: Watched): ReadonlyArray<Watched> {
    return [...this.runs].filter(({ run }) => within(cwd, run.cwd) || within(run.cwd, cwd))
  }

  /**
   * Ends a run. Reports the exceeded limit first, so that errors that the ending processes cause are not reported
   * instead.
   */
  private readonly end = Effect.fnUntraced({ self: this }, function* (this: Watch, watched: Watched, passed: Passed) {
    this.runs.delete(watched)
    yield* Deferred.succeed(watched.passed, passed)
    const quarry = { store: this.options.store, runId: watched.run.runId, seen: new Map(watched.seen) }
    // processes that survive SIGKILL are reported when the run itself ends
    return yield* Effect.forkChild(Effect.ignore(this.tree.terminate(quarry, 0)), { startImmediately: true })
  })
}

/** Updates the list of a run's processes, and sets the nice value of new ones. */
const gather = ({ limits, seen }: Watched, table: ReadonlyArray<Process>, marked: ReadonlyArray<number>): void => {
  const known = table.filter(({ pid, start }) => seen.get(pid) === start).map(({ pid }) => pid)
  const { members } = membersOf(table, [...known, ...marked], process.pid)
  const nice = niceOf(limits.cpuWeight)
  if (nice > 0) for (const { pid, start } of members) if (seen.get(pid) !== start) renice(pid, nice)
  seen.clear()
  for (const { pid, start } of members) seen.set(pid, start)
}

const renice = (pid: number, nice: number) => {
  try {
    os.setPriority(pid, nice)
  } catch {
    // the process has ended
  }
}

/** Returns the limit of tasks or memory that the processes together exceed; undefined if they exceed none. */
const passedBy = Effect.fnUntraced(function* (pids: ReadonlyArray<number>, limits: LimitsConfig) {
  // the processes of a fork bomb are too many to be measured one by one
  const uses = pids.length > limits.tasks ? [] : pids.map(ProcessUse.of)
  const tasks = uses.reduce((sum, use) => sum + use.tasks, 0) || pids.length
  if (tasks > limits.tasks) return { limit: "tasks", used: tasks, most: limits.tasks } satisfies Passed
  const estimate = uses.reduce((sum, use) => sum + use.estimate, 0)
  const memory = estimate > limits.memory ? yield* ProcessUse.memoryOf(pids) : estimate
  return memory > limits.memory ? ({ limit: "memory", used: memory, most: limits.memory } satisfies Passed) : undefined
})

/**
 * Of runs that share a folder, the one whose processes have written most: nothing else shows which run filled the
 * folder.
 */
const mostWritten = (runs: ReadonlyArray<Watched>): Watched | undefined => {
  const written = runs.map(({ seen }) => ProcessUse.writtenBy([...seen.keys()]))
  return runs[written.indexOf(Math.max(...written))]
}

export interface Options {
  /** Id of the store whose runs are checked: `AGENTD_STORE` in their environment. */
  readonly store: string
  /** Folder with the home folders of confined agents, because runs write there, too. */
  readonly homes: string
}

const HOW =
  "agentd watches its runs' memory, tasks and disk once a second, and ends one that passes a limit; the kernel holds none of them"

export const layer = (options: Options): Layer.Layer<never, never, ProcessTree> =>
  Layer.effect(
    RunLimits,
    Effect.gen(function* (): Effect.fn.Return<RunLimits, never, Scope.Scope | ProcessTree> {
      if (!ProcessTable.isAvailable())
        return {
          passed: () => Effect.never,
          held: false,
          how: "the limits of runs are not enforced: there is no /proc"
        }
      const watch = new Watch(options, yield* ProcessTree)
      yield* Effect.forkScoped(watch.follow)
      return { passed: watch.passed, held: true, how: HOW }
    })
  )
