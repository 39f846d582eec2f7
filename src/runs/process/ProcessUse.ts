/**
 * ProcessUse: the memory, tasks and disk use of processes, read from Linux' /proc.
 *
 * Guarantees: A process that vanishes while it is read counts as 0. `memoryOf` counts shared memory once if the kernel
 * reports it. `memoryOf` is slower than the estimate in `Use`, which is never lower than the real use. A read that
 * blocks on a stuck process is abandoned.
 */
import { Duration, Effect } from "effect"
import * as fs from "node:fs"
import { attempt } from "../../config/Attempt.ts"

const KB = 1024

const textOf = (file: string): string => attempt(() => fs.readFileSync(file, "latin1")) ?? ""

/** Returns the number after a name at the beginning of a line, or 0 if there is none. */
const figure = (text: string, name: string): number => {
  const at = `\n${text}`.indexOf(`\n${name}:`)
  const found = at < 0 ? 0 : Number.parseInt(text.slice(at + name.length + 1), 10)
  return Number.isNaN(found) ? 0 : found
}

export interface Use {
  readonly tasks: number
  /**
   * Bytes of the process's private memory, including swap, plus all its shared memory. The sum over several processes
   * is too high if they share memory.
   */
  readonly estimate: number
  /** Bytes of private memory, including swap. */
  readonly own: number
}

/** Takes about 20 µs. */
export const of = (pid: number): Use => {
  const text = textOf(`/proc/${pid}/status`)
  const own = (figure(text, "RssAnon") + figure(text, "VmSwap")) * KB
  return { tasks: figure(text, "Threads"), own, estimate: own + figure(text, "RssShmem") * KB }
}

const ANSWER_WITHIN = Duration.seconds(2)

/** Bytes of a process's memory, with its proportional share of shared memory. Undefined: the value cannot be read. */
const proportional = (pid: number): Effect.Effect<number | undefined> =>
  Effect.tryPromise(() => fs.promises.readFile(`/proc/${pid}/smaps_rollup`, "latin1")).pipe(
    Effect.timeout(ANSWER_WITHIN),
    Effect.map((text) => (figure(text, "Pss_Anon") + figure(text, "Pss_Shmem") + figure(text, "SwapPss")) * KB),
    Effect.orElseSucceed(() => undefined)
  )

const READERS = 8

/** Bytes of memory of all the processes, with shared memory counted once. */
export const memoryOf = (pids: ReadonlyArray<number>): Effect.Effect<number> =>
  Effect.map(
    Effect.forEach(pids, (pid) => Effect.map(proportional(pid), (share) => share ?? of(pid).own), {
      concurrency: READERS
    }),
    (shares) => shares.reduce((sum, share) => sum + share, 0)
  )

/** Bytes written by the processes, and by their ended children that they have waited for. */
export const writtenBy = (pids: ReadonlyArray<number>): number =>
  pids.reduce((sum, pid) => sum + figure(textOf(`/proc/${pid}/io`), "wchar"), 0)

/** Bytes on disk of deleted files that the processes still hold open. */
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
