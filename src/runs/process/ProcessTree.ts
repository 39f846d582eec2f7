/**
 * ProcessTree: finds and ends every process that belongs to a run.
 *
 * A process belongs to a run when any of four things says so:
 *   1. its environment carries the run's mark (`AGENTD_STORE` and `AGENTD_RUN`, both);
 *   2. its parent belongs to the run;
 *   3. its process group, or 4. its session belongs to the run: a member is in
 *      it, and its leader is a member too or is gone.
 * Applied until nothing new is found, so a process that left by `setsid` and double
 * fork is found by its mark, and its children without the mark by parent or session.
 * What was found once stays the run's until it is gone, whoever else of it ends first.
 *
 * Guarantees: a signal goes only to a process whose start time was confirmed at
 * that moment; never to this process, its ancestors, or their groups and sessions; what is ended
 * is stopped first, so that nothing that it starts meanwhile is missed;
 * `terminate` returns only when a search finds nothing, or fails and names what is left.
 *
 * What escapes all four: a process that has its environment cleared or hidden (setuid,
 * undumpable such as ssh-agent), sits in a session of its own, *and* whose parents
 * had ended before a search saw it; and work handed to a server outside the run
 * (docker, tmux, at, systemd-run). A cgroup holds those: see `wrap` in CommandBackend.
 *
 * Without /proc (not Linux) only the run's process group is known; `note` says so.
 */
import { Clock, Context, Duration, Effect, Layer, Schema } from "effect"
import * as Backoff from "../../core/supervision/Backoff.ts"
import * as ProcessTable from "./ProcessTable.ts"
import type { Process, ProcessId } from "./ProcessTable.ts"

/** The mark in the environment of a run's processes. A run id alone need only be unique within its store. */
export interface Mark {
  readonly store: string
  readonly runId: string
}

export const environmentOf = (mark: Mark) => ({ AGENTD_STORE: mark.store, AGENTD_RUN: mark.runId })

/** A run to look for; `root`, its first process and the leader of its group and session, where it is known. */
export interface Quarry extends Mark {
  readonly root?: ProcessId | undefined
  /** The pid of another process that begins runs, as this one does. */
  readonly starter?: number | undefined
  /** So many processes and threads the machine had begun before its first one; not known, and all there are are looked at. */
  readonly births?: number | undefined
  /** A process of the keeper's in the run's session, which has been told to end. */
  readonly anchor?: ProcessId | undefined
  /** Found processes, start times by pid: they stay the run's when the parents that showed them have ended. */
  readonly seen?: Map<number, number>
}

/** The processes of a run that nobody watches any more. */
export interface Orphan {
  readonly runId: string
  readonly processes: ReadonlyArray<Process>
}

/** SIGKILL did not end them: stuck in the kernel, or another user's. */
export class ProcessesSurvived extends Schema.TaggedError<ProcessesSurvived>()("ProcessesSurvived", {
  runId: Schema.String,
  pids: Schema.Array(Schema.Int),
  message: Schema.String,
  remedy: Schema.String
}) {}

/** A search that knows less than it should, and why. */
export class GroupOnly extends Schema.TaggedError<GroupOnly>()("GroupOnly", {
  message: Schema.String,
  remedy: Schema.String
}) {}

interface Found {
  readonly members: ReadonlyArray<Process>
  /** The groups that are the run's as a whole. */
  readonly groups: ReadonlySet<number>
}

/** The pids of this process and of its ancestors: no search may name them. */
const lineageOf = (table: ReadonlyMap<number, Process>, self: number): ReadonlySet<number> => {
  const pids = new Set<number>([0, 1])
  for (let pid = self; !pids.has(pid); pid = table.get(pid)?.parent ?? 0) pids.add(pid)
  return pids
}

/**
 * Pure: all that belong to the seeds by parent, group or session. `root` counts
 * although it has ended, as the leader that its group and session are named after,
 * unless its pid now names another process.
 */
export const membersOf = (
  table: ReadonlyArray<Process>,
  seeds: Iterable<number>,
  self: number,
  root?: ProcessId
): Found => {
  const byPid = new Map(table.map((process) => [process.pid, process]))
  const spared = lineageOf(byPid, self)
  const ours = new Set([...spared].flatMap((pid) => [byPid.get(pid)?.group ?? 0, byPid.get(pid)?.session ?? 0]))
  const members = new Set([...seeds].filter((pid) => byPid.has(pid) && !spared.has(pid)))
  const groups = new Set<number>()
  const sessions = new Set<number>()
  const leader = root === undefined ? undefined : byPid.get(root.pid)
  if (root !== undefined && !ours.has(root.pid) && (leader === undefined || leader.start === root.start)) {
    if (leader !== undefined && !spared.has(root.pid)) members.add(root.pid)
    groups.add(root.pid)
    sessions.add(root.pid)
  }
  const belongs = (leader: number) => !ours.has(leader) && (members.has(leader) || !byPid.has(leader))
  const size = () => members.size + groups.size + sessions.size
  for (let before = -1; before !== size();) {
    before = size()
    for (const { pid, parent, group, session } of table) {
      if (spared.has(pid)) continue
      if (members.has(parent) || groups.has(group) || sessions.has(session)) members.add(pid)
      if (!members.has(pid)) continue
      if (belongs(group)) groups.add(group)
      if (belongs(session)) sessions.add(session)
    }
  }
  return { members: table.filter(({ pid }) => members.has(pid)), groups }
}

/**
 * Pure: whether its session shows that a process is none of the run's. Only its leader can have begun it; one that is older
 * than the run, or was begun by one that begins runs, is another's.
 */
const isOther = (
  { pid, session }: Process,
  processOf: (pid: number) => Process | undefined,
  root: ProcessId,
  starters: ReadonlyArray<number | undefined>
): boolean => {
  const leader = processOf(session)
  if (leader === undefined || leader.pid === root.pid) return false
  const isOlder = (one: Process | undefined) => one !== undefined && one.start < root.start
  return (pid !== session && isOlder(leader)) || (starters.includes(leader.parent) && isOlder(processOf(leader.parent)))
}

/** The machine that the processes are on; a simulation has another one. */
export interface Machine {
  /** The pid of this process. */
  readonly self: number
  readonly snapshot: Effect.Effect<ReadonlyArray<Process>>
  /** `NAME=value` entries that a process was started with; none where they are not to be read. */
  readonly environment: (pid: number) => Effect.Effect<ReadonlyArray<string>>
  readonly isAlive: (id: ProcessId) => boolean
  /** Finds the living that may have been begun since a run's first process, before which `births` were; undefined where they may be any. */
  readonly since?: (root: ProcessId, births: number) => ReadonlyArray<Process> | undefined
  readonly process?: (pid: number) => Process | undefined
  /** Sends a signal to one process, or with a negative pid to a group; one that is gone is left alone. */
  readonly signal: (pid: number, signal: NodeJS.Signals) => void
}

const send: Machine["signal"] = (pid, signal) => {
  try {
    process.kill(pid, signal)
  } catch {
    // ESRCH: it ended first. EPERM: another user's; `terminate` reports it as a survivor.
  }
}

const here: Machine = {
  self: process.pid,
  snapshot: ProcessTable.snapshot,
  environment: ProcessTable.environment,
  isAlive: ProcessTable.isAlive,
  since: ({ pid }, births) => ProcessTable.since(pid, births),
  process: ProcessTable.find,
  signal: send
}

type Alive = (id: ProcessId) => boolean

interface Reach {
  readonly alive: Alive
  readonly send: Machine["signal"]
}

/**
 * Sends each a signal, by pid and never by group: many programs take a second SIGTERM
 * as "at once", and one may leave its group between the search and the signal.
 */
const signalEach = (processes: ReadonlyArray<Process>, signal: NodeJS.Signals, { alive, send }: Reach) =>
  Effect.sync(() => processes.filter(alive).forEach(({ pid }) => send(pid, signal)))

/** To whole groups too: what forks at that moment cannot slip through. */
const signalAll = ({ members, groups }: Found, signal: "SIGSTOP" | "SIGKILL", { alive, send }: Reach) =>
  Effect.sync(() => {
    for (const member of members.filter(alive)) {
      if (groups.has(member.group)) send(-member.group, signal)
      send(member.pid, signal)
    }
  })

/** Milliseconds on a clock that nobody sets. */
const now = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos / 1_000_000n))

const LOOKS: Backoff.Policy = { base: 5, factor: 2, cap: 200, jitter: 0 }

/**
 * Returns when none of them lives any more, at the deadline at the latest. Cheap: no
 * search, one `stat` each, and less often as time goes on. It needs no interrupt to
 * end, since finalizers cannot be interrupted.
 */
const untilGone = Effect.fnUntraced(function* (processes: ReadonlyArray<ProcessId>, deadline: number, alive: Alive) {
  for (let look = 1; processes.some(alive); look++) {
    const left = deadline - (yield* now)
    if (left <= 0) return
    yield* Effect.sleep(Math.min(Backoff.wait(LOOKS, look), left))
  }
})

/** How often SIGSTOP goes round before what is found is killed; a fork bomb needs a few. */
const STOP_ROUNDS = 10
/** How often SIGKILL goes round before what is left is called a survivor; a fork bomb needs several. */
const KILL_ROUNDS = 50
const KILL_WAIT = 200
/** How often, in ms, a tree that takes its time is searched for what it has started since. */
const SEARCH_AGAIN = 1000

export class ProcessTree extends Context.Service<
  ProcessTree,
  {
    /** Set where only process groups can be found. */
    readonly note: GroupOnly | undefined
    /** Every live process of the run. */
    readonly find: (quarry: Quarry) => Effect.Effect<ReadonlyArray<Process>>
    /** SIGKILL to all of it, once, now. It is stopped before, so that none that it starts meanwhile is missed. */
    readonly kill: (quarry: Quarry) => Effect.Effect<void>
    /** SIGTERM to all of it, stopped before it as by `kill`; the grace, then SIGKILL until nothing is left. */
    readonly terminate: (quarry: Quarry, grace: Duration.Input) => Effect.Effect<void, ProcessesSurvived>
    /** Finds the orphans of this store's runs: processes with its mark whose run is not one of `alive`. */
    readonly orphans: (store: string, alive: ReadonlySet<string>) => Effect.Effect<ReadonlyArray<Orphan>>
  }
>()("agentd/backends/ProcessTree") {
  static readonly layer = Layer.sync(ProcessTree, () => (ProcessTable.isAvailable() ? over(here) : viaGroup))

  /** Of a machine whose processes can all be seen. */
  static readonly over = (machine: Machine): ProcessTree["Service"] => over(machine)
}

/** `isOver`: sees quickly, where it can, that nothing is left. */
const endings = (
  find: (quarry: Quarry) => Effect.Effect<Found>,
  reach: Reach,
  isOver: (quarry: Quarry) => Effect.Effect<boolean> = () => Effect.succeed(false)
) => {
  const { alive } = reach
  /**
   * Stops all of it, until a search finds nothing new. What is stopped starts nothing and is still
   * there as a parent: what it has started since the last search is found by it, mark or none.
   */
  const freeze = Effect.fnUntraced(function* (quarry: Quarry) {
    const stopped = new Set<string>()
    let found = yield* find(quarry)
    for (let round = 0; round < STOP_ROUNDS; round++) {
      const fresh = found.members.filter(({ pid, start }) => !stopped.has(`${pid}.${start}`))
      if (fresh.length === 0) break
      yield* signalAll({ ...found, members: fresh }, "SIGSTOP", reach)
      for (const { pid, start } of fresh) stopped.add(`${pid}.${start}`)
      found = yield* find(quarry)
    }
    return found
  })

  /**
   * SIGTERM once to each, until a search finds none (true) or time is up. Of those that
   * appear later only orphans are asked: what a member starts now may be how it ends in order.
   */
  const ask = Effect.fnUntraced(function* (quarry: Quarry, deadline: number) {
    const asked = new Set<string>()
    while ((yield* now) < deadline) {
      // the first to end would leave what it has started since the search
      const { members } = yield* asked.size === 0 ? freeze(quarry) : find(quarry)
      if (members.length === 0) return true
      const present = new Set(asked.size === 0 ? [] : members.map(({ pid }) => pid))
      const fresh = members.filter(({ pid, start, parent }) => !asked.has(`${pid}.${start}`) && !present.has(parent))
      yield* signalEach(fresh, "SIGTERM", reach)
      // a stopped process takes its SIGTERM only when it goes on
      yield* signalEach(fresh, "SIGCONT", reach)
      for (const { pid, start } of fresh) asked.add(`${pid}.${start}`)
      yield* untilGone(members, Math.min(deadline, (yield* now) + SEARCH_AGAIN), alive)
    }
    return false
  })

  const force = Effect.fnUntraced(function* (quarry: Quarry) {
    for (let round = 0; round < KILL_ROUNDS; round++) {
      const found = yield* freeze(quarry)
      if (found.members.length === 0) return
      yield* signalAll(found, "SIGKILL", reach)
      yield* untilGone(found.members, (yield* now) + KILL_WAIT, alive)
    }
    const { members } = yield* find(quarry)
    if (members.length === 0) return
    const pids = members.map(({ pid }) => pid)
    return yield* new ProcessesSurvived({
      runId: quarry.runId,
      pids,
      message: `processes of run ${quarry.runId} outlived SIGKILL: ${pids.join(", ")}`,
      remedy:
        `see "ps -o pid,user,stat,wchan,args -p ${pids.join(",")}": another user's process must be ended ` +
        "by that user; state D waits for a device or a network disk"
    })
  })

  return {
    find: (quarry: Quarry) => Effect.map(find(quarry), ({ members }) => members),
    kill: (quarry: Quarry) => Effect.flatMap(freeze(quarry), (found) => signalAll(found, "SIGKILL", reach)),
    terminate: Effect.fnUntraced(function* (whom: Quarry, grace: Duration.Input) {
      if (yield* isOver(whom)) return
      const deadline = (yield* now) + Duration.toMillis(grace)
      const quarry = { seen: new Map<number, number>(), ...whom }
      if (!(yield* ask(quarry, deadline))) yield* force(quarry)
    })
  }
}

/** The run of this store whose mark an environment bears. */
export const runIn = (environment: ReadonlyArray<string>, store: string): string | undefined =>
  environment.includes(`AGENTD_STORE=${store}`)
    ? environment.find((entry) => entry.startsWith("AGENTD_RUN="))?.slice("AGENTD_RUN=".length)
    : undefined

const entries = (mark: Mark) => Object.entries(environmentOf(mark)).map(([name, value]) => `${name}=${value}`)

/** At once: each is a few short waits on the thread pool. */
const READERS = 8

/** Where a table of all processes can be read. */
const over = ({ environment, isAlive, process, self, signal, since, snapshot }: Machine): ProcessTree["Service"] => {
  const search = Effect.fnUntraced(function* (table: ReadonlyArray<Process>, quarry: Quarry) {
    const marks = entries(quarry)
    const { root, seen, starter } = quarry
    const known = table.filter(({ pid, start }) => seen?.get(pid) === start).map(({ pid }) => pid)
    const kin = membersOf(table, known, self, root)
    const isKin = new Set(kin.members.map(({ pid }) => pid))
    const byPid = new Map(table.map((process) => [process.pid, process]))
    const processOf = (pid: number) => byPid.get(pid) ?? process?.(pid)
    // to ask takes its time: what is older than the run's first process is not of the run, and of its kin none is asked
    const mayBe = (one: Process) =>
      !isKin.has(one.pid) &&
      (root === undefined || (one.start >= root.start && !isOther(one, processOf, root, [self, starter])))
    const marked = yield* Effect.filter(
      table.filter(mayBe),
      ({ pid }) => Effect.map(environment(pid), (env) => marks.every((mark) => env.includes(mark))),
      { concurrency: READERS }
    )
    return marked.length === 0 ? kin : membersOf(table, [...known, ...marked.map(({ pid }) => pid)], self, root)
  })

  const find = Effect.fnUntraced(function* (quarry: Quarry) {
    const found = yield* search(yield* snapshot, quarry)
    const { seen } = quarry
    seen?.clear()
    for (const { pid, start } of found.members) seen?.set(pid, start)
    return found
  })

  /**
   * Whether nothing of a run is left, by a look at what has begun since its first process: a process of it, the kin of one
   * and the leaders of their groups and sessions are all among that. Where there is something, `find` says what.
   */
  const isOver = Effect.fnUntraced(function* (quarry: Quarry) {
    const { anchor, births, root } = quarry
    const table = root === undefined || births === undefined ? undefined : since?.(root, births)
    if (table === undefined) return false
    const { members } = yield* search(table, quarry)
    return members.every(({ pid, start }) => pid === anchor?.pid && start === anchor.start)
  })

  const orphans = Effect.fnUntraced(function* (store: string, alive: ReadonlySet<string>) {
    const table = yield* snapshot
    const seeds = new Map<string, Array<number>>()
    const look = Effect.fnUntraced(function* ({ pid }: Process) {
      const runId = runIn(yield* environment(pid), store)
      if (runId === undefined || alive.has(runId)) return
      seeds.set(runId, [...(seeds.get(runId) ?? []), pid])
    })
    yield* Effect.forEach(table, look, { concurrency: READERS, discard: true })
    return [...seeds]
      .map(([runId, pids]) => ({ runId, processes: membersOf(table, pids, self).members }))
      .filter(({ processes }) => processes.length > 0)
  })

  return { note: undefined, ...endings(find, { alive: isAlive, send: signal }, isOver), orphans }
}

/** Elsewhere: the group that the root leads is all that can be asked about. It stands as one member, its pid negative. */
const viaGroup = ((): ProcessTree["Service"] => {
  const lives: Alive = ({ pid }) => {
    try {
      return process.kill(pid, 0)
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === "EPERM"
    }
  }
  const find = ({ root }: Quarry) =>
    Effect.sync((): Found => {
      if (root === undefined) return { members: [], groups: new Set() }
      const group = { pid: -root.pid, start: 0, parent: 0, group: root.pid, session: root.pid }
      return { members: lives(group) ? [group] : [], groups: new Set() }
    })
  return {
    note: new GroupOnly({
      message: "this system has no /proc: only a run's process group can be found and ended",
      remedy: "run agentd on Linux, or see to it that what your agents start stays in its process group"
    }),
    ...endings(find, { alive: lives, send }),
    orphans: () => Effect.succeed([])
  }
})()
