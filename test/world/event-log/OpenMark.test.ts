/** Copies of a store's file alone: recognised where they lack what lay beside it, and only there. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { spawn } from "node:child_process"
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import * as DaemonLog from "../../../src/app/DaemonLog.ts"
import { SqliteStore } from "../../../src/core/event-log/SqliteStore.ts"
import * as StoreCopy from "../../../src/core/event-log/StoreCopy.ts"
import { agentd } from "../cli/Child.ts"
import { folder, note, storeFile, withInlineLog, withLog } from "./Disk.ts"

const appender = fileURLToPath(new URL("../../support/appender.ts", import.meta.url))

const copied = (file: string, to: string, endings: ReadonlyArray<string> = [""]): string => {
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 })
  for (const ending of endings) copyFileSync(`${file}${ending}`, `${to}${ending}`)
  return to
}

const verifying = (file: string) =>
  Effect.flatMap(EventLog, (log) => log.verify).pipe(Effect.provide(DaemonLog.layerReadOnly({ file })))

/** Refused by who reads and by who would write, and as it was afterwards. */
const refused = (file: string) =>
  Effect.gen(function* () {
    const before = readFileSync(file)
    for (const error of [
      yield* Effect.flip(verifying(file)),
      yield* Effect.flip(withInlineLog({ file }, (log) => log.head)),
      yield* Effect.flip(withLog({ file }, (log) => log.head))
    ]) {
      assert.strictEqual(error._tag, "StorageError")
      assert.match(error.message, /copy without its write-ahead log/)
    }
    assert.deepStrictEqual(readFileSync(file), before)
  })

const headOf = (file: string) => withInlineLog({ file }, (log) => log.head)

describe("a copy of the file alone", () => {
  it.live("of a store that is open is refused, from its first rune on; with what lay beside it, it is whole", () =>
    Effect.gen(function* () {
      const base = yield* folder
      const file = join(base, "s", "runes.db")
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          yield* refused(copied(file, join(base, "a", "runes.db")))
          yield* log.append([note("a", 1)])
          yield* refused(copied(file, join(base, "b", "runes.db")))
          const whole = copied(file, join(base, "c", "runes.db"), ["", "-wal"])
          assert.strictEqual(yield* headOf(whole), 1)
        })
      )
      assert.strictEqual(yield* headOf(copied(file, join(base, "d", "runes.db"))), 1)
    })
  )

  it.live("of a store whose daemon was killed is refused; the store itself is not, however often it is killed", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      let head = 0
      for (let round = 0; round < 3; round++) {
        yield* Effect.callback<void>((resume) => {
          const child = spawn(process.execPath, [appender, file, "4"], { stdio: ["ignore", "pipe", "inherit"] })
          child.stdout.once("data", () => child.kill("SIGKILL"))
          child.once("close", () => resume(Effect.void))
        })
        yield* refused(copied(file, join(dirname(file), `${round}`, "runes.db")))
        assert.deepStrictEqual((yield* verifying(file)).problems, [])
        if (round === 1) continue
        const now = yield* headOf(file)
        assert.isAbove(now, head)
        head = now
      }
    })
  )

  it.live("of a store whose file was closed by its last hand without a word is refused; the store itself is not", () =>
    Effect.gen(function* () {
      const base = yield* folder
      const file = join(base, "s", "runes.db")
      yield* withInlineLog({ file }, (log) => log.append([note("a", 1)]))
      const store = new SqliteStore({ file, home: "daemon", seals: [], guarded: [] })
      // folds the write-ahead log into the file and removes it, as a program does that ends in disorder
      store.database.close()
      assert.isFalse(existsSync(`${file}-wal`))
      yield* refused(copied(file, join(base, "a", "runes.db")))
      assert.deepStrictEqual((yield* verifying(file)).problems, [])
      assert.strictEqual(yield* headOf(file), 1)
    })
  )

  it.live("made by a backup, or after texts were erased, lacks nothing", () =>
    Effect.gen(function* () {
      const base = yield* folder
      const file = join(base, "s", "runes.db")
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          const [rune] = yield* log.append([note("a", 1, "a secret text")])
          const copy = join(base, "copy.db")
          yield* StoreCopy.copy(file, copy)
          assert.deepStrictEqual((yield* verifying(copy)).problems, [])
          yield* log.erase(rune!.eventId, "ada")
          yield* log.append([note("a", 2)])
          yield* refused(copied(file, join(base, "a", "runes.db")))
        })
      )
      assert.deepStrictEqual((yield* verifying(file)).problems, [])
    })
  )

  it.live("is told by the command line, and taken as it is where a person says so, once", () =>
    Effect.gen(function* () {
      const base = yield* folder
      const state = join(base, "t")
      const file = join(state, "runes.db")
      yield* withLog({ file: join(base, "s", "runes.db") }, (log) =>
        Effect.gen(function* () {
          yield* log.append([note("a", 1)])
          copied(join(base, "s", "runes.db"), file)
        })
      )
      for (const verb of ["verify", "up"]) {
        const { code, err } = yield* agentd(["--state", state, verb])
        assert.strictEqual(code, 74, err)
        assert.include(err, `touch '${file}.as-it-is' && agentd --state ${state} start`)
      }
      writeFileSync(`${file}.as-it-is`, "")
      yield* withInlineLog({ file }, (log) =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* Stream.runCollect(log.read({})), [])
          assert.isFalse(existsSync(`${file}.as-it-is`))
          yield* refused(copied(file, join(base, "u", "runes.db")))
        })
      )
    })
  )
})
