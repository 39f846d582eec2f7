/** Tests of archiving a closed conversation, and of archives that an older agentd has made: they go back into the log. */
import { assert, describe, expect, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { gunzipSync, gzipSync } from "node:zlib"
import { layerMemory } from "../../../src/app/DaemonLog.ts"
import { textsIn, without } from "../../../src/core/event-log/Erasure.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import { hashPayload } from "../../../src/core/event-log/HashChain.ts"
import { FreeBytes } from "../../../src/core/event-log/Room.ts"
import { SegmentFile, SegmentWriter } from "../../../src/core/event-log/SegmentFile.ts"
import { archivedRune, closing, meddle, note, output, storeFile, withInlineLog, withLog } from "./Disk.ts"

const STREAM = "shop-1a2b3c4d"
const COUNT = 600
const EVER = Number.MAX_SAFE_INTEGER
/** A rune of the stream. */
const RUNE = 6

/** A closed conversation of so many runes, with another stream between them. */
const closed = Effect.gen(function* () {
  const file = yield* storeFile
  yield* withInlineLog({ file }, (log) =>
    Effect.gen(function* () {
      yield* log.append(
        Array.from({ length: COUNT }, (_, n) => note(n % 3 === 0 ? "other" : STREAM, n, `text ${n} “é” \n`))
      )
      yield* log.append([closing(STREAM)])
    })
  )
  return { file, folder: join(dirname(file), "archive"), path: join(dirname(file), "archive", `${STREAM}.jsonl.gz`) }
})

const payloads = (log: EventLog["Service"], stream: string) =>
  Effect.map(Stream.runCollect(log.read({ stream })), (runes) => runes.map(({ payload }) => payload))

const payloadsIn = (file: string, stream = STREAM) => withInlineLog({ file }, (log) => payloads(log, stream))

/** Writes the file of the stream as the older agentd did, and takes its payloads out of the store. `upTo`: as far as that had come. */
const takeOut = (file: string, upTo = EVER, stream = STREAM): void => {
  const database = new DatabaseSync(file)
  const rows = database
    .prepare("SELECT event_id, payload, payload_hash FROM runes WHERE stream = ? ORDER BY event_id")
    .all(stream)
  database.close()
  const lines = rows.map(
    ({ event_id, payload, payload_hash }) =>
      `{"eventId":${Number(event_id)},"payloadHash":"${String(payload_hash)}","payload":${String(payload)}}`
  )
  const head = JSON.stringify({ agentd: "archive", version: 1, stream })
  mkdirSync(join(dirname(file), "archive"), { recursive: true })
  writeFileSync(join(dirname(file), "archive", `${stream}.jsonl.gz`), gzipSync(`${[head, ...lines].join("\n")}\n`))
  meddle(
    file,
    `UPDATE runes SET payload = NULL WHERE stream = '${stream}' AND event_id <= ${Math.min(upTo, 2 * COUNT)}`
  )
}

/** A state folder with an archive of the older agentd, and what the runes held. */
const archived = Effect.gen(function* () {
  const of = yield* closed
  const before = yield* payloadsIn(of.file)
  yield* withInlineLog({ file: of.file }, (log) => log.append([archivedRune(STREAM)]))
  takeOut(of.file)
  return { ...of, before }
})

const until = (isDone: Effect.Effect<boolean>) =>
  Effect.gen(function* () {
    while (!(yield* isDone)) yield* Effect.sleep("5 millis")
  }).pipe(Effect.timeout("10 seconds"), Effect.orDie)

const isGone = (folder: string) => until(Effect.sync(() => !existsSync(folder)))

const told = (log: EventLog["Service"]) => Effect.map(log.reading, ({ archives }) => archives)

const isTold = (log: EventLog["Service"]) => until(Effect.map(told(log), (said) => said !== undefined))

/** The archive is back in the log, and the log is as it was. */
const isBack = ({ before, file, folder }: Effect.Success<typeof archived>) =>
  Effect.gen(function* () {
    yield* withInlineLog({ file }, (log) =>
      Effect.gen(function* () {
        yield* isGone(folder)
        assert.deepStrictEqual(yield* payloads(log, STREAM), before)
        assert.deepStrictEqual((yield* log.verify).problems, [])
        assert.isUndefined(yield* told(log))
      })
    )
    yield* withInlineLog({ file }, (log) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* payloads(log, STREAM), before)
        assert.deepStrictEqual((yield* log.verify).problems, [])
      })
    )
  })

const inOther = COUNT / 3
const inStream = COUNT - inOther + 1

describe("archive", () => {
  it.effect("says once that a closed conversation is archived; its runes stay as they are", () =>
    Effect.gen(function* () {
      const { file, folder } = yield* closed
      const before = yield* payloadsIn(file)
      const rune = yield* withLog({ file }, (log) => log.archive(STREAM, archivedRune(STREAM)))
      expect(rune).toMatchObject({ stream: "daemon", kind: "session.archived" })
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          expect(yield* log.archive(STREAM, archivedRune(STREAM))).toBeUndefined()
          expect((yield* log.verify).problems).toEqual([])
          expect(yield* payloads(log, STREAM)).toEqual(before)
          expect(before).toHaveLength(inStream)
          expect(yield* Stream.runCount(log.read({ kinds: ["session.archived"] }))).toBe(1)
        })
      )
      expect(existsSync(folder)).toBe(false)
    })
  )

  it.effect("refuses a conversation that is open, and one that never was", () =>
    Effect.gen(function* () {
      const { file } = yield* closed
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          for (const stream of ["other", "nobody", "daemon"]) {
            const refused = yield* Effect.flip(log.archive(stream, archivedRune(stream)))
            expect(refused).toMatchObject({ _tag: "RuneRefused", rule: "unsealed" })
          }
          expect((yield* payloads(log, "other"))[0]).toMatchObject({ event: { n: 0 } })
        })
      )
    })
  )

  it.effect("in memory, too", () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      yield* log.append([note(STREAM, 1), closing(STREAM)])
      expect(yield* log.archive(STREAM, archivedRune(STREAM))).toMatchObject({ kind: "session.archived" })
    }).pipe(Effect.provide(layerMemory))
  )
})

describe("an archive of an older agentd", () => {
  it.live("goes back into the store at the first start; other streams stay as they are", () =>
    Effect.gen(function* () {
      const of = yield* archived
      const other = yield* payloadsIn((yield* closed).file, "other")
      yield* withLog({ file: of.file }, (log) =>
        Effect.gen(function* () {
          yield* isGone(of.folder)
          assert.deepStrictEqual(yield* payloads(log, STREAM), of.before)
          assert.deepStrictEqual(yield* payloads(log, "other"), other)
          assert.deepStrictEqual((yield* log.verify).problems, [])
        })
      )
      yield* isBack(of)
    })
  )

  /** The rows leave the store for segments without their payloads. */
  const sealed = Effect.gen(function* () {
    const of = yield* archived
    const aside = `${of.folder}-aside`
    cpSync(of.folder, aside, { recursive: true })
    rmSync(of.folder, { recursive: true })
    yield* withInlineLog({ file: of.file }, (log) =>
      Effect.gen(function* () {
        yield* log.seal({ upTo: 200, before: EVER, least: 1 })
        yield* until(Effect.sync(() => existsSync(join(dirname(of.file), "segments", "1-200.zst"))))
        yield* log.seal({ upTo: 400, before: EVER, least: 1 })
      })
    )
    cpSync(aside, of.folder, { recursive: true })
    rmSync(aside, { recursive: true })
    return of
  })

  it.live("goes back into the segments that hold its runes, and the rest into the store", () =>
    Effect.gen(function* () {
      const of = yield* sealed
      yield* isBack(of)
      yield* withInlineLog({ file: of.file }, (log) =>
        Effect.gen(function* () {
          const runes = yield* Stream.runCollect(log.read({ kinds: ["segment.rewritten"] }))
          assert.deepStrictEqual(
            runes.map(({ actor, payload }) => [actor, payload["first"]]),
            [
              ["log/archives", 1],
              ["log/archives", 201]
            ]
          )
        })
      )
    })
  )

  it.live("a kill between a segment's new file and the rune that says so: the next start goes on", () =>
    Effect.gen(function* () {
      const of = yield* sealed
      const state = dirname(of.file)
      const copy = join(state, "..", `${state.split("/").at(-1)!}-copy`)
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(copy, { recursive: true, force: true })))
      cpSync(state, copy, { recursive: true })
      yield* withInlineLog({ file: join(copy, "runes.db") }, () => isGone(join(copy, "archive")))
      cpSync(join(copy, "segments", "1-200.zst"), join(state, "segments", "1-200.zst"))
      yield* isBack(of)
    })
  )

  const damages: ReadonlyArray<readonly [name: string, damage: (path: string) => void]> = [
    ["that is missing", (path) => rmSync(path)],
    [
      // the file is one that a put-back could have left, but for a time of day
      "in which a rune was changed",
      (path) => {
        const file = new SegmentFile(path)
        const writer = new SegmentWriter(dirname(path))
        for (let block = 0; block < file.blocks; block++) {
          writer.add(file.rows(block).map((row) => (row.event_id === 3 ? { ...row, at: row.at + 1 } : row)))
        }
        writer.finish(file.footer.heads)
      }
    ]
  ]
  for (const [name, damage] of damages) {
    it.live(`waits where it needs a segment ${name}, and says so; the archive of another conversation goes back`, () =>
      Effect.gen(function* () {
        const of = yield* sealed
        const late = "yard-1a2b3c4d"
        const before = yield* withInlineLog({ file: of.file }, (log) =>
          Effect.gen(function* () {
            yield* log.append([note(late, 1, "a text"), closing(late), archivedRune(late)])
            return yield* payloads(log, late)
          })
        ).pipe(Effect.provideService(FreeBytes, () => 0))
        takeOut(of.file, EVER, late)
        const path = join(dirname(of.file), "segments", "1-200.zst")
        const whole = readFileSync(path)
        damage(path)
        const damaged = existsSync(path) ? readFileSync(path) : undefined
        yield* withInlineLog({ file: of.file }, (log) =>
          Effect.gen(function* () {
            yield* isTold(log)
            assert.match(
              (yield* told(log)) ?? "",
              /^shop-1a2b3c4d: .*shop-1a2b3c4d.jsonl.gz is not put back into the log: /
            )
            assert.match(
              (yield* told(log)) ?? "",
              /1-200\.zst.*\. See what is wrong \(agentd verify\), mend the log .*, then restart the daemon$/
            )
            yield* until(Effect.sync(() => readdirSync(of.folder).length === 1))
            assert.deepStrictEqual(yield* payloads(log, late), before)
            assert.include((yield* log.verify).problems.map(({ message }) => message).join("\n"), path)
          })
        )
        assert.deepStrictEqual(existsSync(path) ? readFileSync(path) : undefined, damaged)
        writeFileSync(path, whole)
        yield* isBack(of)
      })
    )
  }

  for (const upTo of [0, 100, COUNT]) {
    it.live(`a kill when payloads up to rune ${upTo} were out of the store: the rest goes back`, () =>
      Effect.gen(function* () {
        const of = yield* closed
        const before = yield* payloadsIn(of.file)
        yield* withInlineLog({ file: of.file }, (log) => log.append([archivedRune(STREAM)]))
        takeOut(of.file, upTo)
        yield* isBack({ ...of, before })
      })
    )
  }

  it.live("whose rune was never written, or that was never whole, is removed: the log holds all of it", () =>
    Effect.gen(function* () {
      const of = yield* closed
      const before = yield* payloadsIn(of.file)
      mkdirSync(of.folder)
      writeFileSync(of.path, "not even gzip")
      writeFileSync(`${of.path}.part`, "half of it")
      yield* isBack({ ...of, before })
    })
  )

  it.live("without room nothing is changed, a person is told how much is needed, and no text is erased in part", () =>
    Effect.gen(function* () {
      const of = yield* archived
      const bytes = readFileSync(of.path)
      yield* withInlineLog({ file: of.file }, (log) =>
        Effect.gen(function* () {
          yield* isTold(log)
          assert.match((yield* told(log)) ?? "", /that needs 1 MB, and 0 MB are free\. Make room/)
          assert.deepStrictEqual((yield* log.verify).problems, [])
          assert.deepStrictEqual((yield* payloads(log, STREAM))[0], { archived: true })
          const refused = yield* Effect.flip(log.erase(RUNE, "ada"))
          assert.match(refused.message, /its text would stay in an archive/)
        })
      ).pipe(Effect.provideService(FreeBytes, () => 0))
      assert.deepStrictEqual(readFileSync(of.path), bytes)
      yield* isBack(of)
    })
  )

  it.live("texts that were erased in it stay erased, and an erasure that was cut off is finished", () =>
    Effect.gen(function* () {
      for (const isDone of [true, false]) {
        const of = yield* closed
        const before = yield* payloadsIn(of.file)
        const text = JSON.stringify(before[3])
        const fields = textsIn(before[3])
        const rest = without(text, fields)
        const erasing = { eventId: RUNE, stream: STREAM, fields, left: hashPayload(rest), by: "ada" }
        const erased = { eventId: RUNE, stream: STREAM, by: "ada" }
        yield* withInlineLog({ file: of.file }, (log) =>
          log.append([
            archivedRune(STREAM),
            { stream: "daemon", kind: "rune.erasing", actor: "log/eraser", payload: erasing },
            ...(isDone ? [{ stream: "daemon", kind: "rune.erased", actor: "log/eraser", payload: erased }] : [])
          ])
        )
        takeOut(of.file)
        if (isDone) {
          const lines = gunzipSync(readFileSync(of.path)).toString()
          assert.include(lines, text)
          writeFileSync(of.path, gzipSync(lines.replace(text, rest)))
        }
        yield* isBack({ ...of, before: before.with(3, JSON.parse(rest)) })
        for (const name of readdirSync(dirname(of.file), { recursive: true, encoding: "utf8" })) {
          const path = join(dirname(of.file), name)
          if (statSync(path).isFile()) assert.notInclude(readFileSync(path).toString("latin1"), "text 5 ", name)
        }
      }
    })
  )
})

describe("verify", () => {
  const cases: ReadonlyArray<readonly [name: string, damage: (path: string) => void, at: number]> = [
    [
      "a byte of an archive that flipped",
      (path) => {
        const bytes = readFileSync(path)
        bytes[bytes.length >> 1]! ^= 1
        writeFileSync(path, bytes)
      },
      0
    ],
    ["an archive that was cut short", (path) => writeFileSync(path, readFileSync(path).subarray(0, -200)), 0],
    [
      "a payload that was changed in an archive",
      (path) => writeFileSync(path, gzipSync(gunzipSync(readFileSync(path)).toString().replace('"n":5,', '"n":6,'))),
      RUNE
    ],
    [
      "a rune that was taken out of the end of an archive",
      (path) =>
        writeFileSync(
          path,
          gzipSync(`${gunzipSync(readFileSync(path)).toString().split("\n").slice(0, -2).join("\n")}\n`)
        ),
      COUNT + 1
    ],
    [
      "the archive of another conversation",
      (path) => writeFileSync(path, gzipSync('{"agentd":"archive","version":1,"stream":"x"}\n')),
      2
    ]
  ]

  for (const [name, damage, at] of cases) {
    it.live(`INV-HASH-VALID: ${name}: a person is told, the file stays, and the rest goes back`, () =>
      Effect.gen(function* () {
        const of = yield* archived
        const whole = readFileSync(of.path)
        damage(of.path)
        const damaged = readFileSync(of.path)
        yield* withInlineLog({ file: of.file }, (log) =>
          Effect.gen(function* () {
            yield* isTold(log)
            assert.match((yield* told(log)) ?? "", /does not hold \d+ payloads of shop-1a2b3c4d, from rune/)
            const [first] = (yield* log.verify).problems
            assert.deepInclude(first, { rule: "INV-HASH-VALID", stream: STREAM })
            if (at > 0) assert.strictEqual(first?.eventId, at)
            for (const [index, payload] of (yield* payloads(log, STREAM)).entries()) {
              if (payload["archived"] !== true) assert.deepStrictEqual(payload, of.before[index])
            }
          })
        )
        assert.deepStrictEqual(readFileSync(of.path), damaged)
        writeFileSync(of.path, whole)
        yield* isBack(of)
      })
    )
  }

  it.live("INV-HASH-VALID: an archive that is missing", () =>
    Effect.gen(function* () {
      const { file, path } = yield* archived
      rmSync(path)
      const problems = yield* withInlineLog({ file }, (log) => Effect.map(log.verify, (verdict) => verdict.problems))
      assert.strictEqual(problems.length, 1)
      assert.include(problems[0], { eventId: 2, stream: STREAM, rule: "INV-HASH-VALID" })
      assert.match(problems[0]!.message, /is missing/)
    })
  )
})

describe("a sealed stream", () => {
  it.effect("takes nothing more; what comes late and waits for nobody is told in the daemon's", () =>
    Effect.gen(function* () {
      const { file } = yield* closed
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          expect(yield* Effect.flip(log.append([note(STREAM, 1)]))).toMatchObject({ rule: "sealed" })
          yield* log.appendLazy([output(STREAM, "too late")])
          yield* log.append([note("other", 1)])
          const [late] = yield* log.tail({ kinds: ["run.output"] }, 1)
          expect(late).toMatchObject({
            stream: "daemon",
            actor: `${STREAM}/worker/builder`,
            payload: { text: "too late" }
          })
        })
      )
    })
  )
})
