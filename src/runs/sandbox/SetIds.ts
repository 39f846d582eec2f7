/**
 * SetIds: removes set-gid bits from files that a confined run leaves behind. A system call filter cannot distinguish
 * chmod of a file from chmod of a directory, and git needs set-gid directories (core.sharedRepository).
 *
 * Guarantees: No link is followed and no other disk is entered. Directories keep their bits, and so do files that were
 * last changed before the run began. Other fibers can run during the search.
 */
import { Effect } from "effect"
import * as fs from "node:fs"
import { attempt } from "../../config/Attempt.ts"
import { walk } from "../process/TreeGrowth.ts"

const SET_IDS = 0o6000
/** O_PATH: opens a reference to a file, but not the file itself, whatever the file's mode is. */
const PATH_ONLY = 0o10000000

const clear = (file: string, mode: number): boolean =>
  attempt(() => {
    const named = fs.openSync(file, PATH_ONLY | fs.constants.O_NOFOLLOW)
    try {
      fs.chmodSync(`/proc/self/fd/${named}`, mode & 0o7777 & ~SET_IDS)
    } finally {
      fs.closeSync(named)
    }
    return true
  }) ?? false

/** Removes the bits from files that were changed since `since` (ms since the epoch). Returns these files. */
export const sweep = Effect.fnUntraced(function* (folder: string, since: number) {
  const swept: Array<string> = []
  yield* walk(folder, (file, stat) => {
    if (stat.isFile() && (stat.mode & SET_IDS) !== 0 && stat.ctimeMs >= since && clear(file, stat.mode))
      swept.push(file)
    return true
  })
  return swept as ReadonlyArray<string>
})
