/**
 * RunWatch: one watch for the limits of all runs that are alive, for machines on which the kernel holds none.
 *
 * Four times a second it takes the machine's own figures (tasks, memory that is left, the disk in use), which costs
 * some 100 µs. Only where one of them has moved by half of what a run still has, or two seconds after the last time,
 * it looks at the processes of the runs; a folder is gone through only where its disk has grown by half of
 * what is left, and else so seldom that it takes 1 % of the time at most. Without a run it sleeps, and costs nothing.
 *
 * Guarantees: a run that passed a limit is told of, then every process of it is ended by SIGKILL, of no other; memory
 * that its processes share counts once before it is ended for it; of runs that share a folder the one that has
 * written most is ended; processes are found as `ProcessTree` finds them.
 *
 * What it is not: the kernel. A run may pass a limit by what it can take in a quarter of a second. It counts no
 * memory of files in a tmpfs, and no disk but that of a run's folders.
 */
import { Clock, Deferred, Effect, Fiber, Latch, Layer, type Scope } from "effect"
import * as os from "node:os"
import * as path from "node:path"
import * as Monotonic from "../../core/supervision/Monotonic.ts"
import type { LimitsConfig } from "../../config/LimitsConfig.ts"
import { homeIn } from "../sandbox/Enclosure.ts"
import * as ProcessTable from "./ProcessTable.ts"
import type { Process } from "./ProcessTable.ts"
import { membersOf, ProcessTree, runIn } from "./ProcessTree.ts"
import * as ProcessUse from "./ProcessUse.ts"
import { type Limited, type Passed, RunLimits } from "./RunLimits.ts"
import * as TreeGrowth from "./TreeGrowth.ts"

/** Between two looks at the machine. */
const TICK = "250 millis"
/** Between two looks at the processes of the runs, ms. */
const LOOK_EVERY = 2_000
/** Between two ways through a folder, ms; and so many times the time that the last one took. */
const WALK_EVERY = 30_000
const WALK_SHARE = 100
/** A file's time may be so much before the clock's, ms. */
const COARSE = 20
/** Part of a limit below which no growth of the disk is worth a walk. */
const LEAST_GROWTH = 1 / 32
/** A process that is older, in ticks, and has not our mark, will not have it: it began its program long ago. */
const SETTLED = 200
/** At once: each is a few short waits on the thread pool. */
const READERS = 8

interface Disk {
  readonly device: number
  readonly folders: ReadonlyArray<string>
  /** In use when the run began, and when its folders were gone through last. */
  readonly base: number
  walked: number
}

interface Watched {
  readonly run: Limited
  readonly limits: LimitsConfig
  readonly passed: Deferred.Deferred<Passed>
  /** ms since the epoch */
  began: number
  /** The processes of the run, start times by pid. */
  readonly seen: Map<number, number>
  /** The run's use at the last look. */
  memory: number
  tasks: number
  disk: number
  /** The part of it that is in its workspace, which others may share. */
  inFolder: number
  disks: ReadonlyArray<Disk>
  walkedAt: number
  walkTook: number
  isLooked: boolean
}

/** For an agent's config: 100 is an equal share. The nice value that comes nearest. */
export const niceOf = (weight: number): number =>
  Math.max(0, Math.min(19, Math.round(Math.log(100 / weight) / Math.log(1.25))))

class Watch {
  private readonly runs = new Set<Watched>()
  /** Processes that are of no run, start times by pid. */
  private strangers = new Map<number, number>()
  private machine = ProcessUse.machine()
  private lookedAt = Number.NEGATIVE_INFINITY
  private readonly store: string
  private readonly homes: string
  private readonly tree: ProcessTree["Service"]
  private readonly awake = Latch.makeUnsafe(false)

  constructor(options: Options, tree: ProcessTree["Service"]) {
    this.store = options.store
    this.homes = options.homes
    this.tree = tree
  }

  readonly passed = (run: Limited): Effect.Effect<Passed> => {
    const { limits } = run
    if (limits === undefined) return Effect.never
    return Effect.acquireUseRelease(
      Effect.map(Effect.all([Clock.currentTimeMillis, Monotonic.now]), ([began, now]) => {
        const watched: Watched = {
          run,
          limits,
          passed: Deferred.makeUnsafe<Passed>(),
          began: began - COARSE,
          seen: new Map(),
          memory: 0,
          tasks: 0,
          disk: 0,
          inFolder: 0,
          disks: [],
          walkedAt: now,
          walkTook: 0,
          isLooked: false
        }
        this.runs.add(watched)
        this.awake.openUnsafe()
        return watched
      }),
      (watched) =>
        // before it has written anything
        Effect.map(this.disksOf(run), (disks) => (watched.disks = disks)).pipe(
          Effect.andThen(Deferred.await(watched.passed))
        ),
      (watched) =>
        Effect.sync(() => {
          this.runs.delete(watched)
          if (this.runs.size === 0) this.awake.closeUnsafe()
        })
    )
  }

  private disksOf({ agent, cwd }: Limited): Effect.Effect<ReadonlyArray<Disk>> {
    return disksOf(agent === undefined ? [cwd] : [cwd, homeIn(this.homes, agent, cwd)])
  }

  /** Goes on for ever; a look that fails is the next one's affair. */
  readonly follow: Effect.Effect<never> = Effect.suspend(() =>
    this.awake.await.pipe(
      Effect.andThen(this.tick),
      Effect.catchCause((cause) => Effect.logWarning("the watch of the runs' limits failed in a look", cause)),
      Effect.andThen(Effect.sleep(TICK)),
      Effect.forever
    )
  )

  private readonly tick = Effect.gen({ self: this }, function* () {
    const now = yield* Monotonic.now
    if (this.isWorthALook(now)) yield* this.look(now)
    for (const watched of this.runs) yield* this.lookAtDisk(watched, now)
  })

  /** Whether a run can have passed a limit since the last look, as far as the machine as a whole tells. */
  private isWorthALook(now: number): boolean {
    const { left, tasks } = ProcessUse.machine()
    if (now - this.lookedAt >= LOOK_EVERY) return true
    return [...this.runs].some(
      (run) =>
        !run.isLooked ||
        tasks - this.machine.tasks > (run.limits.tasks - run.tasks) / 2 ||
        this.machine.left - left > (run.limits.memory - run.memory) / 2
    )
  }

  private readonly look = Effect.fnUntraced({ self: this }, function* (this: Watch, now: number) {
    this.machine = ProcessUse.machine()
    this.lookedAt = now
    const table = yield* ProcessTable.snapshot
    for (const watched of this.runs) this.gather(watched, table, [])
    const marked = yield* this.marked(table)
    for (const watched of this.runs) {
      const own = marked.get(watched.run.runId)
      if (own !== undefined) this.gather(watched, table, own)
      yield* this.lookAt(watched, [...watched.seen.keys()])
    }
  })

  /**
   * Pids by the run whose mark they bear, of the processes that are nobody's kin yet: of all there are, since a run may
   * have begun before its watch, under an earlier daemon, too.
   */
  private readonly marked = Effect.fnUntraced({ self: this }, function* (this: Watch, table: ReadonlyArray<Process>) {
    const settled = ProcessUse.uptime() - SETTLED
    const byMark = new Map<string, ReadonlyArray<number>>()
    const strangers = new Map<number, number>()
    const isNew = ({ pid, start }: Process) => {
      if (this.strangers.get(pid) === start) strangers.set(pid, start)
      return !strangers.has(pid) && ![...this.runs].some(({ seen }) => seen.has(pid))
    }
    yield* Effect.forEach(
      table.filter(isNew),
      Effect.fnUntraced({ self: this }, function* (this: Watch, { pid, start }: Process) {
        const runId = runIn(yield* ProcessTable.environmentNow(pid), this.store)
        if (runId !== undefined) byMark.set(runId, [...(byMark.get(runId) ?? []), pid])
        else if (start < settled) strangers.set(pid, start)
      }),
      { concurrency: READERS, discard: true }
    )
    this.strangers = strangers
    return byMark
  })

  /** Takes up the processes of a run: those that are marked, those known, and their kin. */
  private gather({ limits, seen }: Watched, table: ReadonlyArray<Process>, marked: ReadonlyArray<number>): void {
    const known = table.filter(({ pid, start }) => seen.get(pid) === start).map(({ pid }) => pid)
    const { members } = membersOf(table, [...known, ...marked], process.pid)
    const nice = niceOf(limits.cpuWeight)
    if (nice > 0) for (const { pid, start } of members) if (seen.get(pid) !== start) renice(pid, nice)
    seen.clear()
    for (const { pid, start } of members) seen.set(pid, start)
  }

  private readonly lookAt = Effect.fnUntraced(
    { self: this },
    function* (this: Watch, watched: Watched, pids: ReadonlyArray<number>) {
      const { limits } = watched
      watched.isLooked = true
      watched.tasks = pids.length
      let estimate = 0
      // a bomb is not counted out
      if (pids.length <= limits.tasks) {
        const uses = pids.map(ProcessUse.of)
        watched.tasks = uses.reduce((sum, { tasks }) => sum + tasks, 0)
        estimate = uses.reduce((sum, use) => sum + use.estimate, 0)
      }
      if (watched.tasks > limits.tasks) {
        return yield* this.end(watched, { limit: "tasks", used: watched.tasks, most: limits.tasks })
      }
      watched.memory = estimate > limits.memory ? yield* ProcessUse.memoryOf(pids) : estimate
      if (watched.memory > limits.memory) {
        yield* this.end(watched, { limit: "memory", used: watched.memory, most: limits.memory })
      }
    }
  )

  private readonly lookAtDisk = Effect.fnUntraced(
    { self: this },
    function* (this: Watch, watched: Watched, now: number) {
      let [growth, fresh] = [0, 0]
      for (const disk of watched.disks) {
        const used = (yield* diskUnder(disk.folders[0]!))?.used ?? disk.base
        growth += Math.max(0, used - disk.base)
        fresh += Math.max(0, used - disk.walked)
      }
      const { limits, walkTook, walkedAt } = watched
      const room = Math.max((limits.disk - watched.disk) / 2, limits.disk * LEAST_GROWTH)
      if (fresh < room && now - walkedAt < Math.max(WALK_EVERY, WALK_SHARE * walkTook)) return
      yield* this.walk(watched, growth)
      if (watched.disk <= limits.disk) return
      // who writes now may have begun since the last look
      yield* this.look(now)
      const sharing = watched.inFolder > limits.disk / 2 ? this.sharing(watched) : [watched]
      const writer = mostWritten(sharing)
      if (writer === undefined) return
      yield* Fiber.join(yield* this.end(writer, { limit: "disk", used: watched.disk, most: limits.disk }))
      // what it left is not theirs
      for (const other of sharing) yield* this.beginAnew(other)
    }
  )

  private readonly walk = Effect.fnUntraced({ self: this }, function* (this: Watch, watched: Watched, growth: number) {
    const begun = yield* Monotonic.now
    let [made, changed] = [ProcessUse.namelessOf([...watched.seen.keys()]), 0]
    for (const disk of watched.disks) {
      disk.walked = (yield* diskUnder(disk.folders[0]!))?.used ?? disk.base
      for (const folder of disk.folders) {
        const grown = yield* TreeGrowth.measure(folder, watched.began, watched.limits.disk)
        made += grown.made
        changed += grown.changed
        if (folder === watched.run.cwd) watched.inFolder = grown.made + Math.min(grown.changed, growth)
      }
    }
    // of an older file nobody knows how long it was: it cannot have grown by more than its disk has
    watched.disk = made + Math.min(changed, growth)
    watched.walkedAt = yield* Monotonic.now
    watched.walkTook = watched.walkedAt - begun
  })

  /** The runs that are alive and have the folder of this one, or one in it or around it. */
  private sharing({ run: { cwd } }: Watched): ReadonlyArray<Watched> {
    return [...this.runs].filter(({ run }) => isWithin(cwd, run.cwd) || isWithin(run.cwd, cwd))
  }

  /** Counts what is written from now on. */
  private readonly beginAnew = Effect.fnUntraced({ self: this }, function* (this: Watch, watched: Watched) {
    watched.began = yield* Clock.currentTimeMillis
    watched.disk = 0
    watched.disks = yield* this.disksOf(watched.run)
  })

  /** Tells first: what its processes say of their end is then no news. */
  private readonly end = Effect.fnUntraced({ self: this }, function* (this: Watch, watched: Watched, passed: Passed) {
    const { run, seen } = watched
    this.runs.delete(watched)
    yield* Deferred.succeed(watched.passed, passed)
    const quarry = { store: this.store, runId: run.runId, seen: new Map(seen) }
    // what outlives SIGKILL is told by the end of the run itself
    return yield* Effect.forkChild(Effect.ignore(this.tree.terminate(quarry, 0)), { startImmediately: true })
  })
}

/** The one whose processes have written most: of runs that share a folder nothing else tells who filled it. */
const mostWritten = (runs: ReadonlyArray<Watched>): Watched | undefined => {
  const written = runs.map(({ seen }) => ProcessUse.writtenBy([...seen.keys()]))
  return runs[written.indexOf(Math.max(...written))]
}

const isWithin = (folder: string, other: string): boolean => other === folder || other.startsWith(`${folder}/`)

const renice = (pid: number, nice: number) => {
  try {
    os.setPriority(pid, nice)
  } catch {
    // it has ended
  }
}

/** The folder, or the nearest one above it that is there. */
const diskUnder = (folder: string): ReturnType<typeof ProcessUse.diskOf> =>
  Effect.flatMap(ProcessUse.diskOf(folder), (disk) =>
    disk !== undefined || folder === path.dirname(folder) ? Effect.succeed(disk) : diskUnder(path.dirname(folder))
  )

/** The disks that those folders are on, or will be; of nested ones the outer. */
const disksOf = Effect.fnUntraced(function* (folders: ReadonlyArray<string>) {
  const outer = folders.filter((one) => !folders.some((other) => other !== one && isWithin(other, one)))
  const disks = new Map<number, Disk>()
  for (const folder of outer) {
    const disk = yield* diskUnder(folder)
    if (disk === undefined) continue
    const before = disks.get(disk.device)
    const all = [...(before?.folders ?? []), folder]
    disks.set(disk.device, { device: disk.device, folders: all, base: disk.used, walked: disk.used })
  }
  return [...disks.values()]
})

export interface Options {
  /** The store whose runs these are: `AGENTD_STORE` in their environment. */
  readonly store: string
  /** The folder of the homes that confined agents have: a run writes there, too. */
  readonly homes: string
}

const HOW =
  "agentd watches its runs' memory, tasks and disk four times a second, and ends one that passes a limit; the kernel holds none of them"

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
