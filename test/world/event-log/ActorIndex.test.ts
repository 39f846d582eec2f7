/** The runes of an actor in a long log: the file beside the store that says where they are, and what becomes of it. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Random, Stream } from "effect"
import { TestClock } from "effect/testing"
import { existsSync, openSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import * as DaemonLog from "../../../src/app/DaemonLog.ts"
import { filedUnder } from "../../../src/core/event-log/ActorIndex.ts"
import { sideFileOf } from "../../../src/core/event-log/SideFile.ts"
import { EventLog, type Selection } from "../../../src/core/event-log/EventLog.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import type { Rune, RuneDraft } from "../../../src/core/event-log/Rune.ts"
import { matches } from "../../../src/core/event-log/StoredRune.ts"
import { note, output, storeFile } from "./Disk.ts"
import { seeded } from "./Seed.ts"

const STREAMS = ["shop", "yard", "daemon"]
const ACTORS = ["worker/a", "worker/b", "tool/a/1", "tool/a/2", "tool/b/1", "tool/ab/1"]

const draft = Effect.gen(function* () {
  const stream = STREAMS[yield* Random.nextIntBetween(0, STREAMS.length - 1)]!
  const actor = ACTORS[yield* Random.nextIntBetween(0, ACTORS.length - 1)]!
  const made: RuneDraft = (yield* Random.nextBoolean) ? note(stream, 1) : output(stream, "words")
  return { ...made, actor }
})

const some = (count: number) => Effect.forEach(Array.from({ length: count }), () => draft)

const opened = (file: string) =>
  Effect.map(Layer.build(Layer.fresh(DaemonLog.layerInline({ file }).pipe(Layer.provide(Redact.layer)))), (context) =>
    Context.get(context, EventLog)
  )

/** The log rests, and the file is filled. */
const rests = TestClock.adjust("1 second")

const oneOf = <A>(all: ReadonlyArray<A>) => Effect.map(Random.nextIntBetween(0, all.length - 1), (index) => all[index])

const selection = (head: number) =>
  Effect.gen(function* () {
    const stream = yield* oneOf([undefined, ...STREAMS])
    const [actor, actors] = (yield* oneOf([
      [undefined, undefined],
      ...ACTORS.map((name) => [name, undefined] as const),
      ...[["tool/a/"], ["tool/"], ["worker/a", "tool/a/"], ["worker/a", "worker/b", "tool/b/1"], ["worker/c"]].map(
        (names) => [undefined, names] as const
      )
    ]))!
    const kinds = yield* oneOf([undefined, ["run.output"], ["inbox.received", "run.output"], ["turn.started"]])
    const after = yield* oneOf([undefined, Math.floor(head / 2), head - 3])
    return {
      ...(stream === undefined ? {} : { stream }),
      ...(actor === undefined ? {} : { actor }),
      ...(actors === undefined ? {} : { actors }),
      ...(kinds === undefined ? {} : { kinds }),
      ...(after === undefined ? {} : { after })
    } satisfies Selection
  })

const idsOf = (runes: ReadonlyArray<Rune>) => runes.map(({ eventId }) => eventId)

/** Selections find what a look at every rune would find. */
const agrees = Effect.fnUntraced(function* (log: EventLog["Service"], rounds = 60) {
  const head = yield* log.head
  const all = yield* Stream.runCollect(log.read({}))
  assert.strictEqual(all.length, head)
  for (let round = 0; round < rounds; round++) {
    const select: Selection = yield* selection(head)
    const wanted = idsOf(all.filter((rune) => rune.eventId > (select.after ?? 0) && matches(select, rune)))
    assert.deepStrictEqual(idsOf(yield* Stream.runCollect(log.read(select))), wanted, JSON.stringify(select))
    const count = yield* Random.nextIntBetween(1, 900)
    assert.deepStrictEqual(idsOf(yield* log.tail(select, count)), wanted.slice(-count), JSON.stringify(select))
    const { positions, whole } = yield* log.places(select, count)
    assert.deepStrictEqual(positions, wanted.slice(-count), JSON.stringify(select))
    assert.strictEqual(whole, wanted.length < count, JSON.stringify(select))
  }
})

const append = (log: EventLog["Service"], count: number) =>
  Effect.flatMap(some(count), (drafts) =>
    Effect.forEach(
      Array.from({ length: Math.ceil(count / 100) }, (_, piece) => drafts.slice(piece * 100, piece * 100 + 100)),
      (few) => log.append(few)
    )
  )

const placeIn = (file: string): number => {
  const database = new DatabaseSync(sideFileOf(file), { readOnly: true })
  const { event_id } = database.prepare("SELECT event_id FROM filed").get() as { event_id: number }
  database.close()
  return event_id
}

describe("the runes of an actor", () => {
  it("actors below another are filed together", () => {
    assert.deepStrictEqual(["tool/a/1", "worker/a", "daemon", "a/b/c/d"].map(filedUnder), [
      "tool/a/",
      "worker/a",
      "daemon",
      "a/b/"
    ])
  })

  it.effect("are the same before the file is filled, while it is behind, and when it is filled", () =>
    seeded(
      Effect.gen(function* () {
        const file = yield* storeFile
        const log = yield* opened(file)
        yield* append(log, 1_500)
        yield* agrees(log, 20)
        yield* rests
        assert.strictEqual(placeIn(file), 1_500)
        yield* agrees(log)
        yield* append(log, 700)
        assert.strictEqual(placeIn(file), 1_500)
        yield* agrees(log)
      })
    )
  )

  const damages: ReadonlyArray<readonly [what: string, (file: string) => void]> = [
    ["it is gone", (file) => rmSync(sideFileOf(file))],
    ["it is no database", (file) => writeFileSync(sideFileOf(file), "a letter to a friend ".repeat(500))],
    [
      "it is another store's",
      (file) => {
        const database = new DatabaseSync(sideFileOf(file))
        database.exec("UPDATE filed SET hash = 'x'")
        database.close()
      }
    ],
    [
      "it is another version's",
      (file) => {
        const database = new DatabaseSync(sideFileOf(file))
        database.exec("UPDATE filed SET version = 99")
        database.close()
      }
    ]
  ]
  for (const [what, damage] of damages) {
    it.effect(`are the same where ${what}, and the file is filled anew`, () =>
      seeded(
        Effect.gen(function* () {
          const file = yield* storeFile
          yield* Effect.scoped(Effect.flatMap(opened(file), (log) => Effect.andThen(append(log, 900), rests)))
          damage(file)
          const log = yield* opened(file)
          yield* append(log, 100)
          yield* rests
          yield* agrees(log, 20)
          assert.strictEqual(placeIn(file), 1_000)
        })
      )
    )
  }

  it.effect("are filed anew after an older agentd, whose snapshots and positions stay", () =>
    seeded(
      Effect.gen(function* () {
        const file = yield* storeFile
        const others =
          "SELECT name, event_id, hash FROM snapshots UNION ALL SELECT name, event_id, hash FROM subscribers"
        const kept = () => {
          const index = new DatabaseSync(sideFileOf(file), { readOnly: true })
          const rows = index.prepare(others).all()
          index.close()
          return rows
        }
        yield* Effect.scoped(
          Effect.gen(function* () {
            const log = yield* opened(file)
            yield* append(log, 900)
            yield* Effect.forkScoped(log.follow("mail", {}, () => Effect.void))
            yield* Effect.yieldNow
          })
        )
        const index = new DatabaseSync(sideFileOf(file))
        index.exec("DROP TABLE filed; DROP TABLE threads; DROP TABLE entries")
        index.close()
        for (const ending of ["", "-wal"]) writeFileSync(`${file}.actors${ending}`, "what an older agentd had filed")
        const before = kept()
        assert.isAbove(before.length, 0)
        const log = yield* opened(file)
        assert.deepStrictEqual(kept(), before)
        assert.isFalse(existsSync(`${file}.actors`) || existsSync(`${file}.actors-wal`))
        yield* append(log, 100)
        yield* rests
        assert.strictEqual(placeIn(file), 1_000)
        yield* agrees(log, 20)
      })
    )
  )

  it.effect("are filed although somebody has the file locked for a while", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      const log = yield* opened(file)
      yield* append(log, 300)
      yield* rests
      const other = new DatabaseSync(sideFileOf(file))
      const place = () => Number(other.prepare("SELECT event_id FROM filed").get()?.["event_id"])
      const before = place()
      assert.strictEqual(before, yield* log.head)
      other.exec("BEGIN IMMEDIATE")
      yield* append(log, 300)
      yield* Effect.repeat(rests, { times: 3 })
      assert.strictEqual(place(), before)
      other.exec("COMMIT")
      yield* append(log, 10)
      yield* Effect.repeat(rests, { times: 3 })
      assert.strictEqual(place(), yield* log.head)
      other.close()
    }).pipe(Effect.scoped)
  )

  it.effect("are the same where the file is damaged under a daemon, which makes it anew", () =>
    seeded(
      Effect.gen(function* () {
        const file = yield* storeFile
        const log = yield* opened(file)
        yield* append(log, 1_500)
        yield* rests
        for (const path of [sideFileOf(file), `${sideFileOf(file)}-wal`]) {
          const { size } = statSync(path)
          writeSync(openSync(path, "r+"), Buffer.alloc(size, 0x5a), 0, size, 0)
        }
        yield* agrees(log, 10)
        yield* append(log, 100)
        yield* rests
        yield* agrees(log, 20)
        assert.strictEqual(readFileSync(sideFileOf(file)).subarray(0, 6).toString(), "SQLite")
        assert.strictEqual(placeIn(file), 1_600)
      })
    )
  )
})
