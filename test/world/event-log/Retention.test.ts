/** Segments that a person's setting deletes: what they had made is kept; kills, damage, repairs. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as DaemonLog from "../../../src/app/DaemonLog.ts"
import { EventLog, type Forgetting } from "../../../src/core/event-log/EventLog.ts"
import { chosen } from "../../../src/core/event-log/Retention.ts"
import { LogStore, type Order } from "../../../src/core/event-log/LogStore.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import * as Repair from "../../../src/core/event-log/Repair.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import type { InlineDisk } from "../../../src/core/event-log/SqliteLog.ts"
import type { StreamFold } from "../../../src/core/event-log/StreamFold.ts"
import { sideFileOf } from "../../../src/core/event-log/SideFile.ts"
import { archivedRune, closing, note, storeFile } from "./Disk.ts"

const EVER = Number.MAX_SAFE_INTEGER
const STREAMS = ["shop", "yard", "quiet"]

interface Sum {
  readonly runes: number
  readonly sum: number
}

const sum: StreamFold<Sum> = {
  name: "sum",
  version: 1,
  initial: { runes: 0, sum: 0 },
  of: (stream) => STREAMS.includes(stream),
  apply: ({ runes, sum }, { payload }) => ({
    runes: runes + 1,
    sum: sum + Number((payload["event"] as { readonly n?: number } | undefined)?.n ?? 0)
  })
}

const opened = (file: string, { disk, fold = sum }: { readonly disk?: InlineDisk; readonly fold?: typeof sum } = {}) =>
  Effect.map(
    Layer.build(Layer.fresh(DaemonLog.layerInline({ file, folds: [fold] }, disk).pipe(Layer.provide(Redact.layer)))),
    (context) => Context.get(context, EventLog)
  )

const rests = TestClock.adjust("1 second")
const folderOf = (file: string): string => join(dirname(file), "segments")
const filesOf = (file: string) => readdirSync(folderOf(file)).toSorted()
const everything: Forgetting = { openSince: EVER, before: EVER, keepBytes: 0, by: 'keepLog "1 day"' }

/** `quiet` has a few runes at the beginning, and no more. */
const append = (log: EventLog["Service"], count: number) =>
  Effect.gen(function* () {
    const head = yield* log.head
    yield* log.append(
      Array.from({ length: count }, (_, index) => {
        const n = head + index + 1
        return { ...note(n <= 30 ? STREAMS[n % 3]! : STREAMS[n % 7 === 0 ? 1 : 0]!, n, `text ${n}`), actor: "worker/a" }
      })
    )
  })

const allOf = (log: EventLog["Service"]) =>
  Effect.map(Stream.runCollect(log.read({})), (runes) => Array.from(runes).filter(({ stream }) => stream !== "daemon"))

const sumOf = (all: ReadonlyArray<Rune>, stream: string): Sum =>
  all.filter((rune) => rune.stream === stream).reduce((state, rune) => sum.apply(state, rune), sum.initial)

/** Segments 1–400, 401–800; 1,200 runes and what the log says itself. */
const sealed = Effect.gen(function* () {
  const file = yield* storeFile
  const all = yield* Effect.scoped(
    Effect.gen(function* () {
      const log = yield* opened(file)
      for (let n = 0; n < 12; n++) yield* append(log, 100)
      yield* rests
      const all = yield* allOf(log)
      yield* log.seal({ upTo: 400, before: EVER, least: 1 })
      yield* log.seal({ upTo: 800, before: EVER, least: 1 })
      yield* rests
      return all
    })
  )
  return { file, all }
})

/** Reads by nothing but the runes that are left. */
const bare = (file: string) => {
  for (const beside of [sideFileOf(file)]) {
    for (const end of ["", "-wal", "-shm"]) rmSync(beside + end, { force: true })
  }
}

/** The log begins behind `deleted`, with the states of all runes that there ever were. */
const agrees = Effect.fnUntraced(function* (log: EventLog["Service"], all: ReadonlyArray<Rune>, deleted: number) {
  const now = yield* allOf(log)
  const left = all.filter(({ eventId }) => eventId > deleted)
  assert.deepStrictEqual(now.slice(0, left.length), left)
  assert.isUndefined(yield* log.get(1))
  assert.deepStrictEqual(yield* log.find({ stream: "quiet", seq: 1 }), undefined)
  const tail = yield* log.tail({ stream: "shop", actor: "worker/a" }, 5_000)
  assert.deepStrictEqual(
    tail,
    now.filter(({ actor, stream }) => stream === "shop" && actor === "worker/a")
  )
  for (const stream of STREAMS) {
    const whole = [...all, ...now.filter(({ eventId }) => eventId > all.at(-1)!.eventId)]
    assert.deepStrictEqual((yield* log.recover(stream, { sum })).sum.state, sumOf(whole, stream), stream)
  }
  const { begins, problems } = yield* log.verify
  assert.deepStrictEqual(problems, [])
  assert.strictEqual(begins?.eventId, deleted + 1)
})

describe("segments that a setting deletes", () => {
  it.effect("states and chains go on, at once and after a start with nothing beside the store", () =>
    Effect.gen(function* () {
      const { all, file } = yield* sealed
      yield* Effect.scoped(
        Effect.gen(function* () {
          const log = yield* opened(file)
          const rune = yield* log.forget({ ...everything, keepBytes: EVER, before: all[400]!.at })
          assert.isUndefined(rune, "both are of one moment: nothing is older")
          assert.strictEqual((yield* log.forget(everything))?.payload["last"], 800)
          yield* agrees(log, all, 800)
          assert.deepStrictEqual(yield* log.sealed, { ...(yield* log.sealed), last: 800, deleted: 800 })
          assert.deepStrictEqual(filesOf(file), ["begins-800.zst"])
        })
      )
      bare(file)
      const log = yield* opened(file)
      yield* agrees(log, all, 800)
      yield* log.append([note("quiet", 1), note("shop", 2), note("yard", 3)])
      yield* rests
      yield* agrees(log, all, 800)
      assert.isUndefined(yield* log.forget(everything))
    })
  )

  it.effect("the file of actors stays, and what it says of deleted runes goes by and by", () =>
    Effect.gen(function* () {
      const { file } = yield* sealed
      const log = yield* opened(file)
      yield* append(log, 100)
      yield* rests
      const inFile = (sql: string) => {
        const database = new DatabaseSync(sideFileOf(file), { readOnly: true })
        const found = Object.values(database.prepare(sql).get()!)[0]
        database.close()
        return found
      }
      const place = inFile("SELECT event_id FROM filed")
      assert.strictEqual(place, yield* log.head)
      yield* log.forget(everything)
      assert.strictEqual(inFile("SELECT event_id FROM filed"), place)
      assert.strictEqual(inFile("SELECT min(event_id) FROM entries"), 1)
      const of = { stream: "shop", actor: "worker/a" }
      const left = (yield* allOf(log)).filter(({ stream }) => stream === "shop").map(({ eventId }) => eventId)
      assert.deepStrictEqual((yield* log.places(of, 5_000)).positions, left)
      assert.deepStrictEqual((yield* log.verify).problems, [])
      yield* append(log, 100)
      yield* Effect.repeat(rests, { times: 3 })
      assert.strictEqual(inFile("SELECT min(event_id) FROM entries"), 801)
      assert.strictEqual(inFile("SELECT count(*) FROM threads WHERE stream = 'quiet'"), 0)
      assert.strictEqual(inFile("SELECT event_id FROM filed"), yield* log.head)
      assert.deepStrictEqual((yield* log.places(of, 5_000)).positions.slice(0, left.length), left)
      assert.deepStrictEqual((yield* log.verify).problems, [])
    })
  )

  it.effect("deleted again and again one rune and one file stand for all: also when the older rune is deleted", () =>
    Effect.gen(function* () {
      const { all, file } = yield* sealed
      yield* Effect.scoped(
        Effect.gen(function* () {
          const log = yield* opened(file)
          yield* log.forget(everything)
          for (let n = 0; n < 4; n++) yield* append(log, 100)
          yield* rests
          // the segments' runes and the rune of the first deletion are in it
          yield* log.seal({ upTo: (yield* log.head) - 100, before: EVER, least: 1 })
          yield* rests
          const before = yield* allOf(log)
          const last = (yield* log.forget(everything))?.payload["last"] as number
          assert.isAbove(last, 1_204)
          yield* agrees(log, [...all.slice(0, 800), ...before], last)
          assert.deepStrictEqual(filesOf(file), [`begins-${last}.zst`])
        })
      )
      bare(file)
      const log = yield* opened(file)
      assert.deepStrictEqual((yield* log.verify).problems, [])
      yield* log.append([note("quiet", 1)])
      assert.strictEqual((yield* log.recover("quiet", { sum })).sum.state.runes, sumOf(all, "quiet").runes + 1)
    })
  )

  it("goes what is too old or too much, oldest first; what is open keeps its segment and all behind it", () => {
    const one = (first: number, at: number, bytes: number) => ({ first, last: first, file: "", sha256: "", at, bytes })
    const all = [one(1, 10, 5), one(2, 20, 5), one(3, 30, 5)]
    const of = (rule: Partial<Forgetting>) =>
      chosen(all, 15, { openSince: EVER, before: 0, keepBytes: EVER, ...rule }).map(({ first }) => first)
    assert.deepStrictEqual(of({}), [])
    assert.deepStrictEqual(of({ before: 20 }), [1])
    assert.deepStrictEqual(of({ before: 21 }), [1, 2])
    assert.deepStrictEqual(of({ keepBytes: 10 }), [1])
    assert.deepStrictEqual(of({ keepBytes: 9 }), [1, 2])
    assert.deepStrictEqual(of({ before: 40, openSince: 20 }), [1])
    assert.deepStrictEqual(of({ keepBytes: 0, openSince: 10 }), [])
  })

  /** The store's thread is gone from an order on: before it, or after it. */
  const dying = (tag: Order["_tag"], isAfter: boolean): InlineDisk => ({
    open: (options) =>
      new (class extends LogStore {
        override carryOut(order: Order): void {
          if (order._tag !== tag) return super.carryOut(order)
          if (isAfter) super.carryOut(order)
          throw new Error("gone")
        }
      })(options),
    seek: Effect.void,
    settle: Effect.void
  })

  for (const [what, isAfter] of [
    ["when the rune is durable and the log knows nothing of it", false],
    ["when the log knows it and the files are there", true]
  ] as const) {
    it.effect(`kill -9 ${what}: the next start finishes it`, () =>
      Effect.gen(function* () {
        const { all, file } = yield* sealed
        yield* Effect.scoped(
          Effect.gen(function* () {
            const log = yield* opened(file, { disk: dying("Forget", isAfter) })
            const forgetting = yield* Effect.forkChild(log.forget(everything))
            yield* TestClock.adjust("1 minute")
            const exit = yield* Fiber.await(forgetting)
            assert.include(JSON.stringify(exit), "gone")
          })
        )
        assert.deepStrictEqual(filesOf(file), ["1-400.zst", "401-800.zst", "begins-800.zst"])
        const verdict = yield* Effect.flatMap(EventLog, (log) => log.verify).pipe(
          Effect.provide(DaemonLog.layerReadOnly({ file }), { local: true })
        )
        assert.deepStrictEqual(verdict.problems, [], "as it is before any start has finished it")
        const log = yield* opened(file)
        yield* log.append([note("shop", 1)])
        yield* rests
        assert.deepStrictEqual(filesOf(file), ["begins-800.zst"])
        yield* agrees(log, all, 800)
      })
    )
  }

  it.effect("kill -9 when the file is whole and no rune names it: the file goes, the runes stay", () =>
    Effect.gen(function* () {
      const { all, file } = yield* sealed
      writeFileSync(join(folderOf(file), "begins-800.zst"), "half of it")
      const log = yield* opened(file)
      yield* rests
      yield* log.append([note("shop", 1)])
      yield* rests
      assert.deepStrictEqual(filesOf(file), ["1-400.zst", "401-800.zst"])
      assert.deepStrictEqual((yield* allOf(log)).slice(0, all.length), all)
    })
  )

  it.effect("a file of states that is not as it was made is named by verify, and nothing is folded from it", () =>
    Effect.gen(function* () {
      const { all, file } = yield* sealed
      yield* Effect.scoped(Effect.flatMap(opened(file), (log) => log.forget(everything)))
      const path = join(folderOf(file), "begins-800.zst")
      const bytes = readFileSync(path)
      bytes[20] = bytes[20]! ^ 0x10
      writeFileSync(path, bytes)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const log = yield* opened(file)
          assert.include(JSON.stringify((yield* log.verify).problems), "begins-800.zst is not as it was made")
          assert.deepStrictEqual((yield* log.recover("shop", { sum })).sum.state, sumOf(all, "shop"))
        })
      )
      bare(file)
      const failure = yield* Effect.flip(opened(file))
      assert.include(failure.message, "begins-800.zst is not as it was made")
    })
  )

  it.effect("a fold of a newer version reads what the older one has kept, or fails and says why", () =>
    Effect.gen(function* () {
      const { all, file } = yield* sealed
      yield* Effect.scoped(Effect.flatMap(opened(file), (log) => log.forget(everything)))
      const newer = { ...sum, version: 2 }
      yield* Effect.scoped(
        Effect.gen(function* () {
          const log = yield* opened(file, { fold: newer })
          assert.match((yield* Effect.flip(log.recover("shop", { sum: newer }))).message, /version 1/)
        })
      )
      const knowing = { ...newer, fromOlder: (plain: unknown) => plain as Sum }
      const log = yield* opened(file, { fold: knowing })
      assert.deepStrictEqual((yield* log.recover("shop", { sum: knowing })).sum.state, sumOf(all, "shop"))
    })
  )

  it.effect("what does not fold is not deleted", () =>
    Effect.gen(function* () {
      const { file } = yield* sealed
      const apply: typeof sum.apply = (state, rune) => {
        if (rune.eventId === 500) throw new Error("not this one")
        return sum.apply(state, rune)
      }
      const log = yield* opened(file, { fold: { ...sum, version: 2, apply } })
      assert.include((yield* Effect.flip(log.forget(everything))).message, "not this one")
      assert.deepStrictEqual(filesOf(file), ["1-400.zst", "401-800.zst"])
    })
  )

  it.effect("runes of an archived conversation go as others do", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      const log = yield* opened(file)
      yield* append(log, 100)
      yield* log.append([closing("yard")])
      yield* log.append(Array.from({ length: 100 }, (_, n) => note("shop", n)))
      yield* log.archive("yard", archivedRune("yard"))
      yield* log.seal({ upTo: 50, before: EVER, least: 1 })
      yield* rests
      yield* log.forget(everything)
      assert.deepStrictEqual((yield* log.verify).problems, [])
      yield* log.seal({ upTo: 150, before: EVER, least: 1 })
      yield* rests
      yield* log.forget(everything)
      assert.deepStrictEqual((yield* log.verify).problems, [])
    })
  )

  it.effect("a repair keeps where the log begins", () =>
    Effect.gen(function* () {
      const { all, file } = yield* sealed
      yield* Effect.scoped(Effect.flatMap(opened(file), (log) => log.forget(everything)))
      const input: Repair.Input = { file, rules: DaemonLog.rules, onLost: () => {} }
      assert.isTrue((yield* Repair.look(input)).isWell)
      yield* Repair.run(input, 0)
      const log = yield* opened(file)
      yield* agrees(log, all, 800)
    })
  )
})
