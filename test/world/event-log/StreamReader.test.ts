/** A stream read once, by all the folds that the program has named; snapshots near its end; subscribers' positions. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, Schedule, Scope } from "effect"
import { DatabaseSync } from "node:sqlite"
import type { EventLog } from "../../../src/core/event-log/EventLog.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { pieces } from "../../../src/core/event-log/JsonPieces.ts"
import { KEEP_EVERY } from "../../../src/core/event-log/SnapshotKeeper.ts"
import { PAGE_BYTES } from "../../../src/core/event-log/SqlReader.ts"
import type { StreamFold } from "../../../src/core/event-log/StreamFold.ts"
import { sideFileOf } from "../../../src/core/event-log/SideFile.ts"
import { MAX_SNAPSHOT, WORTH_KEEPING } from "../../../src/core/event-log/StreamReader.ts"
import * as StoreReads from "../../support/StoreReads.ts"
import { archivedRune, closing, force, note, openLog, storeFile, withLog } from "./Disk.ts"

const numberOf = ({ payload }: Rune): number => (payload["event"] as { readonly n: number }).n

const isOurs = (stream: string): boolean => stream.startsWith("s")
const sum: StreamFold<number> = {
  name: "sum",
  version: 1,
  initial: 0,
  of: isOurs,
  apply: (all, rune) => all + numberOf(rune)
}
const last: StreamFold<number> = {
  name: "last",
  version: 1,
  initial: -1,
  of: isOurs,
  apply: (_, rune) => numberOf(rune)
}
const picky: StreamFold<number> = {
  name: "picky",
  version: 1,
  initial: 0,
  apply: (count, rune) => {
    if (numberOf(rune) === 4) throw new Error("four is too many")
    return count + 1
  }
}

/** As a state is before any rune. */
const untouched = (state: number) => ({ state, eventId: 0, read: 0 })

const fill = (log: EventLog["Service"], runes: number, streams: number) =>
  Effect.forEach(
    Array.from({ length: Math.ceil(runes / 64) }, (_, group) => group * 64),
    (first) =>
      log.append(
        Array.from({ length: Math.min(64, runes - first) }, (_, n) => note(`s${(first + n) % streams}`, first + n))
      )
  )

/** So many runes, in turn in so many streams. */
const filled = Effect.fnUntraced(function* (runes: number, streams = 4) {
  const file = yield* storeFile
  yield* withLog({ file }, (log) => fill(log, runes, streams))
  return file
})

const folds = [sum, last]
const multiples = (runes: number, streams: number, rest: number): ReadonlyArray<number> =>
  Array.from({ length: runes }, (_, n) => n).filter((n) => n % streams === rest)
const total = (numbers: ReadonlyArray<number>): number => numbers.reduce((all, n) => all + n, 0)

const snapshotsOf = (file: string, stream: string) => {
  const index = new DatabaseSync(sideFileOf(file), { readOnly: true })
  try {
    const rows = index.prepare("SELECT name, event_id FROM snapshots WHERE stream = ? ORDER BY name").all(stream)
    return rows.map((row) => [row["name"], row["event_id"]])
  } finally {
    index.close()
  }
}

describe("the states of a stream", () => {
  it.live("are read in one pass, whichever feature asks first: no rune is read twice, none of another stream", () =>
    Effect.gen(function* () {
      const file = yield* filled(40)
      const reads = yield* StoreReads.count
      yield* withLog({ file, folds }, (log) =>
        Effect.gen(function* () {
          reads.runes.length = 0
          const { last: newest } = yield* log.recover("s1", { last })
          const { sum: all } = yield* log.recover("s1", { sum })
          assert.deepStrictEqual([newest.state, all.state], [37, total(multiples(40, 4, 1))])
          assert.deepStrictEqual(
            reads.runes,
            multiples(40, 4, 1).map((n) => n + 1)
          )
          assert.deepStrictEqual(yield* log.reading, { streams: 4, read: 1, runes: 10, unreadable: [], aside: [] })
        })
      )
    })
  )

  it.live("two that ask at once wait for one pass", () =>
    Effect.gen(function* () {
      const file = yield* filled(40)
      const reads = yield* StoreReads.count
      yield* withLog({ file, folds }, (log) =>
        Effect.gen(function* () {
          reads.runes.length = 0
          const all = yield* Effect.all([log.recover("s2", { sum }), log.recover("s2", { last })], {
            concurrency: "unbounded"
          })
          assert.deepStrictEqual([all[0].sum.state, all[1].last.state], [total(multiples(40, 4, 2)), 38])
          assert.lengthOf(reads.runes, 10)
        })
      )
    })
  )

  it.live("who asks later has what was appended since, and the store is not asked for it", () =>
    Effect.gen(function* () {
      const file = yield* filled(40)
      const reads = yield* StoreReads.count
      yield* withLog({ file, folds }, (log) =>
        Effect.gen(function* () {
          yield* log.recover("s1", { last })
          yield* log.append([note("s1", 100), note("s2", 7)])
          reads.runes.length = 0
          const { sum: all } = yield* log.recover("s1", { sum })
          assert.deepStrictEqual([all.state, all.eventId], [total(multiples(40, 4, 1)) + 100, 41])
          assert.deepStrictEqual(reads.runes, [])
          // taken once, a state is its taker's: another asker has one of its own
          assert.strictEqual((yield* log.recover("s1", { sum })).sum.state, all.state)
        })
      )
    })
  )

  it.live("a fold that throws fails alone, and is reported", () =>
    Effect.gen(function* () {
      const file = yield* filled(40)
      yield* withLog({ file, folds: [...folds, picky] }, (log) =>
        Effect.gen(function* () {
          const refused = yield* Effect.flip(log.recover("s0", { picky }))
          assert.strictEqual(refused.reason, "fold")
          assert.match(refused.message, /picky of s0 .*four is too many/)
          assert.strictEqual((yield* log.recover("s0", { sum })).sum.state, total(multiples(40, 4, 0)))
          assert.strictEqual((yield* log.recover("s1", { picky })).picky.state, 10)
          assert.deepStrictEqual(
            (yield* log.reading).unreadable.map(({ stream }) => stream),
            ["s0"]
          )
        })
      )
    })
  )

  it.live("a stream that cannot be read is reported and stops no other", () =>
    Effect.gen(function* () {
      const file = yield* filled(40)
      force(file, "UPDATE runes SET payload = 'no JSON' WHERE event_id = 6")
      yield* withLog({ file, folds }, (log) =>
        Effect.gen(function* () {
          for (const stream of ["s0", "s1", "s2", "s3"]) yield* Effect.ignore(log.recover(stream, { sum }))
          assert.strictEqual((yield* Effect.flip(log.recover("s1", { last }))).reason, "corrupt")
          assert.strictEqual((yield* log.recover("s2", { last })).last.state, 38)
          const { read, streams, unreadable } = yield* log.reading
          assert.deepStrictEqual([streams, read], [4, 4])
          assert.deepStrictEqual(unreadable.length, 1)
          assert.match(unreadable[0]!.message, /rune 6 \(s1\)/)
        })
      )
    })
  )

  it.live("an archived stream is not read: no fold asks the store for its runes, at no start", () =>
    Effect.gen(function* () {
      const file = yield* filled(40)
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          yield* log.append([closing("s1")])
          yield* log.archive("s1", archivedRune("s1"))
        })
      )
      const reads = yield* StoreReads.count
      yield* withLog({ file, folds }, (log) =>
        Effect.gen(function* () {
          reads.rows = 0
          const { last: newest } = yield* log.recover("s1", { last })
          const { sum: all } = yield* log.recover("s1", { sum })
          assert.deepStrictEqual([newest, all], [untouched(-1), untouched(0)])
          assert.strictEqual(reads.rows, 0)
          assert.strictEqual((yield* log.recover("s2", { last })).last.state, 38)
          assert.isAbove(reads.rows, 0)
          // the daemon's stream holds nothing for these folds
          assert.deepStrictEqual(yield* log.reading, { streams: 3, read: 1, runes: 10, unreadable: [], aside: [] })
        })
      )
    })
  )

  it.live("are read by bytes, too: many large payloads are never in memory at once", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      const large = "x".repeat(PAGE_BYTES / 4)
      yield* withLog({ file }, (log) =>
        Effect.forEach(multiples(24, 1, 0), (n) => log.append([note("s0", n, n === 7 ? large.repeat(3) : large)]))
      )
      const reads = yield* StoreReads.count
      yield* withLog({ file, folds }, (log) =>
        Effect.gen(function* () {
          reads.bytes.length = 0
          assert.strictEqual((yield* log.recover("s0", { sum })).sum.state, total(multiples(24, 1, 0)))
          assert.isAbove(reads.bytes.length, 6)
          assert.isBelow(Math.max(...reads.bytes), PAGE_BYTES + 4_096)
        })
      )
    })
  )
})

describe("snapshots", () => {
  it.live("a start that has read much keeps them: the next one reads what came after", () =>
    Effect.gen(function* () {
      const runes = WORTH_KEEPING * 3
      const file = yield* filled(runes, 2)
      const recovered = withLog({ file, folds }, (log) =>
        Effect.gen(function* () {
          const { sum: all } = yield* log.recover("s1", { sum })
          yield* log.append([note("s1", 1)])
          return all
        })
      )
      assert.strictEqual((yield* recovered).read, runes / 2)
      const again = yield* recovered
      assert.deepStrictEqual([again.read, again.state], [1, total(multiples(runes, 2, 1)) + 1])
    })
  )

  it.live("a daemon that runs long keeps them near the end: a crash costs the next start a short tail", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      const scope = yield* Scope.make()
      yield* Effect.gen(function* () {
        const log = yield* openLog({ file, folds })
        yield* fill(log, KEEP_EVERY + 200, 1)
        yield* Effect.sync(() => snapshotsOf(file, "s0").length).pipe(
          Effect.repeat({ until: (found) => found === 2, schedule: Schedule.spaced("5 millis") })
        )
      }).pipe(Scope.provide(scope))
      const kept = snapshotsOf(file, "s0")
      assert.isTrue(kept.every(([, eventId]) => Number(eventId) >= KEEP_EVERY))
      yield* Scope.close(scope, Exit.void)
      // at the orderly end they are brought up to the last rune, where that is worth it
      assert.deepStrictEqual(snapshotsOf(file, "s0"), [
        ["last", KEEP_EVERY + 200],
        ["sum", KEEP_EVERY + 200]
      ])
    })
  )
})

describe("a large state", () => {
  it.live("the log's end goes on over it for a bounded time, and keeps what it has by then", () =>
    Effect.gen(function* () {
      const texts: StreamFold<ReadonlyArray<string>> = {
        name: "texts",
        version: 1,
        initial: [],
        of: isOurs,
        apply: (all, rune) => [...all, String(numberOf(rune)).padEnd(2_048)]
      }
      const file = yield* storeFile
      const scope = yield* Scope.make()
      const kept = Effect.sync(() => snapshotsOf(file, "s0").map(([, eventId]) => Number(eventId)))
      const runes = 2 * KEEP_EVERY + 4_096
      yield* Effect.gen(function* () {
        const log = yield* openLog({ file, folds: [texts] })
        yield* fill(log, KEEP_EVERY, 1)
        yield* Effect.repeat(kept, { until: ({ length }) => length === 1, schedule: Schedule.spaced("5 millis") })
        yield* fill(log, runes - KEEP_EVERY, 1)
      }).pipe(Scope.provide(scope))
      const live = yield* Effect.clockWith(Effect.succeed)
      let looks = 0n
      const clock: Clock.Clock = Object.assign(Object.create(live) as Clock.Clock, {
        monotonicTimeNanos: Effect.sync(() => 400_000_000n * ++looks)
      })
      yield* Effect.provideService(Scope.close(scope, Exit.void), Clock.Clock, clock)
      const [at = 0] = yield* kept
      assert.isTrue(at > KEEP_EVERY && at < runes, String(at))
    })
  )

  it("its JSON is made in pieces, and is the same", () => {
    const row = (n: number) => ({ n, text: "x", of: Array.from({ length: n % 3 }, String), gone: undefined })
    const values: ReadonlyArray<unknown> = [
      null,
      [],
      Array.from({ length: 1_000 }, (_, n) => row(n)),
      { a: Array.from({ length: 257 }, (_, n) => n), gone: undefined, "b\n": { c: [[], Array(600).fill(null)] } },
      [["g1", { plan: Array.from({ length: 512 }, (_, n) => row(n)) }], undefined, "end"],
      Array.from({ length: 300 }, () => Array.from({ length: 300 }, () => 1))
    ]
    for (const value of values) assert.strictEqual([...pieces(value)].join(""), JSON.stringify(value))
    assert.isAbove([...pieces(values[2])].length, 4)
  })

  const lines = (bytes: number): StreamFold<ReadonlyArray<string>> => ({
    name: "lines",
    version: 1,
    initial: [],
    apply: (all) => [...all, "x".repeat(bytes)]
  })
  it.live("has a snapshot; one beyond the limit has none, and its stream is read", () =>
    Effect.gen(function* () {
      const file = yield* filled(WORTH_KEEPING, 1)
      for (const [bytes, tail] of [
        [20_000, 0],
        [MAX_SNAPSHOT / WORTH_KEEPING, WORTH_KEEPING]
      ] as const) {
        const fold = { ...lines(bytes), version: bytes }
        const recovered = withLog({ file, folds: [fold] }, (log) => log.recover("s0", { fold }))
        assert.strictEqual((yield* recovered).fold.read, WORTH_KEEPING)
        const { read, state } = (yield* recovered).fold
        assert.deepStrictEqual([read, state.length], [tail, WORTH_KEEPING])
      }
    })
  )
})

describe("a subscriber", () => {
  const collect = (log: EventLog["Service"], heard: Array<number>, enough: number) =>
    Effect.gen(function* () {
      const following = yield* Effect.forkChild(
        log.follow("ear", { kinds: ["inbox.received"] }, (runes) =>
          Effect.sync(() => void heard.push(...runes.map(({ eventId }) => eventId)))
        )
      )
      yield* Effect.sync(() => heard.length).pipe(
        Effect.repeat({ until: (length) => length >= enough, schedule: Schedule.spaced("5 millis") })
      )
      // the last piece is handled when there is nothing more to wait for
      yield* Effect.yieldNow
      yield* Fiber.interrupt(following)
    })

  it.live("goes on where it stopped, and the store is not read up to there", () =>
    Effect.gen(function* () {
      const file = yield* filled(3_000)
      const [first, then]: [Array<number>, Array<number>] = [[], []]
      yield* withLog({ file }, (log) => collect(log, first, 3_000))
      assert.lengthOf(first, 3_000)
      const reads = yield* StoreReads.count
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          reads.runes.length = 0
          yield* log.append([note("s1", 1)])
          yield* collect(log, then, 1)
          assert.deepStrictEqual(then, [3_001])
          assert.isBelow(reads.runes.length, 3)
        })
      )
    })
  )

  it.live("hears again what it did not complete", () =>
    Effect.gen(function* () {
      const file = yield* filled(10)
      const heard: Array<number> = []
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          yield* Effect.flip(log.follow("ear", {}, () => Effect.fail("deaf")))
          yield* collect(log, heard, 10)
          assert.lengthOf(heard, 10)
        })
      )
    })
  )

  it.live("whose position names no rune of this store begins anew", () =>
    Effect.gen(function* () {
      const file = yield* filled(10)
      const heard: Array<number> = []
      yield* withLog({ file }, (log) => collect(log, [], 10))
      const index = new DatabaseSync(sideFileOf(file))
      index.exec("UPDATE subscribers SET hash = 'another store'")
      index.close()
      yield* withLog({ file }, (log) => collect(log, heard, 10))
      assert.lengthOf(heard, 10)
    })
  )
})
