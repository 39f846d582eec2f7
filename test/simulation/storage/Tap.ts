/**
 * Tap: something between the log and its SQLite, which sees each statement before SQLite
 * does: to count, and to plant mistakes.
 */
import type { Database, Sqlite, Statement } from "../../../src/core/event-log/Sqlite.ts"

export interface Taps {
  readonly exec?: (sql: string, exec: (sql: string) => void, database: Database) => void
  readonly statement?: (sql: string, statement: Statement, database: Database, file: string) => Partial<Statement>
}

export const tapped = (sqlite: Sqlite, { exec, statement }: Taps): Sqlite => ({
  remove: sqlite.remove,
  open: (file, options) => {
    const database = sqlite.open(file, options)
    const own: Database = {
      exec: (sql) => (exec === undefined ? database.exec(sql) : exec(sql, (text) => database.exec(text), database)),
      prepare: (sql) => {
        const prepared = database.prepare(sql)
        const plain: Statement = {
          run: (...parameters) => prepared.run(...parameters),
          get: (...parameters) => prepared.get(...parameters),
          all: (...parameters) => prepared.all(...parameters),
          setReturnArrays: (enabled) => prepared.setReturnArrays(enabled)
        }
        return { ...plain, ...statement?.(sql, prepared, database, file) }
      },
      close: () => database.close(),
      get isOpen() {
        return database.isOpen
      },
      get isTransaction() {
        return database.isTransaction
      }
    }
    return own
  }
})
