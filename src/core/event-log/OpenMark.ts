/**
 * OpenMark: a mark in a store's database file. It says that the write-ahead log can hold runes, and to which file the
 * mark belongs. A copy of the file alone, made while a daemon has the store open or after it was killed, lacks these
 * runes. The mark shows such a copy, so that it is not taken for an older store.
 *
 * Guarantees: the file has the mark whenever its write-ahead log holds what the file does not. A file with another
 * file's mark, and without such a log next to it, is a bare copy. The file itself is never a bare copy, however its
 * daemon ended: SQLite can have moved the log's content into it. At run time this module needs only Node's own modules:
 * the log's threads load it.
 */
import * as fs from "node:fs"
import type { Database } from "./Sqlite.ts"

/** Byte offset of SQLite's `user_version` in a database file. */
const PLACE = 60

/** The mark of a file, from its inode, because a copy is another file. Never 0. */
const markOf = (file: string): number => 1 + ((fs.statSync(file, { throwIfNoEntry: false })?.ino ?? 0) % 0x7ffffffe)

/** Puts the mark into the file before anything else is written. */
export const set = (database: Database, file: string): void => {
  database.exec(`PRAGMA user_version = ${markOf(file)}`)
  database.exec("PRAGMA wal_checkpoint(PASSIVE)")
}

/**
 * Clears the mark: the next complete checkpoint takes it out of the file, and moves all that the log holds into the
 * file.
 */
export const clear = (database: Database): void => database.exec("PRAGMA user_version = 0")

/** The mark in a file; 0 if it has none, or if it is no SQLite file. */
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

/** Path of a file that a person creates to accept the store as it is. */
const acceptedBy = (file: string): string => `${file}.as-it-is`

/** Whether the file is a copy without its write-ahead log. */
export const isBare = (file: string): boolean =>
  fs.existsSync(file) &&
  ![0, markOf(file)].includes(markIn(file)) &&
  // an empty log is enough: the store was copied whole, and all of it was in the file
  !fs.existsSync(`${file}-wal`) &&
  !fs.existsSync(acceptedBy(file))

/** Removes that file: a person accepts the store for one start only. */
export const accepted = (file: string): void => fs.rmSync(acceptedBy(file), { force: true })

export const refusal = (file: string) => ({
  reason: "bare-copy",
  message: `${file} is a copy without its write-ahead log (${file}-wal): its newest runes are missing.`,
  remedy: `Put that file beside it, or a backup in its place: agentd restore FILE. To go on without what is missing: touch '${acceptedBy(file)}' && agentd start`
})
