/**
 * TreeGrowth: how much of a disk a folder has taken since a time, as far as its files tell.
 *
 * Guarantees: no link is followed and no other disk entered; a file with several names counts once; what vanishes
 * meanwhile counts for nothing; other fibers get their turn; it ends after a bounded number of files, and as soon as
 * more than `enough` is found. No list is kept from look to look: files tell when they were made and changed.
 */
import { Effect } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { attempt } from "../../config/Attempt.ts"

/** In bytes on the disk. */
export interface Growth {
  /** Of files that were made since. */
  readonly made: number
  /** Of files that are older and were changed since: all of each. */
  readonly changed: number
}

/** How many files are looked at before other fibers get their turn. */
const BATCH = 128
const MAX_FILES = 3_000_000
const BLOCK = 512

const statOf = (file: string): fs.Stats | undefined => attempt(() => fs.lstatSync(file))

/** The names in a folder, a few at a time: it may have millions. */
export function* namesIn(folder: string): Generator<string> {
  let open: fs.Dir | undefined
  try {
    open = fs.opendirSync(folder)
    for (let entry = open.readSync(); entry !== null; entry = open.readSync()) yield entry.name
  } catch {
    // gone, or not to be read
  } finally {
    open?.closeSync()
  }
}

/** `since` in ms since the epoch. */
export const measure = Effect.fnUntraced(function* (folder: string, since: number, enough: number) {
  const top = statOf(folder)
  const several = new Set<number>()
  const folders = top === undefined ? [] : [folder]
  let [made, changed, seen] = [0, 0, 0]
  for (let next = folders.pop(); next !== undefined; next = folders.pop()) {
    for (const name of namesIn(next)) {
      if (++seen > MAX_FILES || made > enough) return { made, changed } satisfies Growth
      if (seen % BATCH === 0) yield* Effect.yieldNow
      const file = path.join(next, name)
      const stat = statOf(file)
      if (stat === undefined || stat.dev !== top?.dev) continue
      if (stat.isDirectory()) folders.push(file)
      else if (stat.nlink > 1) {
        if (several.has(stat.ino)) continue
        several.add(stat.ino)
      }
      if (stat.ctimeMs < since) continue
      const size = Math.max(1, stat.blocks) * BLOCK
      if (stat.birthtimeMs >= since) made += size
      else changed += size
    }
  }
  return { made, changed } satisfies Growth
})
