/**
 * ProcessUse: what processes use of the machine, as Linux' /proc shows.
 *
 * Guarantees: a process that vanishes while it is read counts for nothing; memory that processes share is counted
 * once where the kernel tells (`memoryOf`), which costs more than the estimate, and never less than what is used;
 * a read that waits for a stuck process is given up.
 */
import { Duration, Effect } from "effect"
import * as fs from "node:fs"
import { attempt } from "../../config/Attempt.ts"

const KB = 1024

const textOf = (file: string): string => attempt(() => fs.readFileSync(file, "latin1")) ?? ""

/** The number behind a name at the beginning of a line; 0 where there is none. */
const figure = (text: string, name: string): number => {
  const at = `\n${text}`.indexOf(`\n${name}:`)
  const found = at < 0 ? 0 : Number.parseInt(text.slice(at + name.length + 1), 10)
  return Number.isNaN(found) ? 0 : found
}

/** The part of the machine that one process uses. */
export interface Use {
  readonly tasks: number
  /** Bytes that are its own, swapped out ones too, and all that it shares as memory: together too many, where several share. */
  readonly estimate: number
  /** Bytes without what it shares. */
  readonly own: number
}

/** About 20 µs. */
export const of = (pid: number): Use => {
  const text = textOf(`/proc/${pid}/status`)
  const own = (figure(text, "RssAnon") + figure(text, "VmSwap")) * KB
  return { tasks: figure(text, "Threads"), own, estimate: own + figure(text, "RssShmem") * KB }
}

const ANSWER_WITHIN = Duration.seconds(2)

/** Bytes, with a share of what it shares; undefined where that is not to be read. */
const proportional = (pid: number): Effect.Effect<number | undefined> =>
  Effect.tryPromise(() => fs.promises.readFile(`/proc/${pid}/smaps_rollup`, "latin1")).pipe(
    Effect.timeout(ANSWER_WITHIN),
    Effect.map((text) => (figure(text, "Pss_Anon") + figure(text, "Pss_Shmem") + figure(text, "SwapPss")) * KB),
    Effect.orElseSucceed(() => undefined)
  )

const READERS = 8

/** The memory of all of them, shared memory counted once. */
export const memoryOf = (pids: ReadonlyArray<number>): Effect.Effect<number> =>
  Effect.map(
    Effect.forEach(pids, (pid) => Effect.map(proportional(pid), (share) => share ?? of(pid).own), {
      concurrency: READERS
    }),
    (shares) => shares.reduce((sum, share) => sum + share, 0)
  )

/** Bytes that the processes, and the ended children that they have waited for, have written. */
export const writtenBy = (pids: ReadonlyArray<number>): number =>
  pids.reduce((sum, pid) => sum + figure(textOf(`/proc/${pid}/io`), "wchar"), 0)

/** Bytes on the disk of files that have no name any more and that the processes hold open. */
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
