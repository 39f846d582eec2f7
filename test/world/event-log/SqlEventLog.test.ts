/** The log in a file: what holds over openings, and what stops it. */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope, Stream } from "effect"
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as DaemonLog from "../../../src/app/DaemonLog.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import { folder, meddle, OTHER_COLUMNS, note, openLog, output, storeFile, withLog } from "./Disk.ts"
import { PATIENCE } from "../../support/Patience.ts"

const readAll = (file: string) => withLog({ file }, (log) => Stream.runCollect(log.read({})))

/** Opens a log that cannot be opened. */
const refused = (options: DaemonLog.Options) => Effect.flip(withLog(options, () => Effect.void))

const isRoot = process.getuid?.() === 0

describe("SqlRuneLog", () => {
  it.effect("a log goes on where it was: ids, chains, content", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      const first = yield* withLog({ file }, (log) => log.append([note("a", 1), note("b", 2)]))
      const second = yield* withLog({ file }, (log) => log.append([note("a", 3)]))
      expect(second[0]!.eventId).toBe(3)
      expect(yield* readAll(file)).toEqual([...first, ...second])
      expect(yield* withLog({ file }, (log) => log.verify)).toEqual({ runes: 3, streams: 2, erased: [], problems: [] })
    })
  )

  it.effect("the folder is made for this user alone, and the file too", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "deep", "state", "runes.db")
      yield* withLog({ file }, (log) => log.append([note("a", 1)]))
      expect(statSync(dirname(file)).mode & 0o777).toBe(0o700)
      expect(statSync(file).mode & 0o777).toBe(0o600)
    })
  )

  it.effect("concurrent appends share a commit: the group is one transaction", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          const wal = () => statSync(`${file}-wal`).size
          const frame = 4096 + 24
          yield* log.append([note("a", 0)])
          const before = wal()
          yield* Effect.forEach(
            Array.from({ length: 200 }, (_, n) => n),
            (n) => log.append([note("a", n)]),
            {
              concurrency: "unbounded"
            }
          )
          // 200 commits of one rune each would write at least two pages each.
          expect((wal() - before) / frame).toBeLessThan(100)
          expect(yield* log.head).toBe(201)
        })
      )
    })
  )

  it.effect("INV-RUNE-IMMUTABLE: the store itself refuses to change or delete a rune", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withLog({ file }, (log) => log.append([note("a", 1), note("a", 2)]))
      for (const sql of [
        "UPDATE runes SET kind = 'worker.moved' WHERE event_id = 1",
        "UPDATE runes SET payload = '{}' WHERE event_id = 1",
        "UPDATE runes SET from_state = 'x' WHERE event_id = 1",
        "UPDATE runes SET event_id = 9 WHERE event_id = 2",
        "UPDATE runes SET payload = NULL, hash = 'x' WHERE event_id = 1",
        "DELETE FROM runes WHERE event_id = 2"
      ]) {
        expect(() => meddle(file, sql)).toThrow("INV-RUNE-IMMUTABLE")
      }
      expect((yield* withLog({ file }, (log) => log.verify)).problems).toEqual([])
    })
  )

  it.effect("a payload can be erased: the chain stays whole, and the rune reads as empty", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withLog({ file }, (log) => log.append([note("a", 1), note("a", 2)]))
      meddle(file, "UPDATE runes SET payload = NULL WHERE event_id = 1")
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          expect((yield* log.verify).problems).toEqual([])
          expect((yield* log.get(1))?.payload).toEqual({})
          expect(yield* log.append([note("a", 3)])).toHaveLength(1)
        })
      )
    })
  )

  it.effect("a conversation that is closed is sealed, also after the store is opened again", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      const closing = {
        stream: "a",
        kind: "session.closed",
        actor: "conversation/a",
        payload: { event: { _tag: "cleanup_complete", stats: {} } }
      }
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          yield* log.append([note("a", 1), closing])
          expect(yield* Effect.flip(log.append([note("a", 2)]))).toMatchObject({ rule: "sealed" })
        })
      )
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          expect(yield* Effect.flip(log.append([note("a", 2)]))).toMatchObject({ rule: "sealed" })
          expect(yield* log.append([note("b", 1)])).toHaveLength(1)
        })
      )
    })
  )

  it.live("the write-ahead log is folded into the file: under load before it grows large, else when it is quiet", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      const MB = 1024 * 1024
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          for (let group = 0; group < 60; group++) {
            yield* log.append(Array.from({ length: 500 }, (_, n) => note("a", n, "x".repeat(500))))
          }
          expect(statSync(`${file}-wal`).size).toBeLessThan(8 * MB)
          const folded = statSync(file).size
          expect(folded).toBeGreaterThan(8 * MB)
          yield* log.append(Array.from({ length: 3000 }, (_, n) => note("a", n, "x".repeat(500))))
          yield* Effect.sleep("20 millis").pipe(
            Effect.repeat({ until: () => statSync(file).size > folded + MB }),
            Effect.timeout(PATIENCE)
          )
        })
      )
      expect(existsSync(`${file}-wal`)).toBe(false)
    })
  )
})

describe("SqlRuneLog, for reading alone", () => {
  const reading = <A, E>(file: string, use: (log: EventLog["Service"]) => Effect.Effect<A, E>) =>
    Effect.flatMap(EventLog, use).pipe(Effect.provide(DaemonLog.layerReadOnly({ file }), { local: true }))

  it.effect("reads and verifies beside a daemon that writes, and after it", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          yield* log.append([note("a", 1)])
          yield* reading(file, (reader) =>
            Effect.gen(function* () {
              expect(yield* reader.head).toBe(1)
              yield* log.append([note("a", 2)])
              expect(yield* reader.verify).toEqual({ runes: 2, streams: 1, erased: [], problems: [] })
              expect(yield* reader.tail({}, 9)).toEqual(yield* log.tail({}, 9))
              expect(yield* Effect.flip(reader.append([note("a", 3)]))).toMatchObject({ reason: "read-only" })
            })
          )
        })
      )
      expect((yield* reading(file, (reader) => reader.verify)).runes).toBe(2)
    })
  )

  it.effect("says so when there is no store", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      expect(yield* Effect.flip(reading(file, () => Effect.void))).toMatchObject({ reason: "cannot-open" })
      expect(existsSync(file)).toBe(false)
    })
  )
})

describe("StorageError", () => {
  it.effect("not-a-database: a file of another kind is left as it is", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      writeFileSync(file, "a letter to a friend, long enough to be read as a header ".repeat(20))
      const before = readFileSync(file)
      const error = yield* refused({ file })
      expect(error).toMatchObject({ _tag: "StorageError", reason: "not-a-database" })
      expect(error.message).toContain(file)
      expect(error.remedy).toContain("--state")
      expect(readFileSync(file)).toEqual(before)
    })
  )

  it.effect("corrupt: a damaged page is said, and no rune of it is shown", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withLog({ file }, (log) =>
        log.append(Array.from({ length: 300 }, (_, n) => note("a", n, "x".repeat(200))))
      )
      const bytes = readFileSync(file)
      bytes.fill(0xff, 4096 * 4, 4096 * 8)
      writeFileSync(file, bytes)
      expect(yield* refused({ file })).toMatchObject({ reason: "corrupt" })
    })
  )

  it.effect("newer-schema: a store of a newer agentd is refused, for writing and for reading", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withLog({ file }, (log) => log.append([note("a", 1)]))
      meddle(file, "INSERT INTO schema_versions (migration_id, name) VALUES (99, 'tomorrow')")
      const error = yield* refused({ file })
      expect(error).toMatchObject({ reason: "newer-schema" })
      expect(error.message).toContain("99")
      const reader = Effect.provide(EventLog, DaemonLog.layerReadOnly({ file }), { local: true })
      expect(yield* Effect.flip(reader)).toMatchObject({ reason: "newer-schema" })
    })
  )

  it.effect("cannot-open: the folder cannot be made", () =>
    Effect.gen(function* () {
      const path = yield* folder
      writeFileSync(join(path, "state"), "a file where a folder should be")
      const error = yield* refused({ file: join(path, "state", "runes.db") })
      expect(error).toMatchObject({ reason: "cannot-open" })
      expect(error.message).toContain("EEXIST")
    })
  )

  it.effect.skipIf(isRoot)("cannot-open: the folder belongs to somebody else", () =>
    Effect.gen(function* () {
      const path = join(yield* folder, "state")
      mkdirSync(path)
      chmodSync(path, 0o500)
      expect(yield* refused({ file: join(path, "runes.db") })).toMatchObject({ reason: "cannot-open" })
    })
  )

  it.live("full: the log gives up, says so once for all, and keeps what was acknowledged", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      const acknowledged: Array<number> = []
      yield* withLog({ file, maxBytes: 256 * 1024, giveUpAfter: "50 millis" }, (log) =>
        Effect.gen(function* () {
          const failing = yield* Deferred.make<unknown>()
          yield* log.append([note("a", 0, "x".repeat(20_000))]).pipe(
            Effect.tap((runes) => Effect.sync(() => acknowledged.push(...runes.map(({ eventId }) => eventId)))),
            Effect.forever,
            Effect.catch((error) => Deferred.succeed(failing, error))
          )
          const error = yield* Deferred.await(failing)
          expect(error).toMatchObject({ _tag: "StorageError", reason: "full" })
          expect(yield* log.failed).toBe(error)
          expect(yield* Effect.flip(log.append([note("a", 1)]))).toBe(error)
          yield* log.appendLazy([output("a", "into the void")])
        })
      )
      expect(acknowledged.length).toBeGreaterThan(5)
      expect((yield* readAll(file)).map(({ eventId }) => eventId)).toEqual(acknowledged)
    })
  )

  it.live("locked: a lock that passes in time is waited for, and nobody notices", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withLog({ file, giveUpAfter: "20 seconds" }, (log) =>
        Effect.gen(function* () {
          yield* log.append([note("a", 1)])
          const other = new DatabaseSync(file)
          other.exec("BEGIN IMMEDIATE")
          const waiting = yield* log.append([note("a", 2)]).pipe(Effect.forkChild({ startImmediately: true }))
          yield* Effect.sleep("50 millis")
          expect([yield* log.head, yield* log.assigned]).toEqual([1, 2])
          other.exec("ROLLBACK")
          other.close()
          expect((yield* Fiber.join(waiting))[0]!.eventId).toBe(2)
        })
      )
    })
  )

  it.live("locked: a lock that stays makes the log give up after its time", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withLog({ file, giveUpAfter: "100 millis" }, (log) =>
        Effect.gen(function* () {
          yield* log.append([note("a", 1)])
          const other = new DatabaseSync(file)
          other.exec("BEGIN IMMEDIATE")
          expect(yield* Effect.flip(log.append([note("a", 2)]))).toMatchObject({ reason: "locked" })
          expect((yield* log.failed).reason).toBe("locked")
          other.close()
        })
      )
    })
  )

  it.live("locked: a store whose lock is held by another cannot be opened", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      const other = new DatabaseSync(file)
      other.exec("CREATE TABLE t (x); BEGIN EXCLUSIVE")
      expect(yield* refused({ file, giveUpAfter: "50 millis" })).toMatchObject({ reason: "locked" })
      other.close()
    })
  )

  it.effect("INV-EVENTID-MONOTONIC: a second writer's rune makes the log stop, not number twice", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      const scope = yield* Scope.make()
      const log = yield* Scope.provide(openLog({ file }), scope)
      yield* log.append([note("a", 1)])
      meddle(file, `INSERT INTO runes SELECT 2, ${OTHER_COLUMNS} FROM runes WHERE event_id = 1`)
      const error = yield* Effect.flip(log.append([note("a", 2)]))
      expect(error).toMatchObject({ _tag: "StorageError", reason: "taken" })
      expect(error.message).toContain("INV-EVENTID-MONOTONIC")
      expect(yield* log.failed).toBe(error)
      yield* Scope.close(scope, Exit.void)
    })
  )
})
