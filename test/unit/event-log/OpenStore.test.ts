/** Tests of the promises of a store's connection, and of what a new store holds. */
import { assert, describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { DatabaseSync } from "node:sqlite"
import { textOf } from "../../../src/core/event-log/SchemaRepair.ts"
import * as Migrations from "../../../src/core/event-log/Migrations.ts"
import { openStore, type StoreFile } from "../../../src/core/event-log/Sqlite.ts"
import { storeFile } from "../../world/event-log/Disk.ts"

const store = (of: StoreFile) =>
  Effect.acquireRelease(
    Effect.sync(() => openStore(of)),
    (database) => Effect.sync(() => database.close())
  )

const errcodeOf = (work: () => unknown): unknown => {
  try {
    return work()
  } catch (error) {
    return (error as { readonly errcode: number }).errcode
  }
}

describe("openStore", () => {
  it.effect("commits survive a power cut, and no commit pays for a checkpoint", () =>
    Effect.gen(function* () {
      const database = yield* store({ file: yield* storeFile })
      expect(database.prepare("PRAGMA journal_mode").get()).toMatchObject({ journal_mode: "wal" })
      // 2 is FULL.
      expect(database.prepare("PRAGMA synchronous").get()).toMatchObject({ synchronous: 2 })
      expect(database.prepare("PRAGMA wal_autocheckpoint").get()).toMatchObject({ wal_autocheckpoint: 0 })
    })
  )

  it.effect("a lock that another holds fails at once: the process is not stopped while it waits", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      const database = yield* store({ file })
      database.exec("CREATE TABLE t (x INTEGER)")
      const other = new DatabaseSync(file)
      other.exec("BEGIN IMMEDIATE")
      expect(database.prepare("PRAGMA busy_timeout").get()).toMatchObject({ timeout: 0 })
      assert.strictEqual(
        errcodeOf(() => database.exec("INSERT INTO t VALUES (1)")),
        5
      )
      other.close()
    })
  )

  it.effect("a connection for reading alone writes nothing", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      const writer = yield* store({ file })
      writer.exec("CREATE TABLE t (x INTEGER)")
      const reader = yield* store({ file, readOnly: true })
      expect(reader.prepare("SELECT * FROM t").all()).toEqual([])
      assert.strictEqual(
        errcodeOf(() => reader.exec("INSERT INTO t VALUES (1)")),
        8
      )
    })
  )

  it.effect("the file grows no larger than its limit", () =>
    Effect.gen(function* () {
      const database = yield* store({ file: yield* storeFile, maxBytes: 10 * 4096 })
      database.exec("CREATE TABLE t (x TEXT)")
      assert.strictEqual(
        errcodeOf(() => database.prepare("INSERT INTO t VALUES (?)").run("x".repeat(20 * 4096))),
        13
      )
    })
  )
})

describe("a new store", () => {
  it("has the definitions of version 4, which was released, letter by letter", () => {
    const text = textOf(Migrations.definitions())
    assert.strictEqual(
      createHash("sha256").update(text).digest("hex"),
      "693eedb5eaec5695ef71afc6b759f722c71eeb9ed5cb579b6ea9d0fbd3a17913"
    )
  })

  it.effect("that cannot be brought up to date stays as it was", () =>
    Effect.gen(function* () {
      const database = yield* store({ file: yield* storeFile })
      database.exec("CREATE TABLE left_heads (x INTEGER)")
      assert.throws(() => Migrations.migrate(database, "runes.db"), /could not be brought to schema 4: .*left_heads/)
      assert.isFalse(database.isTransaction)
      expect(database.prepare("SELECT name FROM sqlite_master").all()).toMatchObject([{ name: "left_heads" }])
    })
  )
})
