/**
 * Scratch: chooses the folder for a test's store that need not outlive a power cut. It is in memory if the machine has
 * such a folder with enough room. Then the test does not wait for the disk's fsync, which other programs slow down. The
 * files and their locks are real there too. A test that runs its own program from a folder uses the disk.
 */
import { accessSync, constants, mkdtempSync, rmSync, statfsSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"

const MEMORY = "/dev/shm"
/** Required free space, in bytes: some containers have only 64 MB there. */
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

/** Makes a folder with that prefix; the caller removes it. */
export const make = (prefix: string): string => mkdtempSync(join(parent(), prefix))

/** A folder that is removed with the scope. */
export const folder = (prefix: string) =>
  Effect.acquireRelease(
    Effect.sync(() => make(prefix)),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
