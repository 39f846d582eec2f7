/**
 * ProcessTable: the machine's processes as Linux' /proc tells them.
 *
 * Guarantees: a process that vanishes while it is read is left out and never an
 * error; a process is named by pid *and* start time, which no later process
 * shares; a `stat` line is read rightly whatever its command calls itself.
 * It costs about 15 µs a process and is read on demand only.
 *
 * `stat` is read of all processes, since a line of descent may pass through one
 * of another user (sudo); the environment only of our own, and on the thread pool:
 * that read waits for a process' memory lock, which a stuck one may hold for ever.
 */
import { Context, Duration, Effect } from "effect"
import * as fs from "node:fs"
import { attempt } from "../../config/Attempt.ts"

/** The identity of a process, beyond doubt: pids are used again, a pid with its start time is not. */
export interface ProcessId {
  readonly pid: number
  /** Clock ticks between boot and its fork. */
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
/** In the flags: a thread of the kernel's own. */
const KERNEL = 0x00200000

interface Stat extends Process {
  /** Only waits to be reaped: no signal reaches it, nothing of it runs. */
  readonly ended: boolean
  /** A thread of the kernel's own, which no program started. */
  readonly kernel: boolean
}

export const parseStat = (text: string): Stat | undefined => {
  // the command stands in parentheses, unescaped, and may hold any of ") \n("
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
    // a process whose first thread has ended while others go on is a Z that lives
    ended: state === "X" || (state === "Z" && number("threads") <= 1),
    kernel: (number("flags") & KERNEL) !== 0
  }
}

/** Synchronous: between this and a signal nothing else of ours runs. */
const read = (pid: number): Stat | undefined =>
  // as UTF-8 it is one call; where a command's name is none, that name alone is damaged
  attempt(() => parseStat(fs.readFileSync(`/proc/${pid}/stat`, "utf8")))

/** The process of a pid; undefined where it has ended. */
export const find = (pid: number): Process | undefined => {
  const found = read(pid)
  return found === undefined || found.ended ? undefined : found
}

/** Identifies a pid, even if its process has ended and waits to be reaped; start 0 where that cannot be known. */
export const identify = (pid: number): ProcessId => ({ pid, start: read(pid)?.start ?? 0 })

/** True while exactly this process lives. */
export const isAlive = (id: ProcessId): boolean => {
  const found = read(id.pid)
  return found !== undefined && found.start === id.start && !found.ended
}

/** The fields of a process behind its name; none where it has ended. */
const fieldsOf = (pid: number): ReadonlyArray<string> => {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8")
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  } catch {
    return []
  }
}

/** Clock ticks since boot, as processes' start times count them; NaN where there is no /proc. In some containers the first of the two is the container's. */
export const ticksNow = (): number => {
  try {
    const { start } = identify(process.pid)
    return Math.max(100 * wordIn("/proc/uptime", /^([\d.]+)/), start + 100 * process.uptime())
  } catch {
    return Number.NaN
  }
}

/** Whether a signal, or a debugger, has stopped it. */
export const isStopped = (pid: number): boolean => ["T", "t"].includes(fieldsOf(pid)[STAT_FIELDS.state] ?? "")

/** Ticks of the processor (1/100 s) that it has used; undefined where there is none, or no telling. */
export const ticks = (pid: number): number | undefined => {
  const fields = fieldsOf(pid)
  return fields.length === 0 ? undefined : Number(fields[STAT_FIELDS.user]) + Number(fields[STAT_FIELDS.system])
}

/** The words of its command, each ended by a NUL; empty where it has ended, or is another user's to see. */
export const commandLine = (pid: number): string => attempt(() => fs.readFileSync(`/proc/${pid}/cmdline`, "utf8")) ?? ""

/** How many processes and threads the machine has begun, and the newest pid that it gave. */
export interface Births {
  readonly count: number
  readonly newest: number
  /** Pids are below. */
  readonly limit: number
}

/** Pure: pids, of these, that were given from `first` on, before which so many had begun; undefined where the numbers may have gone round since. */
export const givenSince = (
  pids: ReadonlyArray<number>,
  first: number,
  before: number,
  { count, limit, newest }: Births
): ReadonlyArray<number> | undefined => {
  const begun = count - before
  // the first is one of them: fewer, and nobody counts
  if (begun < 1 || begun >= limit / 2) return undefined
  return pids.filter((pid) => (newest >= first ? pid >= first && pid <= newest : pid >= first || pid <= newest))
}

const wordIn = (file: string, pattern: RegExp): number => Number(pattern.exec(fs.readFileSync(file, "utf8"))?.[1])

const pidsNow = (): ReadonlyArray<number> =>
  fs
    .readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)

/** Looks before it is given up that nothing begins meanwhile. */
const LOOKS = 3

/** A look during which nothing has begun; undefined where there was none: a parent may have begun one behind the look, and ended before it. */
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

/** So many numbers are tried each, where the system's list of all would cost more. */
const FEW = 40

/** Pids that may have been given from `first` on, all that there are among them, and a newest one that is later than them. */
const candidates = (first: number): { readonly pids: ReadonlyArray<number>; readonly newest: number } => {
  const newest = newestNow()
  const count = newest - first + 1
  if (count > 0 && count <= FEW) return { pids: Array.from({ length: count }, (_, index) => first + index), newest }
  const pids = pidsNow()
  return { pids, newest: newestNow() }
}

/** The processes that live and may have been begun from `first` on; undefined where they may be any. At one go: some 100 µs. */
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

/** False where there is no /proc to read (macOS, BSD). */
export const isAvailable = (): boolean => read(process.pid) !== undefined

/** How many are read before other fibers get their turn. */
const BATCH = 128

/** Every process there is but the kernel's own. Not one instant: what forks meanwhile is in the next one. */
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

/** How many children of the first process have ended and were not reaped by it. */
export const unreaped = (): number => {
  const pids = isAvailable() ? pidsNow() : []
  return pids.filter((pid) => {
    const found = read(pid)
    return found?.parent === 1 && found.ended
  }).length
}

/** How long one environment may take: a process stuck in the kernel must not hold up the others. */
const ENVIRONMENT_LIMIT = Duration.seconds(2)

/** Pauses, in ms, within which a process that is just beginning a program has its environment again. */
const BEGINNING = [2, 4, 8, 16, 32, 64, 128]

/** Undefined where it is not to be read. */
const environ = (pid: number): Effect.Effect<string | undefined> =>
  Effect.tryPromise(async () => {
    if (fs.statSync(`/proc/${pid}`).uid !== process.geteuid?.()) return undefined
    return fs.promises.readFile(`/proc/${pid}/environ`, "utf8")
  }).pipe(
    // finalizers search too, and what they run is not interruptible by itself
    Effect.interruptible,
    Effect.timeout(ENVIRONMENT_LIMIT),
    Effect.orElseSucceed(() => undefined)
  )

/** The same without a second look, where one that is within `exec` is asked again later. */
export const environmentNow = (pid: number): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(environ(pid), (text = "") => text.split("\0"))

/**
 * The environment that a process of ours was started with, as `NAME=value` entries.
 * None for those of others and of processes that hide it. One that is empty is looked at
 * again: within `exec` it is so for a moment.
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

/** The processes whose working directory is the folder (a real path) or lies in it. */
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

/** The machine's processes, as the board of sessions asks for them. */
export interface Lookup {
  readonly identify: (pid: number) => ProcessId
  readonly isAlive: (id: ProcessId) => boolean
  readonly isAvailable: () => boolean
  readonly snapshot: Effect.Effect<ReadonlyArray<Process>>
}

/** The service; by default this machine's /proc. */
export const Lookup = Context.Reference<Lookup>("agentd/backends/process/Lookup", {
  defaultValue: () => ({ identify, isAlive, isAvailable, snapshot })
})

/** The processes that work in a folder; undefined where the system does not tell. This machine's, unless somebody says otherwise. */
export const WorkingIn = Context.Reference<
  (folder: string) => Effect.Effect<ReadonlyArray<Pick<Process, "pid">> | undefined>
>("agentd/backends/process/WorkingIn", {
  defaultValue: () => (folder) => Effect.suspend(() => (isAvailable() ? workingIn(folder) : Effect.undefined))
})
