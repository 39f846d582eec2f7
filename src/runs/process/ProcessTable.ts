/**
 * ProcessTable: the machine's processes, read from Linux' /proc.
 *
 * Guarantees: A process that vanishes while it is read is left out and causes no error. A process is identified by its
 * pid *and* its start time, because no later process has both. A `stat` line is parsed correctly whatever the command's
 * name contains. Reading takes about 15 µs per process and happens on demand only.
 *
 * `stat` is read for all processes, because an ancestor can belong to another user (sudo). The environment is read only
 * for processes of the daemon's user, and on the thread pool. Reading it waits for the process's memory lock, which a
 * stuck process can hold forever.
 */
import { Context, Duration, Effect } from "effect"
import * as fs from "node:fs"
import { attempt } from "../../config/Attempt.ts"

/** Identifies a process uniquely: pids are reused, a pid with its start time is not. */
export interface ProcessId {
  readonly pid: number
  /** When the process was forked, in clock ticks since boot. */
  readonly start: number
}

export interface Process extends ProcessId {
  readonly parent: number
  readonly group: number
  readonly session: number
}

const STAT_FIELDS = {
  state: 0,
  parent: 1,
  group: 2,
  session: 3,
  terminal: 4,
  flags: 6,
  user: 11,
  system: 12,
  threads: 17,
  start: 19
} as const
/** Flag that marks kernel threads. */
const KERNEL = 0x00200000

interface Stat extends Process {
  /** Device number of the terminal that controls the process; 0 if there is none. */
  readonly terminal: number
  /** True if the process only waits to be reaped: it runs nothing and no signal reaches it. */
  readonly ended: boolean
  /** True for a kernel thread: no program started it. */
  readonly kernel: boolean
}

export const parseStat = (text: string): Stat | undefined => {
  // the command is in parentheses, unescaped, and can contain any of ") \n("
  const close = text.lastIndexOf(")")
  const pid = Number.parseInt(text, 10)
  const fields = text.slice(close + 2).split(" ")
  const number = (field: keyof typeof STAT_FIELDS) => Number(fields[STAT_FIELDS[field]])
  if (close < 0 || Number.isNaN(pid) || !Number.isInteger(number("start"))) return undefined
  const state = fields[STAT_FIELDS.state]
  return {
    pid,
    start: number("start"),
    parent: number("parent"),
    group: number("group"),
    session: number("session"),
    terminal: number("terminal"),
    // if the first thread of a process has ended but others still run, the process has state Z, but is still running
    ended: state === "X" || (state === "Z" && number("threads") <= 1),
    kernel: (number("flags") & KERNEL) !== 0
  }
}

/** Reads a process synchronously, so that none of agentd's code runs between this check and a signal. */
const read = (pid: number): Stat | undefined =>
  // decoding as UTF-8 is one call; if a command's name is not UTF-8, only that name is damaged
  attempt(() => parseStat(fs.readFileSync(`/proc/${pid}/stat`, "utf8")))

/** The process with this pid; undefined if it has ended. */
export const find = (pid: number): Process | undefined => {
  const found = read(pid)
  return found === undefined || found.ended ? undefined : found
}

/** Identifies a pid, even if its process has ended and waits to be reaped. Start is 0 if it cannot be read. */
export const identify = (pid: number): ProcessId => ({ pid, start: read(pid)?.start ?? 0 })

/** True if exactly this process is still alive. */
export const isAlive = (id: ProcessId): boolean => {
  const found = read(id.pid)
  return found !== undefined && found.start === id.start && !found.ended
}

/** Reads the fields of `stat` after the command's name; empty if the process has ended. */
const fieldsOf = (pid: number): ReadonlyArray<string> => {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8")
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  } catch {
    return []
  }
}

/**
 * Returns the current time in clock ticks since boot, like the start times of processes; NaN without /proc. In some
 * containers `/proc/uptime` shows the container's own uptime, so the larger of two estimates is used.
 */
export const ticksNow = (): number => {
  try {
    const { start } = identify(process.pid)
    return Math.max(100 * wordIn("/proc/uptime", /^([\d.]+)/), start + 100 * process.uptime())
  } catch {
    return Number.NaN
  }
}

/** Whether the process was stopped by a signal or a debugger. */
export const isStopped = (pid: number): boolean => ["T", "t"].includes(fieldsOf(pid)[STAT_FIELDS.state] ?? "")

/** CPU time in ticks (1/100 s); undefined if the process does not exist or its time cannot be read. */
export const ticks = (pid: number): number | undefined => {
  const fields = fieldsOf(pid)
  return fields.length === 0 ? undefined : Number(fields[STAT_FIELDS.user]) + Number(fields[STAT_FIELDS.system])
}

/**
 * Reads the command line, in which a NUL ends each argument. Empty if the process has ended, or if another user owns
 * it.
 */
export const commandLine = (pid: number): string => attempt(() => fs.readFileSync(`/proc/${pid}/cmdline`, "utf8")) ?? ""

/** Number of processes and threads that the machine has started, and the newest pid. */
export interface Births {
  readonly count: number
  readonly newest: number
  /** Upper limit of pids: all pids are smaller. */
  readonly limit: number
}

/**
 * Selects the pids that were assigned since `first`, including `first`. `before`: number of processes that were started
 * before `first`. Undefined if the pids may have wrapped around since then. Pure.
 */
export const givenSince = (
  pids: ReadonlyArray<number>,
  first: number,
  before: number,
  { count, limit, newest }: Births
): ReadonlyArray<number> | undefined => {
  const begun = count - before
  // `first` itself is counted, so if the number is smaller, the counter does not work
  if (begun < 1 || begun >= limit / 2) return undefined
  return pids.filter((pid) => (newest >= first ? pid >= first && pid <= newest : pid >= first || pid <= newest))
}

const wordIn = (file: string, pattern: RegExp): number => Number(pattern.exec(fs.readFileSync(file, "utf8"))?.[1])

const pidsNow = (): ReadonlyArray<number> =>
  fs
    .readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)

/** Maximum number of times that `look` is repeated because a process started meanwhile. */
const LOOKS = 3

/**
 * Repeats `look` until no process starts meanwhile, and returns its result. Undefined if there were too many attempts.
 * Without this check, a parent could start a child that `look` misses, and then end before `look` reads the parent.
 */
export const whileStill = <A>(count: () => number, look: (count: number) => A): A | undefined => {
  let before = count()
  for (let looks = 0; looks < LOOKS; looks++) {
    const seen = look(before)
    const after = count()
    if (after === before) return seen
    before = after
  }
  return undefined
}

const newestNow = (): number => wordIn("/proc/loadavg", / (\d+)\n$/)

/** Maximum number of pids that are tried one by one. For more pids, it is cheaper to list all processes. */
const FEW = 40

/**
 * Pids that may belong to processes started since `first`: all pids of existing processes are included. The newest
 * possible pid is `newest`.
 */
const candidates = (first: number): { readonly pids: ReadonlyArray<number>; readonly newest: number } => {
  const newest = newestNow()
  const count = newest - first + 1
  if (count > 0 && count <= FEW) return { pids: Array.from({ length: count }, (_, index) => first + index), newest }
  const pids = pidsNow()
  return { pids, newest: newestNow() }
}

/**
 * Lists the live processes that may have started since `first`; undefined if this is not possible. Synchronous; takes
 * about 100 µs.
 */
export const since = (first: number, before: number): ReadonlyArray<Process> | undefined => {
  try {
    const limit = wordIn("/proc/sys/kernel/pid_max", /^(\d+)/)
    const count = () => wordIn("/proc/stat", /^processes (\d+)$/m)
    return whileStill(count, (count) => {
      const { newest, pids } = candidates(first)
      const births = { count, newest, limit }
      if (!Object.values(births).every(Number.isInteger)) return undefined
      const stats = givenSince(pids, first, before, births)?.map(read)
      return stats?.filter((one) => one !== undefined).filter(({ ended, kernel }) => !ended && !kernel)
    })
  } catch {
    return undefined
  }
}

/** Whether /proc can be read. False on macOS and BSD. */
export const isAvailable = (): boolean => read(process.pid) !== undefined

/** How many processes are read before other fibers can run. */
const BATCH = 128

/**
 * Reads all processes except kernel threads. Not an atomic snapshot: a process that is forked during the read appears
 * only in the next one.
 */
export const snapshot: Effect.Effect<ReadonlyArray<Process>> = Effect.suspend(() => stats)

const stats = Effect.gen(function* () {
  const pids = isAvailable() ? pidsNow() : []
  const table: Array<Stat> = []
  for (const [index, pid] of pids.entries()) {
    if (index % BATCH === BATCH - 1) yield* Effect.yieldNow
    const found = read(pid)
    if (found !== undefined && !found.ended && !found.kernel) table.push(found)
  }
  return table
})

/** How many ended children pid 1 has not reaped. */
export const unreaped = (): number => {
  const pids = isAvailable() ? pidsNow() : []
  return pids.filter((pid) => {
    const found = read(pid)
    return found?.parent === 1 && found.ended
  }).length
}

/**
 * Timeout for reading the environment of one process, so that a process that is stuck in the kernel does not delay the
 * others.
 */
const ENVIRONMENT_LIMIT = Duration.seconds(2)

/**
 * Pauses between reads, ms. A process that was just starting a program has its environment again after one of these.
 */
const BEGINNING = [2, 4, 8, 16, 32, 64, 128]

/** Whether the process runs as the daemon's user; false if it has ended. */
const isOwn = (pid: number): boolean => attempt(() => fs.statSync(`/proc/${pid}`).uid) === process.geteuid?.()

/** The environment of a process; undefined if it cannot be read. */
const environ = (pid: number): Effect.Effect<string | undefined> =>
  Effect.tryPromise(async () => {
    if (!isOwn(pid)) return undefined
    return fs.promises.readFile(`/proc/${pid}/environ`, "utf8")
  }).pipe(
    // finalizers search, too, and cannot be interrupted by default, so the timeout would have no effect
    Effect.interruptible,
    Effect.timeout(ENVIRONMENT_LIMIT),
    Effect.orElseSucceed(() => undefined)
  )

/**
 * Reads the environment only once. For callers that try again later if the process is just starting a program (`exec`).
 */
export const environmentNow = (pid: number): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(environ(pid), (text = "") => text.split("\0"))

/**
 * Reads the environment with which a process was started, as `NAME=value` entries. Empty for processes of other users
 * and for processes that hide it. An empty environment is read again, because it is empty for a moment while a program
 * starts (`exec`).
 */
export const environment = Effect.fnUntraced(function* (pid: number): Effect.fn.Return<ReadonlyArray<string>> {
  for (const pause of BEGINNING) {
    const text = yield* environ(pid)
    if (text === undefined) return []
    if (text !== "") return text.split("\0")
    yield* Effect.sleep(pause)
  }
  return []
})

/** A program that the daemon's user runs in a terminal. */
export interface Program extends Process {
  readonly argv: ReadonlyArray<string>
  /** The working directory. */
  readonly cwd: string
}

/** Lists the programs that the daemon's user runs in terminals. */
const programs: Effect.Effect<ReadonlyArray<Program>> = Effect.map(stats, (table) =>
  table.flatMap((process) => {
    if (process.terminal === 0) return []
    if (!isOwn(process.pid)) return []
    const cwd = attempt(() => fs.readlinkSync(`/proc/${process.pid}/cwd`))
    const argv = commandLine(process.pid).split("\0").slice(0, -1)
    return cwd === undefined || argv.length === 0 ? [] : [{ ...process, argv, cwd }]
  })
)

/** Lists the processes whose working directory is this folder (a real path) or one of its subfolders. */
export const workingIn = (folder: string): Effect.Effect<ReadonlyArray<Process>> =>
  Effect.map(snapshot, (table) =>
    table.filter(({ pid }) => {
      try {
        const cwd = fs.readlinkSync(`/proc/${pid}/cwd`)
        return cwd === folder || cwd.startsWith(`${folder}/`)
      } catch {
        return false
      }
    })
  )

/** Access to the machine's processes, as the board of sessions uses it. */
export interface Lookup {
  readonly identify: (pid: number) => ProcessId
  readonly isAlive: (id: ProcessId) => boolean
  readonly isAvailable: () => boolean
  readonly snapshot: Effect.Effect<ReadonlyArray<Process>>
  readonly programs: Effect.Effect<ReadonlyArray<Program>>
}

/** How processes are looked up; by default in this machine's /proc. */
export const Lookup = Context.Reference<Lookup>("agentd/backends/process/Lookup", {
  defaultValue: () => ({ identify, isAlive, isAvailable, snapshot, programs })
})

/** Lists the processes that work in a folder, by default on this machine; undefined if the system cannot tell. */
export const WorkingIn = Context.Reference<
  (folder: string) => Effect.Effect<ReadonlyArray<Pick<Process, "pid">> | undefined>
>("agentd/backends/process/WorkingIn", {
  defaultValue: () => (folder) => Effect.suspend(() => (isAvailable() ? workingIn(folder) : Effect.undefined))
})
