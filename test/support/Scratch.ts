/**
 * Scratch: where a test puts a store that is to be written and read, not to outlive a power
 * cut: in memory where the machine has a folder for that and room in it, so that the disk's
 * fsync, which other programs slow down, is not waited for. The files and their locks are
 * real ones there, too. What runs a program of its own from a folder uses the disk's.
 */
import { accessSync, constants, mkdtempSync, rmSync, statfsSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"

const MEMORY = "/dev/shm"
/** Bytes: containers have as little as 64 MB there. */
const ROOM = 1_000_000_000

const parent = (): string => {
  try {
    accessSync(MEMORY, constants.W_OK)
    const { bavail, bsize } = statfsSync(MEMORY)
    return bavail * bsize > ROOM ? MEMORY : tmpdir()
  } catch {
    return tmpdir()
  }
}

/** A new folder of that prefix; who makes it removes it. */
export const make = (prefix: string): string => mkdtempSync(join(parent(), prefix))

/** A folder that is gone when the scope closes. */
export const folder = (prefix: string) =>
  Effect.acquireRelease(
    Effect.sync(() => make(prefix)),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
