/**
 * RunWatch: ends a run that uses more of the machine than its limits. It looks at all living runs once a second, also where
 * the kernel holds limits of its own.
 *
 * A look reads the process table, and asks `TreeGrowth` what the run has written. While no run lives it sleeps.
 *
 * Guarantees: a run that passed a limit is reported, then all its processes are ended by SIGKILL, and no others; memory
 * that its processes share counts once before it is ended for it; of runs that share a folder the one that has
 * written most is ended; processes are found as `ProcessTree` finds them.
 *
 * Limit: a run may pass a limit by what it can take in a second. Files in a tmpfs do not count as memory, and no disk
 * counts but that of a run's folders.
 */
import { Deferred, Effect, Fiber, Latch, Layer, type Scope } from "effect"
import * as os from "node:os"
import type { LimitsConfig } from "../../config/LimitsConfig.ts"
import { homeIn } from "../sandbox/Enclosure.ts"
import { within } from "../sandbox/PathContainment.ts"
import * as ProcessTable from "./ProcessTable.ts"
import type { Process } from "./ProcessTable.ts"
import { membersOf, ProcessTree, runIn } from "./ProcessTree.ts"
import * as ProcessUse from "./ProcessUse.ts"
import { type Limited, type Passed, RunLimits } from "./RunLimits.ts"
import * as TreeGrowth from "./TreeGrowth.ts"

/** Between two looks. */
const LOOK_EVERY = "1 second"
/** A file's time may be before the clock's by this, ms. */
const COARSE = 20
/** A process that is older, in ticks, and has not our mark, will not have it: it began its program long ago. */
const SETTLED = 200
/** At once: each is a few short waits on the thread pool. */
const READERS = 8

interface Watched {
  readonly run: Limited
  readonly limits: LimitsConfig
  readonly passed: Deferred.Deferred<Passed>
  /** The processes of the run, start times by pid. */
  readonly seen: Map<number, number>
  written: TreeGrowth.Written
}

/** For an agent's config: 100 is an equal share. The nice value that comes nearest. */
const niceOf = (weight: number): number =>
  Math.max(0, Math.min(19, Math.round(Math.log(100 / weight) / Math.log(1.25))))

class Watch {
  private readonly runs = new Set<Watched>()
  /** Old processes without our mark, by pid and start time. */
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
    // before it has written anything
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

  /** Goes on for ever; a look that fails is the next one's affair. */
  readonly follow: Effect.Effect<never> = Effect.suspend(() =>
    this.awake.await.pipe(
      Effect.andThen(this.look),
      Effect.catchCause((cause) => Effect.logWarning("the watch of the runs' limits failed in a look", cause)),
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

  /** Finds the processes of the runs: those that carry a mark, those known, and their kin. */
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
   * Pids by the run whose mark they carry, of the processes that are nobody's kin yet: of all there are, since a run may
   * have begun before its watch, under an earlier daemon, too.
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
    // the run that writes now may have begun since the last look
    yield* this.find
    const sharing = written.inFirst > limits.disk / 2 ? this.sharing(watched) : [watched]
    const writer = mostWritten(sharing)
    if (writer === undefined) return
    yield* Fiber.join(yield* this.end(writer, { limit: "disk", used: written.bytes, most: limits.disk }))
    // what it left is not theirs
    for (const other of sharing) other.written = yield* TreeGrowth.fromNow(other.written.folders)
  })

  /** The living runs that have the folder of this one, or one in it or around it. */
  private sharing({ run: { cwd } }: Watched): ReadonlyArray<Watched> {
    return [...this.runs].filter(({ run }) => within(cwd, run.cwd) || within(run.cwd, cwd))
  }

  /** Reports first: what its processes then say of their end is no news. */
  private readonly end = Effect.fnUntraced({ self: this }, function* (this: Watch, watched: Watched, passed: Passed) {
    this.runs.delete(watched)
    yield* Deferred.succeed(watched.passed, passed)
    const quarry = { store: this.options.store, runId: watched.run.runId, seen: new Map(watched.seen) }
    // what outlives SIGKILL is reported by the end of the run itself
    return yield* Effect.forkChild(Effect.ignore(this.tree.terminate(quarry, 0)), { startImmediately: true })
  })
}

/** Takes up the processes of a run. */
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
    // it has ended
  }
}

/** The limit of tasks or memory that the processes pass together. */
const passedBy = Effect.fnUntraced(function* (pids: ReadonlyArray<number>, limits: LimitsConfig) {
  // a bomb is not counted out
  const uses = pids.length > limits.tasks ? [] : pids.map(ProcessUse.of)
  const tasks = uses.reduce((sum, use) => sum + use.tasks, 0) || pids.length
  if (tasks > limits.tasks) return { limit: "tasks", used: tasks, most: limits.tasks } satisfies Passed
  const estimate = uses.reduce((sum, use) => sum + use.estimate, 0)
  const memory = estimate > limits.memory ? yield* ProcessUse.memoryOf(pids) : estimate
  return memory > limits.memory ? ({ limit: "memory", used: memory, most: limits.memory } satisfies Passed) : undefined
})

/** The one whose processes have written most: of runs that share a folder nothing else shows who filled it. */
const mostWritten = (runs: ReadonlyArray<Watched>): Watched | undefined => {
  const written = runs.map(({ seen }) => ProcessUse.writtenBy([...seen.keys()]))
  return runs[written.indexOf(Math.max(...written))]
}

export interface Options {
  /** The store whose runs these are: `AGENTD_STORE` in their environment. */
  readonly store: string
  /** The folder of the homes that confined agents have: a run writes there, too. */
  readonly homes: string
}

const HOW =
  "agentd watches its runs' memory, tasks and disk once a second, and ends one that passes a limit; the kernel holds none of them"

export const layer = (options: Options): Layer.Layer<never, never, ProcessTree> =>
  Layer.effect(
    RunLimits,
    Effect.gen(function* (): Effect.fn.Return<RunLimits, never, Scope.Scope | ProcessTree> {
      if (!ProcessTable.isAvailable())
        return { passed: () => Effect.never, held: false, how: "nothing holds the limits of runs: there is no /proc" }
      const watch = new Watch(options, yield* ProcessTree)
      yield* Effect.forkScoped(watch.follow)
      return { passed: watch.passed, held: true, how: HOW }
    })
  )
