/**
 * ProcessTable: the machine's processes, read from Linux' /proc.
 *
 * Guarantees: A process that vanishes while it is read is left out and causes no error. A process is identified by pid
 * *and* start time, which no later process shares. A `stat` line is parsed correctly whatever the command's name
 * contains. Reading takes about 15 µs per process and happens on demand only.
 *
 * `stat` is read for all processes, because an ancestor can belong to another user (sudo). The environment is read only
 * for our own processes, and on the thread pool. That read waits for the process's memory lock, which a stuck process
 * can hold forever.
 */
import { Context, Duration, Effect } from "effect"
import * as fs from "node:fs"
import { attempt } from "../../config/Attempt.ts"

/** Identifies a process uniquely: pids are reused, a pid with its start time is not. */
export interface ProcessId {
  readonly pid: number
  /** Clock ticks from boot to the fork of the process. */
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
  flags: 6,
  user: 11,
  system: 12,
  threads: 17,
  start: 19
} as const
/** Flag of kernel threads. */
const KERNEL = 0x00200000

interface Stat extends Process {
  /** True if the process only waits to be reaped: it runs nothing and no signal reaches it. */
  readonly ended: boolean
  /** True for a kernel thread, which no program started. */
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
    // a process whose first thread has ended while other threads run has state Z, but is still running
    ended: state === "X" || (state === "Z" && number("threads") <= 1),
    kernel: (number("flags") & KERNEL) !== 0
  }
}

/** Reads synchronously, so that none of our code runs between this check and a signal. */
const read = (pid: number): Stat | undefined =>
  // decoding as UTF-8 is one call; if a command's name is not UTF-8, only that name is damaged
  attempt(() => parseStat(fs.readFileSync(`/proc/${pid}/stat`, "utf8")))

/** Undefined: the process has ended. */
export const find = (pid: number): Process | undefined => {
  const found = read(pid)
  return found === undefined || found.ended ? undefined : found
}

/** Identifies a pid, even if its process has ended and waits to be reaped. Start is 0 if it cannot be read. */
export const identify = (pid: number): ProcessId => ({ pid, start: read(pid)?.start ?? 0 })

/** True while exactly this process lives. */
export const isAlive = (id: ProcessId): boolean => {
  const found = read(id.pid)
  return found !== undefined && found.start === id.start && !found.ended
}

/** Reads the fields of `stat` after the command's name. Empty: the process has ended. */
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

/** Whether a signal or a debugger has stopped the process. */
export const isStopped = (pid: number): boolean => ["T", "t"].includes(fieldsOf(pid)[STAT_FIELDS.state] ?? "")

/** CPU time in ticks (1/100 s); undefined if the process does not exist or cannot be read. */
export const ticks = (pid: number): number | undefined => {
  const fields = fieldsOf(pid)
  return fields.length === 0 ? undefined : Number(fields[STAT_FIELDS.user]) + Number(fields[STAT_FIELDS.system])
}

/** Reads the command line. A NUL ends each argument. Empty: the process has ended, or belongs to another user. */
export const commandLine = (pid: number): string => attempt(() => fs.readFileSync(`/proc/${pid}/cmdline`, "utf8")) ?? ""

/** Number of processes and threads that the machine has started, and the newest pid. */
export interface Births {
  readonly count: number
  readonly newest: number
  /** All pids are smaller than this. */
  readonly limit: number
}

/**
 * Selects the pids that were assigned since `first`, including `first`. `before`: number of processes started before
 * `first`. Undefined: the pids may have wrapped around since then. Pure.
 */
export const givenSince = (
  pids: ReadonlyArray<number>,
  first: number,
  before: number,
  { count, limit, newest }: Births
): ReadonlyArray<number> | undefined => {
  const begun = count - before
  // `first` itself is counted: a smaller number means that the counter does not work
  if (begun < 1 || begun >= limit / 2) return undefined
  return pids.filter((pid) => (newest >= first ? pid >= first && pid <= newest : pid >= first || pid <= newest))
}

const wordIn = (file: string, pattern: RegExp): number => Number(pattern.exec(fs.readFileSync(file, "utf8"))?.[1])

const pidsNow = (): ReadonlyArray<number> =>
  fs
    .readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)

/** Maximum number of attempts to look while no process starts. */
const LOOKS = 3

/**
 * Repeats `look` until no process starts meanwhile, and returns its result. Undefined: there were too many attempts.
 * Without this check, a parent could start a child that `look` misses, and end before `look` reads the parent.
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

/** Maximum number of pids that are tried one by one. Beyond that, listing all processes is cheaper. */
const FEW = 40

/**
 * Candidate pids. They include all existing pids that may have been assigned since `first`. None was assigned after
 * `newest`.
 */
const candidates = (first: number): { readonly pids: ReadonlyArray<number>; readonly newest: number } => {
  const newest = newestNow()
  const count = newest - first + 1
  if (count > 0 && count <= FEW) return { pids: Array.from({ length: count }, (_, index) => first + index), newest }
  const pids = pidsNow()
  return { pids, newest: newestNow() }
}

/**
 * Lists the live processes that may have started since `first`. Undefined: the list cannot be narrowed down.
 * Synchronous; takes about 100 µs.
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

/** Number of processes that are read before other fibers get their turn. */
const BATCH = 128

/**
 * Reads all processes except kernel threads. Not an atomic snapshot: a process that is forked during the read appears
 * only in the next one.
 */
export const snapshot: Effect.Effect<ReadonlyArray<Process>> = Effect.gen(function* () {
  const pids = isAvailable() ? pidsNow() : []
  const table: Array<Process> = []
  for (const [index, pid] of pids.entries()) {
    if (index % BATCH === BATCH - 1) yield* Effect.yieldNow
    const found = read(pid)
    if (found !== undefined && !found.ended && !found.kernel) table.push(found)
  }
  return table
})

/** Number of ended children of pid 1 that pid 1 has not reaped. */
export const unreaped = (): number => {
  const pids = isAvailable() ? pidsNow() : []
  return pids.filter((pid) => {
    const found = read(pid)
    return found?.parent === 1 && found.ended
  }).length
}

/** Timeout for reading one environment, so that a process stuck in the kernel does not delay the others. */
const ENVIRONMENT_LIMIT = Duration.seconds(2)

/**
 * Pauses between reads, in ms. After one of them, a process that was just starting a program has its environment again.
 */
const BEGINNING = [2, 4, 8, 16, 32, 64, 128]

/** Undefined: the environment cannot be read. */
const environ = (pid: number): Effect.Effect<string | undefined> =>
  Effect.tryPromise(async () => {
    if (fs.statSync(`/proc/${pid}`).uid !== process.geteuid?.()) return undefined
    return fs.promises.readFile(`/proc/${pid}/environ`, "utf8")
  }).pipe(
    // finalizers search, too, and are uninterruptible by default: the timeout would have no effect
    Effect.interruptible,
    Effect.timeout(ENVIRONMENT_LIMIT),
    Effect.orElseSucceed(() => undefined)
  )

/** Reads the environment only once. For callers that retry later if the process is within `exec`. */
export const environmentNow = (pid: number): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(environ(pid), (text = "") => text.split("\0"))

/**
 * Reads the initial environment of one of our processes, as `NAME=value` entries. Empty for other users' processes and
 * for processes that hide it. An empty environment is read again, because it is empty for a moment within `exec`.
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
}

/** Default: this machine's /proc. */
export const Lookup = Context.Reference<Lookup>("agentd/backends/process/Lookup", {
  defaultValue: () => ({ identify, isAlive, isAvailable, snapshot })
})

/** Lists the processes that work in a folder. Undefined: the system cannot tell. Default: this machine's processes. */
export const WorkingIn = Context.Reference<
  (folder: string) => Effect.Effect<ReadonlyArray<Pick<Process, "pid">> | undefined>
>("agentd/backends/process/WorkingIn", {
  defaultValue: () => (folder) => Effect.suspend(() => (isAvailable() ? workingIn(folder) : Effect.undefined))
})
