/**
 * FileLock: an exclusive lock on a file, between processes.
 *
 * Guarantees: the kernel releases the lock however its holder ends, so there is no stale lock. The file is readable only
 * by its owner, and no symbolic link is followed.
 */
import { closeSync, constants, fchmodSync, openSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"

export interface FileLock {
  readonly release: () => void
}

/** SQLite's code of a database that another connection has locked. */
const BUSY = 5

/** An existing file from an older agentd gets the same mode. */
const makeFile = (path: string): void => {
  const { O_CREAT, O_NOFOLLOW, O_RDWR } = constants
  const file = openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600)
  try {
    fchmodSync(file, 0o600)
  } finally {
    closeSync(file)
  }
}

/** Takes the lock. Waits for its holder for at most `patience` ms, and then throws an error that `isTaken` knows. */
export const take = (path: string, patience: number): FileLock => {
  makeFile(path)
  const database = new DatabaseSync(path, { timeout: patience })
  try {
    database.exec("BEGIN EXCLUSIVE")
    return { release: () => database.close() }
  } catch (error) {
    database.close()
    throw error
  }
}

export const isTaken = (error: unknown): boolean =>
  error instanceof Error && "errcode" in error && error.errcode === BUSY
