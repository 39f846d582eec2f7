/** A stream by itself: read once by all its folds, from their snapshots on; and what is done in doubt. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Equal, HashMap, HashSet, Option, Stream } from "effect"
import { existsSync, rmSync, writeFileSync } from "node:fs"
import * as DaemonLog from "../../../src/app/DaemonLog.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import * as StateJson from "../../../src/core/event-log/StateJson.ts"
import { type Rune } from "../../../src/core/event-log/Rune.ts"
import { checkpointOf, type StreamFold } from "../../../src/core/event-log/StreamFold.ts"
import { sideFileOf } from "../../../src/core/event-log/SideFile.ts"
import { force, meddle, note, storeFile, withLog } from "./Disk.ts"

const numberOf = ({ payload }: Rune): number => (payload["event"] as { readonly n: number }).n

/** The sum of what is said, and who said it. */
const sum = (version = 1): StreamFold<{ readonly sum: number; readonly by: HashMap.HashMap<string, number> }> => ({
  name: "sum",
  version,
  initial: { sum: 0, by: HashMap.empty() },
  apply: ({ by, sum }, rune) => ({ sum: sum + numberOf(rune), by: HashMap.set(by, rune.actor, rune.seq) })
})
const seen: StreamFold<ReadonlyArray<number>> = {
  name: "seen",
  version: 1,
  initial: [],
  apply: (all, { eventId }) => [...all, eventId]
}

/** Forty runes in four streams, in turn. */
const filled = Effect.gen(function* () {
  const file = yield* storeFile
  yield* withLog({ file }, (log) =>
    Effect.forEach(
      Array.from({ length: 40 }, (_, n) => n),
      (n) => log.append([note(`s${n % 4}`, n)])
    )
  )
  return file
})
const total = Array.from({ length: 10 }, (_, n) => n * 4 + 1).reduce((all, n) => all + n, 0)

const recovered = (file: string, version = 1) =>
  withLog({ file }, (log) => log.recover("s1", { sum: sum(version), seen }))

/** Keeps the sum as the stream stands, and leaves the store. */
const keep = (file: string) =>
  withLog({ file }, (log) =>
    Effect.gen(function* () {
      const { sum: at } = yield* log.recover("s1", { sum: sum() })
      log.keep("s1", sum(), at.state, at.eventId)
      yield* log.append([note("s1", 100), note("s2", 7)])
    })
  )

describe("recover", () => {
  it.live("a stream is read once, and by itself: no rune of another stream is", () =>
    Effect.gen(function* () {
      const file = yield* filled
      const all = yield* recovered(file)
      assert.strictEqual(all.sum.state.sum, total)
      assert.deepStrictEqual([all.sum.read, all.seen.read, all.seen.eventId], [10, 10, 38])
      assert.deepStrictEqual(all.seen.state, [2, 6, 10, 14, 18, 22, 26, 30, 34, 38])
      const none = yield* withLog({ file }, (log) => log.recover("nobody", { seen }))
      assert.deepStrictEqual(none.seen, { state: [], eventId: 0, read: 0 })
    })
  )

  it.live("from a snapshot only what came after it is read; a fold without one reads all", () =>
    Effect.gen(function* () {
      const file = yield* filled
      yield* keep(file)
      const { seen: whole, sum: tail } = yield* recovered(file)
      assert.deepStrictEqual([tail.read, whole.read], [1, 11])
      assert.strictEqual(tail.state.sum, total + 100)
      const { sum: full } = yield* recovered(file, 2)
      assert.strictEqual(full.read, 11, "another version of the fold is another fold")
      assert.isTrue(Equal.equals(full.state.by, tail.state.by))
    })
  )

  const doubts: ReadonlyArray<readonly [name: string, damage: (file: string) => void]> = [
    ["its state was changed", (file) => meddle(sideFileOf(file), "UPDATE snapshots SET state = CAST('{}' AS BLOB)")],
    ["it claims a later rune", (file) => meddle(sideFileOf(file), "UPDATE snapshots SET event_id = 34")],
    ["it claims more versions", (file) => meddle(sideFileOf(file), "UPDATE snapshots SET version = 2")],
    ["the stream has another past", (file) => force(file, "UPDATE runes SET hash = 'x' WHERE event_id = 38")],
    ["its file is no database", (file) => writeFileSync(sideFileOf(file), "a letter to a friend ".repeat(500))],
    [
      "its file is gone",
      (file) => {
        for (const end of ["", "-wal", "-shm"]) rmSync(sideFileOf(file) + end, { force: true })
      }
    ]
  ]
  for (const [name, damage] of doubts) {
    it.live(`a snapshot in doubt is none: ${name}`, () =>
      Effect.gen(function* () {
        const file = yield* filled
        yield* keep(file)
        damage(file)
        const { sum: full } = yield* recovered(file)
        assert.deepStrictEqual([full.read, full.state.sum], [11, total + 100])
      })
    )
  }

  it.live("a checkpoint rune holds the stream's state in its chain, and folds", () =>
    Effect.gen(function* () {
      const file = yield* filled
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          const { sum: at } = yield* log.recover("s1", { sum: sum() })
          yield* log.append([checkpointOf("s1", "log/writer", [[sum(), at.state]]), note("s1", 5)])
          const blank: StreamFold<{ readonly sum: number; readonly by: HashMap.HashMap<string, number> }> = {
            ...sum(),
            // what lies before the checkpoint is of no consequence
            apply: (state, rune) => (rune.eventId < 40 ? state : sum().apply(state, rune))
          }
          const { sum: from } = yield* log.recover("s1", { sum: blank })
          assert.strictEqual(from.state.sum, total + 5)
          assert.deepStrictEqual((yield* log.verify).problems, [])
        })
      )
    })
  )

  it.live("the log says which streams there are; a cause is found by its stream and seq", () =>
    Effect.gen(function* () {
      const file = yield* filled
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          const streams = yield* log.streams
          assert.sameDeepMembers(
            [...streams],
            [37, 38, 39, 40].map((eventId, n) => ({ stream: `s${n}`, eventId, isSealed: false }))
          )
          assert.strictEqual((yield* log.find({ stream: "s2", seq: 3 }))?.eventId, 11)
          assert.isUndefined(yield* log.find({ stream: "s2", seq: 11 }))
          assert.isUndefined(yield* log.find({ stream: "nobody", seq: 1 }))
        })
      )
    })
  )

  it.live("a stream that cannot be read stops no other", () =>
    Effect.gen(function* () {
      const file = yield* filled
      force(file, "UPDATE runes SET payload = 'no JSON' WHERE event_id = 6")
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          assert.strictEqual((yield* Effect.flip(log.recover("s1", { seen }))).reason, "corrupt")
          assert.lengthOf((yield* log.recover("s2", { seen })).seen.state, 10)
        })
      )
    })
  )

  it.live("in memory it is the same", () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      for (let n = 0; n < 8; n++) yield* log.append([note(`s${n % 2}`, n)])
      const { sum: first } = yield* log.recover("s1", { sum: sum() })
      log.keep("s1", sum(), first.state, first.eventId)
      yield* log.append([note("s1", 9)])
      const { sum: then } = yield* log.recover("s1", { sum: sum() })
      assert.deepStrictEqual([first.state.sum, first.read, then.state.sum, then.read], [16, 4, 25, 1])
    }).pipe(Effect.provide(DaemonLog.layerMemory))
  )
})

describe("opening", () => {
  it.live("what was appended last is known again, also where the file beside the store is behind or gone", () =>
    Effect.gen(function* () {
      const file = yield* filled
      assert.isTrue(existsSync(sideFileOf(file)))
      meddle(sideFileOf(file), "UPDATE place SET event_id = 20, hash = 'x'")
      yield* withLog({ file }, (log) => log.append([note("s0", 1)]))
      rmSync(sideFileOf(file))
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          const [rune] = yield* log.append([note("s0", 2)])
          assert.deepInclude(rune!, { eventId: 42, seq: 12 })
          assert.deepStrictEqual((yield* log.verify).problems, [])
          assert.lengthOf(yield* Stream.runCollect(log.read({ stream: "s0" })), 12)
        })
      )
    })
  )
})

describe("PlainState", () => {
  it("every kind of state there and back", () => {
    const state = {
      map: new Map([["a", new Set([1, 2])]]),
      hash: HashMap.make(["x", HashSet.make("y")]),
      none: Option.none(),
      some: Option.some({ $: "no tag", gone: undefined }),
      numbers: [Number.NaN, Number.POSITIVE_INFINITY, -0, 1.5],
      nothing: null
    }
    const back = StateJson.decode(JSON.parse(JSON.stringify(StateJson.encode(state)))) as typeof state
    assert.deepStrictEqual(back.map, state.map)
    assert.isTrue(Equal.equals(back.hash, state.hash))
    assert.isTrue(Option.isNone(back.none))
    assert.deepStrictEqual(Option.getOrThrow(back.some), Option.getOrThrow(state.some))
    assert.deepStrictEqual(back.numbers, state.numbers)
    assert.throws(() => StateJson.encode(new Date(0)), /Date is no plain state/)
    assert.throws(() => StateJson.encode(() => 1), /function/)
  })
})
