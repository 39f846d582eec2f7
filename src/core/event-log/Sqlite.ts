/**
 * Sqlite: the interface through which the log uses SQLite, and its implementation with `node:sqlite`. The storage
 * simulation runs the log with another build of SQLite, on a simulated disk.
 *
 * The types describe only the used part of `node:sqlite`, so the objects of `node:sqlite` have these types. At run time
 * this module uses no npm packages, because the log's threads load it.
 */
import { rmSync } from "node:fs"
import { DatabaseSync, type SQLInputValue, type SQLOutputValue } from "node:sqlite"

export type Value = SQLInputValue
export type Output = { readonly [column: string]: SQLOutputValue }

export interface Statement {
  run(...parameters: Array<Value>): unknown
  get(...parameters: Array<Value>): Output | undefined
  /** Returns rows as objects; after `setReturnArrays(true)`, as arrays of values. */
  all(...parameters: Array<Value>): ReadonlyArray<Output>
  setReturnArrays(enabled: boolean): void
}

/** A database connection. Its errors have SQLite's extended result code as `errcode`. */
export interface Database {
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
  readonly isOpen: boolean
  readonly isTransaction: boolean
}

export interface Sqlite {
  readonly open: (file: string, options?: { readonly readOnly?: boolean }) => Database
  /** Deletes a file. A missing file is not an error. */
  readonly remove: (file: string) => void
}

export const nodeSqlite: Sqlite = {
  open: (file, options) => new DatabaseSync(file, { readOnly: options?.readOnly === true }),
  remove: (file) => rmSync(file, { force: true })
}

const PAGE_BYTES = 4096

/**
 * SQL for a connection that writes to a store. Committed data survives a power failure. SQLite never waits for a lock,
 * because that would block the whole thread; the caller retries later. A commit does not checkpoint the write-ahead
 * log. The store's owner does that when it is idle.
 */
const WRITES = `PRAGMA busy_timeout=0; PRAGMA page_size=${PAGE_BYTES}; PRAGMA journal_mode=WAL;
  PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0;`

export interface StoreFile {
  readonly file: string
  /** Maximum size of the file in bytes. */
  readonly maxBytes?: number | undefined
  readonly readOnly?: boolean
}

export const openStore = ({ file, maxBytes, readOnly = false }: StoreFile, sqlite: Sqlite = nodeSqlite): Database => {
  const database = sqlite.open(file, { readOnly })
  try {
    database.exec(readOnly ? "PRAGMA busy_timeout=0; PRAGMA query_only=ON" : WRITES)
    if (maxBytes !== undefined) database.exec(`PRAGMA max_page_count=${Math.ceil(maxBytes / PAGE_BYTES)}`)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

export const using = <A>(database: Database, use: (database: Database) => A): A => {
  try {
    return use(database)
  } finally {
    database.close()
  }
}
