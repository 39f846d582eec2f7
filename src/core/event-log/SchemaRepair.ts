/**
 * SchemaRepair: reads the definitions of a store's tables and triggers, as stored by SQLite. Also repairs damaged
 * definitions, because a single damaged definition prevents SQLite from reading the database. At run time this module
 * uses no npm packages, because the thread that verifies loads it.
 */
import { DatabaseSync } from "node:sqlite"
import { type Database, nodeSqlite, using } from "./Sqlite.ts"

/** A row of `sqlite_master`, without the column `rootpage` (the page where the table begins). */
export interface Definition {
  readonly rowid: number
  readonly type: string
  readonly name: string
  readonly tbl_name: string
  readonly sql: string | null
}

/** The tables and triggers of a store, in the order of their creation. */
export const definitionsIn = (database: Database): ReadonlyArray<Definition> =>
  database
    .prepare("SELECT rowid, type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid")
    .all() as unknown as ReadonlyArray<Definition>

/** Returns definitions as text. Equal definitions give the same text, even if their order in SQLite differs. */
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
    // if one definition is damaged, SQLite can read none of them
    return false
  }
}

/**
 * Overwrites the damaged definitions in a file. Each row is updated instead of replaced, because it also stores the
 * page at which its table begins. Throws (SQLite code 11) if the rowids differ.
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
