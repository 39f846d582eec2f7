/** Tests of moving a closed conversation's payloads into a file, and of `verify` on that file. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { gunzipSync, gzipSync } from "node:zlib"
import { layerMemory } from "../../src/app/DaemonLog.ts"
import { EventLog } from "../../src/core/event-log/EventLog.ts"
import { archivedRune, closing, meddle, note, output, storeFile, withInlineLog, withLog } from "./Disk.ts"

const STREAM = "shop-1a2b3c4d"
const COUNT = 600

const archive = (log: EventLog["Service"], stream = STREAM) => log.archive(stream, () => archivedRune(stream))

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
  return { file, path: join(dirname(file), "archive", `${STREAM}.jsonl.gz`) }
})

const payloads = (log: EventLog["Service"], stream: string) =>
  Effect.map(Stream.runCollect(log.read({ stream })), (runes) => runes.map(({ payload }) => payload))

const problemsOf = (file: string) =>
  withInlineLog({ file }, (log) => Effect.map(log.verify, (verdict) => verdict.problems))

const inOther = COUNT / 3
const inStream = COUNT - inOther + 1

describe("archive", () => {
  it.effect(
    "moves the payloads of a closed conversation into a file; the chain stays whole, others stay as they are",
    () =>
      Effect.gen(function* () {
        const { file, path } = yield* closed
        const before = yield* withLog({ file }, (log) => payloads(log, STREAM))
        const { archived, rune } = yield* withLog({ file }, (log) => archive(log))
        expect(archived).toMatchObject({ file: `archive/${STREAM}.jsonl.gz`, runes: inStream, lastEventId: COUNT + 1 })
        expect(rune).toMatchObject({ stream: "daemon", kind: "session.archived" })
        const [header, ...lines] = gunzipSync(readFileSync(path)).toString().trimEnd().split("\n")
        expect(JSON.parse(header!)).toEqual({ agentd: "archive", version: 1, stream: STREAM })
        expect(lines.map((line) => JSON.parse(line).payload)).toEqual(before)
        yield* withLog({ file }, (log) =>
          Effect.gen(function* () {
            expect((yield* log.verify).problems).toEqual([])
            const after = yield* payloads(log, STREAM)
            expect(after).toHaveLength(inStream)
            expect(after.every((payload) => payload["archived"] === true)).toBe(true)
            const other = yield* payloads(log, "other")
            expect(other).toHaveLength(inOther)
            expect(other[0]).toMatchObject({ event: { n: 0 } })
            expect(yield* log.tail({ stream: STREAM }, 1)).toMatchObject([
              { kind: "session.closed", eventId: archived.lastEventId, seq: inStream }
            ])
          })
        )
      })
  )

  it.effect("refuses a conversation that is open, and one that never was", () =>
    Effect.gen(function* () {
      const { file } = yield* closed
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          for (const stream of ["other", "nobody", "daemon"]) {
            expect(yield* Effect.flip(archive(log, stream))).toMatchObject({ _tag: "RuneRefused", rule: "unsealed" })
          }
          expect((yield* payloads(log, "other"))[0]).toMatchObject({ event: { n: 0 } })
        })
      )
    })
  )

  it.effect("a log in memory has no place for it", () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      expect(yield* Effect.flip(archive(log))).toMatchObject({ _tag: "StorageError", reason: "no-archive" })
    }).pipe(Effect.provide(layerMemory))
  )
})

/** Cases of a kill -9 at each step, and of the second `archive` that finishes it. */
describe("an archive that was cut off", () => {
  const finish = (file: string) =>
    withLog({ file }, (log) =>
      Effect.gen(function* () {
        const { archived } = yield* archive(log)
        expect(archived.runes).toBe(inStream)
        expect((yield* log.verify).problems).toEqual([])
        expect((yield* payloads(log, STREAM)).every((payload) => payload["archived"] === true)).toBe(true)
        expect(yield* Stream.runCount(log.read({ kinds: ["session.archived"] }))).toBe(1)
      })
    )

  it.effect("while the file was written, or before the log says so: the file is written anew, whatever is there", () =>
    Effect.gen(function* () {
      const { file, path } = yield* closed
      mkdirSync(dirname(path))
      writeFileSync(`${path}.part`, "half of it")
      writeFileSync(path, "not even gzip")
      expect(yield* problemsOf(file), "no rune speaks of it").toEqual([])
      yield* finish(file)
    })
  )

  it.effect("since its folder cannot be written: nothing is erased, and the next one does it all", () =>
    Effect.gen(function* () {
      const { file, path } = yield* closed
      writeFileSync(dirname(path), "in the way")
      expect(yield* Effect.flip(withLog({ file }, (log) => archive(log)))).toMatchObject({ reason: "io" })
      expect((yield* withLog({ file }, (log) => payloads(log, STREAM)))[0]).toMatchObject({ event: { n: 1 } })
      rmSync(dirname(path))
      yield* finish(file)
    })
  )

  it.effect(
    "after the log says so, with no payload or only some of them erased: they are all read, and erased then",
    () =>
      Effect.gen(function* () {
        for (const erased of [0, 100, COUNT]) {
          const { file, path } = yield* closed
          yield* withLog({ file }, (log) => log.append([archivedRune(STREAM)]))
          // as the first `archive` wrote it
          const other = yield* closed
          yield* withLog({ file: other.file }, (log) => archive(log))
          mkdirSync(dirname(path))
          writeFileSync(path, readFileSync(other.path))
          meddle(file, `UPDATE runes SET payload = NULL WHERE stream = '${STREAM}' AND event_id <= ${erased}`)
          expect(yield* problemsOf(file)).toEqual([])
          yield* finish(file)
        }
      })
  )
})

describe("verify", () => {
  const cases: ReadonlyArray<readonly [name: string, damage: (path: string) => void, at: number, said: RegExp]> = [
    ["an archive that is missing", (path) => rmSync(path), 2, /is missing/],
    [
      "a byte of an archive that flipped",
      (path) => {
        const bytes = readFileSync(path)
        bytes[bytes.length >> 1]! ^= 1
        writeFileSync(path, bytes)
      },
      0,
      /is damaged|is not the one that was appended/
    ],
    [
      "an archive that was cut short",
      (path) => writeFileSync(path, readFileSync(path).subarray(0, -20)),
      0,
      /is damaged|ends before it/
    ],
    [
      "a payload that was changed in an archive",
      (path) => writeFileSync(path, gzipSync(gunzipSync(readFileSync(path)).toString().replace('"n":5,', '"n":6,'))),
      6,
      /the payload in its archive is not the one that was appended/
    ],
    [
      "a rune that was taken out of the end of an archive",
      (path) =>
        writeFileSync(
          path,
          gzipSync(`${gunzipSync(readFileSync(path)).toString().split("\n").slice(0, -2).join("\n")}\n`)
        ),
      COUNT + 1,
      /ends before it/
    ],
    [
      "the archive of another conversation",
      (path) => writeFileSync(path, gzipSync('{"agentd":"archive","version":1,"stream":"x"}\n')),
      2,
      /does not begin as one of this stream/
    ]
  ]

  for (const [name, damage, at, said] of cases) {
    it.effect(`INV-HASH-VALID: ${name}`, () =>
      Effect.gen(function* () {
        const { file, path } = yield* closed
        yield* withLog({ file }, (log) => archive(log))
        expect(yield* problemsOf(file)).toEqual([])
        damage(path)
        const [first] = yield* problemsOf(file)
        expect(first).toMatchObject({ stream: STREAM, rule: "INV-HASH-VALID" })
        expect(first!.message).toMatch(said)
        if (at > 0) expect(first!.eventId).toBe(at)
        const refused = yield* Effect.flip(withLog({ file }, (log) => archive(log)))
        expect(refused).toMatchObject({ _tag: "StorageError", reason: "corrupt" })
      })
    )
  }
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
