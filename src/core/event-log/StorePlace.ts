/**
 * StorePlace: whether a store's file is still where it was opened. One that was removed, or moved, can still be written:
 * nobody will find what was.
 *
 * Guarantees: a file system that does not answer takes no store away. Free of imports at run time but Node's: the log's
 * threads load this file.
 */
import { type Stats, statSync } from "node:fs"
import type { Failure } from "./GroupCommit.ts"

/** SQLite's own code for such a store, SQLITE_READONLY_DBMOVED, which it does not look for in a store that has a write-ahead log. */
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

  /** The file is open. */
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
