/** Tests of the promises of the SqlClient over node:sqlite. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Reactivity } from "effect/reactivity"
import { DatabaseSync } from "node:sqlite"
import * as NodeSqlite from "../../../src/core/event-log/NodeSqlite.ts"
import { storeFile } from "../../event-log/Disk.ts"

const client = (config: NodeSqlite.Config) => NodeSqlite.make(config).pipe(Effect.provide(Reactivity.layer))

describe("NodeSqlite", () => {
  it.effect("commits survive a power cut, and no commit pays for a checkpoint", () =>
    Effect.gen(function* () {
      const sql = yield* client({ file: yield* storeFile })
      expect(yield* sql`PRAGMA journal_mode`).toEqual([{ journal_mode: "wal" }])
      // 2 is FULL.
      expect(yield* sql`PRAGMA synchronous`).toEqual([{ synchronous: 2 }])
      expect(yield* sql`PRAGMA wal_autocheckpoint`).toEqual([{ wal_autocheckpoint: 0 }])
    })
  )

  it.effect("binds what node:sqlite does not: booleans and undefined", () =>
    Effect.gen(function* () {
      const sql = yield* client({ file: yield* storeFile })
      expect(yield* sql`SELECT ${true} AS yes, ${false} AS no, ${undefined} AS nil`).toEqual([
        { yes: 1, no: 0, nil: null }
      ])
    })
  )

  it.effect("a transaction that fails leaves nothing", () =>
    Effect.gen(function* () {
      const sql = yield* client({ file: yield* storeFile })
      yield* sql`CREATE TABLE t (x INTEGER)`
      yield* Effect.flip(sql.withTransaction(Effect.andThen(sql`INSERT INTO t VALUES (1)`, Effect.fail("no"))))
      expect(yield* sql`SELECT * FROM t`).toEqual([])
    })
  )

  it.effect("a lock that another holds fails at once: the process is not stopped while it waits", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      const sql = yield* client({ file })
      yield* sql`CREATE TABLE t (x INTEGER)`
      const other = new DatabaseSync(file)
      other.exec("BEGIN IMMEDIATE")
      expect(yield* sql`PRAGMA busy_timeout`).toEqual([{ timeout: 0 }])
      expect((yield* Effect.flip(sql`INSERT INTO t VALUES (1)`)).reason._tag).toBe("LockTimeoutError")
      other.close()
    })
  )

  it.effect("a client for reading alone writes nothing", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      const writer = yield* client({ file })
      yield* writer`CREATE TABLE t (x INTEGER)`
      const reader = yield* client({ file, readOnly: true })
      expect(yield* reader`SELECT * FROM t`).toEqual([])
      expect((yield* Effect.flip(reader`INSERT INTO t VALUES (1)`)).reason.cause).toMatchObject({ errcode: 8 })
    })
  )
})
