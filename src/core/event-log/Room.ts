/** Room: checks whether the disk of a store has enough free space for data that is about to be written. */
import { Context, Effect } from "effect"
import { statfsSync } from "node:fs"

export const FreeBytes = Context.Reference<(folder: string) => number>("agentd/event-log/FreeBytes", {
  defaultValue: () => (folder) => {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  }
})

const megabytes = (bytes: number): string => `${Math.ceil(bytes / 1_000_000).toLocaleString("en-US")} MB`

/** Returns a message about the lack of disk space; undefined if `needed` bytes are free. */
export const lacking = (folder: string, needed: number): Effect.Effect<string | undefined> =>
  Effect.map(FreeBytes, (freeIn) => {
    const free = freeIn(folder)
    return needed > free ? `that needs ${megabytes(needed)}, and ${megabytes(free)} are free` : undefined
  })
