/**
 * StorePlace: checks whether a store's file still has the path at which it was opened. A file that was deleted or moved
 * can still be written, but the written data is lost.
 *
 * Guarantees: if the file system does not answer, the store counts as not moved. At run time this module uses no npm
 * packages, because the log's threads load it.
 */
import { type Stats, statSync } from "node:fs"
import type { Failure } from "./GroupCommit.ts"

/**
 * SQLite's result code for a database file that was moved (SQLITE_READONLY_DBMOVED). SQLite itself does not detect this
 * if the database has a write-ahead log.
 */
export const MOVED = 1032

export const moved: Failure = { code: MOVED, message: "another file, or none, has its name", isFatal: true }

const seen = (file: string): Stats | undefined | "unknown" => {
  try {
    return statSync(file, { throwIfNoEntry: false })
  } catch {
    return "unknown"
  }
}

export class StorePlace {
  private readonly file: string
  private readonly first: ReturnType<typeof seen>

  /** Records which file has the path now. Call this after the file was opened. */
  constructor(file: string) {
    this.file = file
    this.first = seen(file)
  }

  get isLeft(): boolean {
    const { first } = this
    const now = seen(this.file)
    if (first === undefined || first === "unknown" || now === "unknown") return false
    return now === undefined || now.ino !== first.ino || now.dev !== first.dev
  }
}
