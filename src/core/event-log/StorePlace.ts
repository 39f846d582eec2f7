/**
 * StorePlace: whether a store's file is still where it was opened. A file that was removed or moved can still be
 * written, but what is written is lost.
 *
 * Guarantees: a file system that does not answer never makes a store count as moved. Imports only Node's modules at run
 * time, because the log's threads load this file.
 */
import { type Stats, statSync } from "node:fs"
import type { Failure } from "./GroupCommit.ts"

/**
 * SQLite's own code for such a store, SQLITE_READONLY_DBMOVED. SQLite does not check for it in a store with a
 * write-ahead log.
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

  /** Call when the file is open. */
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
