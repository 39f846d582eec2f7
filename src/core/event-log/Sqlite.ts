/**
 * Sqlite: what the log needs of SQLite, and SQLite as Node has it. The storage simulation
 * runs the log over another build, on a disk that is played.
 *
 * The types are the part of `node:sqlite` that is used: its own objects are handed on as
 * they are. Free of imports at run time but Node's: the log's threads load this file.
 */
import { rmSync } from "node:fs"
import { DatabaseSync, type SQLInputValue, type SQLOutputValue } from "node:sqlite"

export type Value = SQLInputValue
export type Output = { readonly [column: string]: SQLOutputValue }

export interface Statement {
  run(...parameters: Array<Value>): unknown
  get(...parameters: Array<Value>): Output | undefined
  /** Of objects; of arrays of values, where that is set. */
  all(...parameters: Array<Value>): ReadonlyArray<Output>
  setReturnArrays(enabled: boolean): void
  columns(): ReadonlyArray<{ readonly name: string }>
}

/** A connection. Its errors carry SQLite's extended result code as `errcode`. */
export interface Database {
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
  readonly isOpen: boolean
  readonly isTransaction: boolean
}

export interface Sqlite {
  readonly open: (file: string, options?: { readonly readOnly?: boolean }) => Database
  /** A database's file; none that is not there. */
  readonly remove: (file: string) => void
}

export const nodeSqlite: Sqlite = {
  open: (file, options) => new DatabaseSync(file, { readOnly: options?.readOnly === true }),
  remove: (file) => rmSync(file, { force: true })
}
