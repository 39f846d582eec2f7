/**
 * Definitions: reads the definitions of a store's tables and triggers as SQLite has stored them. Repairs them in a
 * store where they are damaged, which SQLite would refuse as a whole. At run time this module needs only Node's own
 * modules: the thread that verifies loads it.
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

/** A text that is the same for the same definitions, wherever SQLite has stored them. */
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
    // if one definition is damaged, SQLite reads none of them
    return false
  }
}

/**
 * Writes the definitions into a file whose own are damaged. Each row is found by its rowid, because the row also names
 * the place of its table. Throws (SQLite code 11) if the rowids differ.
 */
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
