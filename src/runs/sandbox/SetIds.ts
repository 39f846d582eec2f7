/**
 * SetIds: the set-gid files that a confined run leaves: no filter of system calls can tell chmod's for a directory, which
 * git needs (core.sharedRepository), from that for a file.
 *
 * Guarantees: no link is followed and no other disk entered; directories keep their bits, and so do files that were
 * changed before the run began; other fibers get their turn.
 */
import { Effect } from "effect"
import * as fs from "node:fs"
import { attempt } from "../../config/Attempt.ts"
import { walk } from "../process/TreeGrowth.ts"

const SET_IDS = 0o6000
/** Not opened: only named, whatever its mode. */
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

/** Takes the bits off what was changed since, ms since the epoch; answers with the files. */
export const sweep = Effect.fnUntraced(function* (folder: string, since: number) {
  const swept: Array<string> = []
  yield* walk(folder, (file, stat) => {
    if (stat.isFile() && (stat.mode & SET_IDS) !== 0 && stat.ctimeMs >= since && clear(file, stat.mode))
      swept.push(file)
    return true
  })
  return swept as ReadonlyArray<string>
})
