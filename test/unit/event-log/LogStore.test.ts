/** Tests of openings of the store in which the disk fails. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { statSync } from "node:fs"
import { LogStore } from "../../../src/core/event-log/LogStore.ts"
import { SqliteStore } from "../../../src/core/event-log/SqliteStore.ts"
import { type Database, nodeSqlite, type Sqlite } from "../../../src/core/event-log/Sqlite.ts"
import { sideFileOf } from "../../../src/core/event-log/SideFile.ts"
import { tapped } from "../../simulation/storage/Tap.ts"
import { note, storeFile, withInlineLog } from "../../world/event-log/Disk.ts"

/** SQLite whose disk fails where `fails` says so. */
const failing = (fails: (sql: string, file: string) => boolean) => {
  const databases: Array<Database> = []
  const broken = () => {
    throw Object.assign(new Error("disk I/O error"), { errcode: 10 })
  }
  const watched: Sqlite = {
    ...nodeSqlite,
    open: (file, options) => {
      const database = nodeSqlite.open(file, options)
      databases.push(database)
      return database
    }
  }
  const sqlite = tapped(watched, {
    statement: (sql, _, __, file) => (fails(sql, file) ? { all: broken, get: broken } : {})
  })
  return { sqlite, databases }
}

describe("an opening that fails", () => {
  for (const [where, fails] of [
    ["when the runes are read", (sql: string) => sql.includes("ORDER BY event_id LIMIT")],
    ["when the head is read", (sql: string) => sql === "SELECT event_id FROM head"]
  ] as const) {
    it.live(`${where}: no connection is left open, and the next one opens`, () =>
      Effect.gen(function* () {
        const file = yield* storeFile
        yield* withInlineLog({ file }, (log) => log.append([note("a", 1)]))
        const options = { file, home: "daemon", seals: [], guarded: [] }
        const { databases, sqlite } = failing(fails)
        assert.throws(() => new LogStore(options, sqlite), /disk I\/O error/)
        assert.strictEqual(databases.length, 2)
        assert.isTrue(databases.every(({ isOpen }) => !isOpen))
        const store = new LogStore(options)
        assert.strictEqual(store.opened.head, 1)
        store.close()
      })
    )
  }

  it.live("when the file beside it can neither be read nor made anew: likewise", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withInlineLog({ file }, (log) => log.append([note("a", 1)]))
      const { databases, sqlite } = failing((sql, of) => of === sideFileOf(file) && sql.startsWith("SELECT version"))
      let isGone = false
      const withoutFolder: Sqlite = {
        open: (of, options) => {
          if (isGone) throw Object.assign(new Error("disk I/O error"), { errcode: 10 })
          return sqlite.open(of, options)
        },
        remove: () => void (isGone = true)
      }
      assert.throws(
        () => new LogStore({ file, home: "daemon", seals: [], guarded: [] }, withoutFolder),
        /disk I\/O error/
      )
      assert.isTrue(databases.every(({ isOpen }) => !isOpen))
    })
  )
})

it.live("the room of a write-ahead log that a reader has swollen is given back once the reader is gone", () =>
  Effect.gen(function* () {
    const file = yield* storeFile
    yield* withInlineLog({ file }, (log) => log.append([note("a", 1)]))
    const store = new SqliteStore({ file, home: "daemon", seals: [], guarded: [] })
    const sizeOf = () => statSync(`${file}-wal`).size
    const write = () => store.database.exec("INSERT INTO filler VALUES (zeroblob(6000000))")
    store.database.exec("CREATE TABLE filler (bytes)")
    const reader = nodeSqlite.open(file, { readOnly: true })
    reader.exec("BEGIN")
    reader.prepare("SELECT count(*) FROM runes").get()
    for (let at = 0; at < 3; at++) {
      write()
      store.checkpoint()
    }
    assert.isAbove(sizeOf(), 12_000_000)
    assert.isTrue(store.isSwollen)
    assert.throws(() => store.shrink(), /locked/)
    assert.isTrue(store.isSwollen, "it is tried again")
    reader.exec("COMMIT")
    reader.close()
    store.shrink()
    assert.isFalse(store.isSwollen)
    assert.strictEqual(sizeOf(), 0)
    store.close()
  })
)
