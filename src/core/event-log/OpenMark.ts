/**
 * OpenMark: a mark in a store's database file that says that runes may lie in its write-ahead log, and in which file. A
 * copy of the file alone, made while a daemon has the store open or after it was killed, lacks them: it is recognised,
 * and not taken for an older store.
 *
 * Guarantees: the file bears the mark whenever its write-ahead log holds what the file does not; a file that bears
 * another file's mark and has no such log beside it is a bare copy. The file itself is none, however its daemon ended:
 * SQLite may have folded the log into it. Free of imports at run time but Node's: the log's threads load this file.
 */
import * as fs from "node:fs"
import type { Database } from "./Sqlite.ts"

/** Where SQLite has the user's version in a database file. */
const PLACE = 60

/** A file's own mark: a copy is another file. Never 0. */
const markOf = (file: string): number => 1 + ((fs.statSync(file, { throwIfNoEntry: false })?.ino ?? 0) % 0x7ffffffe)

/** Puts the mark into the file before anything else is written. */
export const set = (database: Database, file: string): void => {
  database.exec(`PRAGMA user_version = ${markOf(file)}`)
  database.exec("PRAGMA wal_checkpoint(PASSIVE)")
}

/** The next checkpoint that is whole takes the mark out of the file, with all that the log holds. */
export const clear = (database: Database): void => database.exec("PRAGMA user_version = 0")

/** A file of another kind has no mark. */
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

/** A file that is there says that the person takes the store as it is. */
const acceptedBy = (file: string): string => `${file}.as-it-is`

/** Whether the file is a copy without its write-ahead log. */
export const isBare = (file: string): boolean =>
  fs.existsSync(file) &&
  ![0, markOf(file)].includes(markIn(file)) &&
  // one in which nothing is will do: the store was copied whole, and all of it was in the file
  !fs.existsSync(`${file}-wal`) &&
  !fs.existsSync(acceptedBy(file))

/** The person's word holds for one start. */
export const accepted = (file: string): void => fs.rmSync(acceptedBy(file), { force: true })

export const refusal = (file: string) => ({
  reason: "bare-copy",
  message: `${file} is a copy without its write-ahead log (${file}-wal): its newest runes are missing.`,
  remedy: `Put that file beside it, or a backup in its place: agentd restore FILE. To go on without what is missing: touch '${acceptedBy(file)}' && agentd start`
})
