/**
 * Definitions: the tables and triggers of a store as SQLite has them written down, and a store where they are damaged,
 * which SQLite would refuse as a whole.
 */
import { Effect } from "effect"
import { Reactivity } from "effect/reactivity"
import { DatabaseSync } from "node:sqlite"
import type { StorageError } from "./EventLog.ts"
import * as Migrations from "./Migrations.ts"
import * as NodeSqlite from "./NodeSqlite.ts"
import { nodeSqlite } from "./Sqlite.ts"
import { fromSqlError } from "./StorageFailure.ts"

/** A row of `sqlite_master`, without the page where its table begins. */
export interface Definition {
  readonly rowid: number
  readonly type: string
  readonly name: string
  readonly tbl_name: string
  readonly sql: string | null
}

const SELECT = "SELECT rowid, type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid"

const MEMORY = ":memory:"

/** The definitions of a store that is made now. */
export const asMigrated: Effect.Effect<ReadonlyArray<Definition>, StorageError> = Effect.scoped(
  Effect.gen(function* () {
    const sql = yield* NodeSqlite.make({ file: MEMORY })
    yield* Migrations.migrate(sql, MEMORY)
    return yield* sql.unsafe<Definition>(SELECT)
  })
).pipe(
  Effect.mapError((error) => (error._tag === "StorageError" ? error : fromSqlError(MEMORY, error))),
  Effect.provide(Reactivity.layer)
)

const textOf = (definitions: ReadonlyArray<object>): string =>
  JSON.stringify(
    definitions
      .map((definition) => Object.values({ ...definition, rowid: 0 }))
      .map(String)
      .toSorted()
  )

export const isDefined = (file: string, definitions: ReadonlyArray<Definition>): boolean => {
  try {
    const database = nodeSqlite.open(file, { readOnly: true })
    try {
      return textOf(database.prepare(SELECT).all()) === textOf(definitions)
    } finally {
      database.close()
    }
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
