/**
 * ProcessUse: the memory, tasks and disk use of processes, read from Linux' /proc.
 *
 * Guarantees: A process that vanishes while it is read counts as 0. `memoryOf` counts shared memory once if the kernel
 * reports it. `memoryOf` is slower than the estimate in `Use`, which is never too low. If a process is stuck and a read
 * blocks, the read is abandoned.
 */
import { Duration, Effect } from "effect"
import * as fs from "node:fs"
import { attempt } from "../../config/Attempt.ts"

const KB = 1024

const textOf = (file: string): string => attempt(() => fs.readFileSync(file, "latin1")) ?? ""

/** Returns the number after a name at the beginning of a line; 0 if there is none. */
const figure = (text: string, name: string): number => {
  const at = `\n${text}`.indexOf(`\n${name}:`)
  const found = at < 0 ? 0 : Number.parseInt(text.slice(at + name.length + 1), 10)
  return Number.isNaN(found) ? 0 : found
}

export interface Use {
  readonly tasks: number
  /**
   * Size of the process's private memory, including swap, plus all its shared memory, bytes. If several processes share
   * memory, the sum of their estimates is too high.
   */
  readonly estimate: number
  /** Size of private memory, including swap, bytes. */
  readonly own: number
}

/** Reads how much memory and how many threads a process uses. Takes about 20 µs. */
export const of = (pid: number): Use => {
  const text = textOf(`/proc/${pid}/status`)
  const own = (figure(text, "RssAnon") + figure(text, "VmSwap")) * KB
  return { tasks: figure(text, "Threads"), own, estimate: own + figure(text, "RssShmem") * KB }
}

const ANSWER_WITHIN = Duration.seconds(2)

/** Memory of a process with its proportional part of shared memory, bytes; undefined if this cannot be read. */
const proportional = (pid: number): Effect.Effect<number | undefined> =>
  Effect.tryPromise(() => fs.promises.readFile(`/proc/${pid}/smaps_rollup`, "latin1")).pipe(
    Effect.timeout(ANSWER_WITHIN),
    Effect.map((text) => (figure(text, "Pss_Anon") + figure(text, "Pss_Shmem") + figure(text, "SwapPss")) * KB),
    Effect.orElseSucceed(() => undefined)
  )

const READERS = 8

/** Memory of all the processes, bytes. Shared memory is counted once. */
export const memoryOf = (pids: ReadonlyArray<number>): Effect.Effect<number> =>
  Effect.map(
    Effect.forEach(pids, (pid) => Effect.map(proportional(pid), (share) => share ?? of(pid).own), {
      concurrency: READERS
    }),
    (shares) => shares.reduce((sum, share) => sum + share, 0)
  )

/**
 * How many bytes the processes have written, together with their children that have ended and that they have waited
 * for.
 */
export const writtenBy = (pids: ReadonlyArray<number>): number =>
  pids.reduce((sum, pid) => sum + figure(textOf(`/proc/${pid}/io`), "wchar"), 0)

/** Disk space of deleted files that the processes still hold open, bytes. */
export const namelessOf = (pids: ReadonlyArray<number>): number => {
  const files = new Map<string, number>()
  for (const pid of pids) {
    let names: ReadonlyArray<string> = []
    try {
      names = fs.readdirSync(`/proc/${pid}/fd`)
    } catch {}
    for (const name of names) {
      try {
        const stat = fs.statSync(`/proc/${pid}/fd/${name}`)
        if (stat.isFile() && stat.nlink === 0) files.set(`${stat.dev}/${stat.ino}`, stat.blocks * 512)
      } catch {}
    }
  }
  return [...files.values()].reduce((sum, size) => sum + size, 0)
}
