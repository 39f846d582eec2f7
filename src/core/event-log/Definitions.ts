/**
 * Definitions: the tables and triggers of a store as SQLite has them written down, and a store where they are damaged,
 * which SQLite would refuse as a whole. Free of imports at run time but Node's: the thread that verifies loads this file.
 */
import { DatabaseSync } from "node:sqlite"
import { type Database, nodeSqlite, using } from "./Sqlite.ts"

/** A row of `sqlite_master`, without the page where its table begins. */
export interface Definition {
  readonly rowid: number
  readonly type: string
  readonly name: string
  readonly tbl_name: string
  readonly sql: string | null
}

/** The tables and triggers of a store, in the order in which they were made. */
export const definitionsIn = (database: Database): ReadonlyArray<Definition> =>
  database
    .prepare("SELECT rowid, type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid")
    .all() as unknown as ReadonlyArray<Definition>

/** The same text for the same definitions, wherever SQLite has put them. */
export const textOf = (definitions: ReadonlyArray<Definition>): string =>
  JSON.stringify(
    definitions
      .map((definition) => Object.values({ ...definition, rowid: 0 }))
      .map(String)
      .toSorted()
  )

export const isDefined = (file: string, definitions: ReadonlyArray<Definition>): boolean => {
  try {
    const there = using(nodeSqlite.open(file, { readOnly: true }), definitionsIn)
    return textOf(there) === textOf(definitions)
  } catch {
    // SQLite reads no definition where one of them is none
    return false
  }
}

/** Writes them into a file whose own are damaged: by their numbers, which name the places of the tables. */
export const mended = (file: string, definitions: ReadonlyArray<Definition>): void => {
  const database = new DatabaseSync(file, { defensive: false })
  try {
    database.exec("PRAGMA writable_schema = ON")
    const there = database.prepare("SELECT rowid FROM sqlite_master ORDER BY rowid").all()
    const same = there.length === definitions.length && there.every(({ rowid }, at) => rowid === definitions[at]!.rowid)
    if (!same) throw Object.assign(new Error("the definitions of its tables cannot be read any more"), { errcode: 11 })
    const set = database.prepare("UPDATE sqlite_master SET type = ?, name = ?, tbl_name = ?, sql = ? WHERE rowid = ?")
    for (const { name, rowid, sql, tbl_name, type } of definitions) set.run(type, name, tbl_name, sql, rowid)
    database.exec("PRAGMA writable_schema = RESET")
  } finally {
    database.close()
  }
}
