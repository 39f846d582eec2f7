/**
 * ProcessTree: finds and ends every process that belongs to a run.
 *
 * A process belongs to a run if any of these is true:
 *   1. its environment has the run's mark (both `AGENTD_STORE` and `AGENTD_RUN`);
 *   2. its parent belongs to the run;
 *   3. its process group, or 4. its session belongs to the run: a process of the run is in it, and its leader is a
 * process of the run, too, or has ended.
 *
 * The rules are applied until no new process is found. A process that left by `setsid` and double fork is therefore
 * found by its mark, and its children without the mark by their parent or session. A process that was found once
 * remains part of the run until it ends, even if its relatives end first.
 *
 * Guarantees: A signal is sent only to a process whose start time was checked immediately before. No signal is sent to
 * this process, its ancestors, or their groups and sessions. Processes are stopped before they are ended, so that no
 * new child is missed. `terminate` returns only when a search finds no process, or fails and names the remaining
 * processes.
 *
 * All four rules miss a process if three things are true: its environment is cleared or hidden (setuid, undumpable such
 * as ssh-agent), it has its own session, *and* its parents had ended before a search saw it. They also miss processes
 * that a server outside the run starts (docker, tmux, at, systemd-run). A cgroup contains such processes: see `wrap` in
 * CommandBackend.
 *
 * Without /proc (not Linux) only the run's process group is known; `note` says so.
 */
import { Clock, Context, Duration, Effect, Layer, Schema } from "effect"
import * as Backoff from "../../core/supervision/Backoff.ts"
import * as ProcessTable from "./ProcessTable.ts"
import type { Process, ProcessId } from "./ProcessTable.ts"

/** The mark: two environment variables of a run's processes. A run id is unique only within its store. */
export interface Mark {
  readonly store: string
  readonly runId: string
}

export const environmentOf = (mark: Mark) => ({ AGENTD_STORE: mark.store, AGENTD_RUN: mark.runId })

/**
 * A run whose processes are searched. `root`: the run's first process, if known. Its pid is also the id of the run's
 * group and session.
 */
export interface Quarry extends Mark {
  readonly root?: ProcessId | undefined
  /** Pid of another process that starts runs, like this process. */
  readonly starter?: number | undefined
  /**
   * How many processes and threads the machine had started before the run's first process. If unknown, all processes
   * are searched.
   */
  readonly births?: number | undefined
  /** A process in the run's session that belongs to the keeper, which has told it to end. */
  readonly anchor?: ProcessId | undefined
  /**
   * Start times of processes that were found, by pid. These processes remain part of the run after their parents have
   * ended.
   */
  readonly seen?: Map<number, number>
}

/** The processes of a run that is no longer watched. */
export interface Orphan {
  readonly runId: string
  readonly processes: ReadonlyArray<Process>
}

/** SIGKILL did not end these processes: they are stuck in the kernel, or belong to another user. */
export class ProcessesSurvived extends Schema.TaggedError<ProcessesSurvived>()("ProcessesSurvived", {
  runId: Schema.String,
  pids: Schema.Array(Schema.Int),
  message: Schema.String,
  remedy: Schema.String
}) {}

/** Reports that the search is limited to process groups, and why. */
export class GroupOnly extends Schema.TaggedError<GroupOnly>()("GroupOnly", {
  message: Schema.String,
  remedy: Schema.String
}) {}

interface Found {
  readonly members: ReadonlyArray<Process>
  /** Process groups that belong to the run as a whole. */
  readonly groups: ReadonlySet<number>
}

/** The pids of this process and its ancestors, which no search may return. */
const lineageOf = (table: ReadonlyMap<number, Process>, self: number): ReadonlySet<number> => {
  const pids = new Set<number>([0, 1])
  for (let pid = self; !pids.has(pid); pid = table.get(pid)?.parent ?? 0) pids.add(pid)
  return pids
}

/**
 * Finds all processes that belong to the given ones by parent, group or session. `root` is used even after it has
 * ended, because its group and session have its pid, but not if another process has its pid now. Pure.
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
 * Whether the session of a process proves that the process does not belong to the run: the session's leader is older
 * than the run, or was started by a process that starts runs. Pure.
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

/** The machine on which the processes run. A simulation provides its own. */
export interface Machine {
  /** Pid of this process. */
  readonly self: number
  readonly snapshot: Effect.Effect<ReadonlyArray<Process>>
  /** The environment with which a process was started, as `NAME=value` entries. Empty if it cannot be read. */
  readonly environment: (pid: number) => Effect.Effect<ReadonlyArray<string>>
  readonly isAlive: (id: ProcessId) => boolean
  /**
   * Live processes that may have started since the run's first process. `births`: number of processes that were started
   * before it. Undefined if the list cannot be limited to these.
   */
  readonly since?: (root: ProcessId, births: number) => ReadonlyArray<Process> | undefined
  readonly process?: (pid: number) => Process | undefined
  /** Sends a signal to one process, or with a negative pid to a group. Does nothing if the process or group is gone. */
  readonly signal: (pid: number, signal: NodeJS.Signals) => void
}

const send: Machine["signal"] = (pid, signal) => {
  try {
    process.kill(pid, signal)
  } catch {
    // ESRCH: the process has already ended. EPERM: it belongs to another user, and `terminate` reports it as a
    // survivor.
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
 * Sends a signal to each process by its pid, never to a group. Many programs exit immediately at a second SIGTERM, and
 * a process can leave its group between the search and the signal.
 */
const signalEach = (processes: ReadonlyArray<Process>, signal: NodeJS.Signals, { alive, send }: Reach) =>
  Effect.sync(() => processes.filter(alive).forEach(({ pid }) => send(pid, signal)))

/** Also sends the signal to whole groups, so that a process that is forked at this moment gets it. */
const signalAll = ({ members, groups }: Found, signal: "SIGSTOP" | "SIGKILL", { alive, send }: Reach) =>
  Effect.sync(() => {
    for (const member of members.filter(alive)) {
      if (groups.has(member.group)) send(-member.group, signal)
      send(member.pid, signal)
    }
  })

/** Monotonic time, ms. */
const now = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos / 1_000_000n))

const LOOKS: Backoff.Policy = { base: 5, factor: 2, cap: 200, jitter: 0 }

/**
 * Returns when all of the processes have ended, or at the deadline. Cheap: reads only the `stat` of each process at
 * growing intervals, without a search. Does not rely on interruption, because finalizers cannot be interrupted.
 */
const untilGone = Effect.fnUntraced(function* (processes: ReadonlyArray<ProcessId>, deadline: number, alive: Alive) {
  for (let look = 1; processes.some(alive); look++) {
    const left = deadline - (yield* now)
    if (left <= 0) return
    yield* Effect.sleep(Math.min(Backoff.wait(LOOKS, look), left))
  }
})

/** How often processes are stopped with SIGSTOP before they are killed; a fork bomb needs a few rounds. */
const STOP_ROUNDS = 10
/**
 * How often SIGKILL is sent before the remaining processes are reported as survivors; a fork bomb needs several rounds.
 */
const KILL_ROUNDS = 50
const KILL_WAIT = 200
/** How often a process tree that ends slowly is searched for new processes, ms. */
const SEARCH_AGAIN = 1000

export class ProcessTree extends Context.Service<
  ProcessTree,
  {
    /** Set if the search is limited to process groups. */
    readonly note: GroupOnly | undefined
    /** All live processes of the run. */
    readonly find: (quarry: Quarry) => Effect.Effect<ReadonlyArray<Process>>
    /** Sends SIGKILL to all processes of the run, once, now. Stops them first, so that no new child is missed. */
    readonly kill: (quarry: Quarry) => Effect.Effect<void>
    /**
     * Stops all processes of the run and sends them SIGTERM. After the grace period, sends SIGKILL until all have
     * ended.
     */
    readonly terminate: (quarry: Quarry, grace: Duration.Input) => Effect.Effect<void, ProcessesSurvived>
    /** Finds processes of this store (by their mark) whose run is not in `alive`. */
    readonly orphans: (store: string, alive: ReadonlySet<string>) => Effect.Effect<ReadonlyArray<Orphan>>
  }
>()("agentd/backends/ProcessTree") {
  static readonly layer = Layer.sync(ProcessTree, () => (ProcessTable.isAvailable() ? over(here) : viaGroup))

  /** Creates the service for a machine on which all processes can be seen. */
  static readonly over = (machine: Machine): ProcessTree["Service"] => over(machine)
}

/**
 * Builds the functions that end processes. `isOver`: a quick check whether all processes have ended, if there is one.
 */
const endings = (
  find: (quarry: Quarry) => Effect.Effect<Found>,
  reach: Reach,
  isOver: (quarry: Quarry) => Effect.Effect<boolean> = () => Effect.succeed(false)
) => {
  const { alive } = reach
  /**
   * Stops all processes with SIGSTOP, until a search finds no new ones. A stopped process starts no children, and does
   * not end. Therefore children that it started since the last search are found through it, with or without a mark.
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
   * Sends SIGTERM once to each process. Returns true when a search finds no process, false when the time is up. If more
   * processes appear later, only orphans get SIGTERM: a process that is still alive may need its child for an orderly
   * exit.
   */
  const ask = Effect.fnUntraced(function* (quarry: Quarry, deadline: number) {
    const asked = new Set<string>()
    while ((yield* now) < deadline) {
      // stop all first: otherwise the first process to end would leave children that it started after the search
      const { members } = yield* asked.size === 0 ? freeze(quarry) : find(quarry)
      if (members.length === 0) return true
      const present = new Set(asked.size === 0 ? [] : members.map(({ pid }) => pid))
      const fresh = members.filter(({ pid, start, parent }) => !asked.has(`${pid}.${start}`) && !present.has(parent))
      yield* signalEach(fresh, "SIGTERM", reach)
      // a process that was stopped handles SIGTERM only after SIGCONT
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

/**
 * Returns the run of this store whose mark the environment contains. A program of a run can mark its own parts, with
 * the run's id, "+" and a name of its own.
 */
export const runIn = (environment: ReadonlyArray<string>, store: string): string | undefined =>
  environment.includes(`AGENTD_STORE=${store}`)
    ? environment
        .find((entry) => entry.startsWith("AGENTD_RUN="))
        ?.slice("AGENTD_RUN=".length)
        .split("+")[0]
    : undefined

/** Whether an environment contains the mark, or the mark of a part of the run. */
const isMarked = (environment: ReadonlyArray<string>, { runId, store }: Mark): boolean =>
  environment.includes(`AGENTD_STORE=${store}`) &&
  environment.some((entry) => entry === `AGENTD_RUN=${runId}` || entry.startsWith(`AGENTD_RUN=${runId}+`))

/** How many processes are read at the same time. Each read is a few short waits on the thread pool. */
const READERS = 8

/** Creates the service for systems on which all processes can be listed. */
const over = ({ environment, isAlive, process, self, signal, since, snapshot }: Machine): ProcessTree["Service"] => {
  const search = Effect.fnUntraced(function* (table: ReadonlyArray<Process>, quarry: Quarry) {
    const { root, seen, starter } = quarry
    const known = table.filter(({ pid, start }) => seen?.get(pid) === start).map(({ pid }) => pid)
    const kin = membersOf(table, known, self, root)
    const isKin = new Set(kin.members.map(({ pid }) => pid))
    const byPid = new Map(table.map((process) => [process.pid, process]))
    const processOf = (pid: number) => byPid.get(pid) ?? process?.(pid)
    // reading environments is slow: skip processes that are older than the run's first process, and those already found
    const mayBe = (one: Process) =>
      !isKin.has(one.pid) &&
      (root === undefined || (one.start >= root.start && !isOther(one, processOf, root, [self, starter])))
    const marked = yield* Effect.filter(
      table.filter(mayBe),
      ({ pid }) => Effect.map(environment(pid), (env) => isMarked(env, quarry)),
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
   * Whether all processes of a run have ended. Checks only processes that started since the run's first process: these
   * include all processes of the run and the leaders of their groups and sessions. If one is left, `find` lists it.
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

/**
 * Service for other systems. There, only the process group of the run's first process can be checked. It is represented
 * as one process with a negative pid.
 */
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
      remedy: "run agentd on Linux, or make sure that programs started by your agents stay in their process group"
    }),
    ...endings(find, { alive: lives, send }),
    orphans: () => Effect.succeed([])
  }
})()
