/**
 * WalMark: a mark in a store's database file. The mark records that the write-ahead log can contain runes, and to which
 * file the mark belongs. If only the file is copied while a daemon has the store open or after a kill, the copy lacks
 * these runes. With the mark, such a copy is detected and not mistaken for an older store.
 *
 * Guarantees: the file has the mark whenever its write-ahead log contains data that the file lacks. A file is a bare
 * copy if it has another file's mark and no write-ahead log next to it. The original file is never a bare copy, however
 * its daemon ended: SQLite can have moved the log's content into it. At run time this module uses no npm packages,
 * because the log's threads load it.
 */
import * as fs from "node:fs"
import type { Database } from "./Sqlite.ts"

/** Byte offset of SQLite's `user_version` in a database file. */
const PLACE = 60

/** Returns the mark of a file, computed from its inode, because a copy has another inode. Never 0. */
const markOf = (file: string): number => 1 + ((fs.statSync(file, { throwIfNoEntry: false })?.ino ?? 0) % 0x7ffffffe)

/** Writes the mark into the file. Call this before anything else is written. */
export const set = (database: Database, file: string): void => {
  database.exec(`PRAGMA user_version = ${markOf(file)}`)
  database.exec("PRAGMA wal_checkpoint(PASSIVE)")
}

/**
 * Clears the mark. The next complete checkpoint removes it from the file, and moves all content of the write-ahead log
 * into the file.
 */
export const clear = (database: Database): void => database.exec("PRAGMA user_version = 0")

/** Returns the mark in a file; 0 if it has none, or if it is not an SQLite file. */
const markIn = (file: string): number => {
  const bytes = Buffer.alloc(PLACE + 4)
  const handle = fs.openSync(file, "r")
  try {
    const isWhole = fs.readSync(handle, bytes, 0, bytes.length, 0) === bytes.length
    return isWhole && bytes.toString("latin1", 0, 15) === "SQLite format 3" ? bytes.readUInt32BE(PLACE) : 0
  } finally {
    fs.closeSync(handle)
  }
}

/** Path of a file that the user creates to accept the store as it is. */
const acceptedBy = (file: string): string => `${file}.as-it-is`

export const isBare = (file: string): boolean =>
  fs.existsSync(file) &&
  ![0, markOf(file)].includes(markIn(file)) &&
  // an empty write-ahead log is enough: all files of the store were copied, and its database file was complete
  !fs.existsSync(`${file}-wal`) &&
  !fs.existsSync(acceptedBy(file))

/** Deletes the file with which the user has accepted the store, because the acceptance applies to one start only. */
export const accepted = (file: string): void => fs.rmSync(acceptedBy(file), { force: true })

export const refusal = (file: string) => ({
  reason: "bare-copy",
  message: `${file} is a copy without its write-ahead log (${file}-wal): its newest runes are missing.`,
  remedy: `Put that file beside it, or a backup in its place: agentd restore FILE. To go on without what is missing: touch '${acceptedBy(file)}' && agentd start`
})
