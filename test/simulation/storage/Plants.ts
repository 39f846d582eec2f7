/**
 * Plants: mistakes that the storage simulation must find, each put between the log and SQLite.
 */
import type { Database, Output, Sqlite, Value } from "../../../src/core/event-log/Sqlite.ts"
import { sideFileOf } from "../../../src/core/event-log/SideFile.ts"
import { tapped } from "./Tap.ts"

const isIndex = (file: string) => file.endsWith(sideFileOf(""))

/** A commit is acknowledged, and is made when the next one begins. */
const acknowledgedEarly = (sqlite: Sqlite): Sqlite => {
  const stores = new WeakSet<Database>()
  const late = new WeakSet<Database>()
  return tapped(sqlite, {
    statement: (sql, statement, database) => {
      if (sql.startsWith("INSERT INTO runes")) stores.add(database)
      if (!stores.has(database)) return {}
      if (sql === "COMMIT") return { run: () => late.add(database) }
      if (sql !== "BEGIN IMMEDIATE") return {}
      return {
        run: () => {
          if (late.delete(database)) database.exec("COMMIT")
          statement.run()
        }
      }
    }
  })
}

/** Makes each part of a group a transaction of its own. */
const splitGroups = (sqlite: Sqlite): Sqlite =>
  tapped(sqlite, {
    statement: (sql, statement, database) =>
      sql.startsWith("INSERT INTO runes")
        ? {
            run: (...parameters: Array<Value>) => {
              statement.run(...parameters)
              database.exec("COMMIT; BEGIN IMMEDIATE")
            }
          }
        : {}
  })

/** A commit does not wait for the disk. */
const withoutSync = (sqlite: Sqlite): Sqlite =>
  tapped(sqlite, { exec: (sql, exec) => exec(sql.replace("synchronous=FULL", "synchronous=NORMAL")) })

/** The file beside the store is believed, whichever store it was made of. */
const indexBelieved = (sqlite: Sqlite): Sqlite => {
  let place: Output | undefined
  return tapped(sqlite, {
    statement: (sql, statement, _, file) => {
      if (isIndex(file) && sql.startsWith("SELECT version")) return { get: () => (place = statement.get()) }
      if (isIndex(file) || sql !== "SELECT hash FROM runes WHERE event_id = ?") return {}
      return { get: (id) => (id === place?.["event_id"] ? place : statement.get(id ?? null)) }
    }
  })
}

export interface Plant {
  readonly plant: (sqlite: Sqlite) => Sqlite
  /** As what it is seen. */
  readonly seenAs: RegExp
}

export const plants: { readonly [what: string]: Plant } = {
  "a commit is acknowledged before it is made": {
    plant: acknowledgedEarly,
    seenAs: /the store ends with|a start finds/
  },
  "a group is written in several transactions": {
    plant: splitGroups,
    // what half a group left behind is also met by the next one
    seenAs: /the store ends with|the head says|UNIQUE constraint failed: runes/
  },
  "a commit does not wait for the disk": { plant: withoutSync, seenAs: /the store ends with \d+, not/ },
  "the file beside the store is believed without a look": {
    plant: indexBelieved,
    seenAs: /the store ends with|to the store/
  }
}
