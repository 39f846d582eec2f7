/** Runes that have left the store for segments: who reads finds them; kills, damage, erasures. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Random, Stream } from "effect"
import { TestClock } from "effect/testing"
import { spawn } from "node:child_process"
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync
} from "node:fs"
import { dirname, join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"
import { zstdDecompressSync } from "node:zlib"
import * as DaemonLog from "../../../src/app/DaemonLog.ts"
import { EventLog, type Selection } from "../../../src/core/event-log/EventLog.ts"
import { LogStore, type Order } from "../../../src/core/event-log/LogStore.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import { causeText, type Rune } from "../../../src/core/event-log/Rune.ts"
import { type InlineDisk } from "../../../src/core/event-log/SqliteLog.ts"
import { matches } from "../../../src/core/event-log/StoredRune.ts"
import type { StreamFold } from "../../../src/core/event-log/StreamFold.ts"
import { sideFileOf } from "../../../src/core/event-log/SideFile.ts"
import { force, layer, note, storeFile } from "./Disk.ts"
import { seeded } from "./Seed.ts"
import { sample, long } from "../../support/Long.ts"

const EVER = Number.MAX_SAFE_INTEGER

const STREAMS = ["shop", "yard", "quiet"]
const ACTORS = ["worker/a", "inbox/b", "tool/a/1", "tool/a/2"]

/** How many runes of a stream there were, and the sum of what they say. */
const sum: StreamFold<{ readonly runes: number; readonly sum: number }> = {
  name: "sum",
  version: 1,
  initial: { runes: 0, sum: 0 },
  of: (stream) => STREAMS.includes(stream),
  apply: ({ runes, sum }, { payload }) => ({
    runes: runes + 1,
    sum: sum + Number((payload["event"] as { readonly n?: number } | undefined)?.n ?? 0)
  })
}

const opened = (file: string, disk?: InlineDisk) =>
  Effect.map(
    Layer.build(Layer.fresh(DaemonLog.layerInline({ file, folds: [sum] }, disk).pipe(Layer.provide(Redact.layer)))),
    (context) => Context.get(context, EventLog)
  )

/** As one finds it who only reads, before any start has finished what a kill has cut off. */
const verified = (file: string) =>
  Effect.flatMap(EventLog, (log) => log.verify).pipe(Effect.provide(DaemonLog.layerReadOnly({ file }), { local: true }))

/** `quiet` has a few runes at the beginning, and no more. */
const append = (log: EventLog["Service"], count: number) =>
  Effect.gen(function* () {
    const head = yield* log.head
    for (let done = 0; done < count; done += 100) {
      yield* log.append(
        Array.from({ length: 100 }, (_, index) => {
          const n = head + done + index + 1
          const stream = n <= 30 ? STREAMS[n % 3]! : STREAMS[n % 7 === 0 ? 1 : 0]!
          return { ...note(stream, n, `text ${n}`), actor: ACTORS[(n * 5) % 4]! }
        })
      )
    }
  })

const rests = TestClock.adjust("1 second")

const rowsIn = (file: string): ReadonlyArray<number> => {
  const database = new DatabaseSync(file, { readOnly: true })
  const rows = database.prepare("SELECT event_id FROM runes ORDER BY event_id").all() as Array<{ event_id: number }>
  database.close()
  return rows.map(({ event_id }) => event_id)
}

const folderOf = (file: string): string => join(dirname(file), "segments")

const selection = (head: number) =>
  Effect.gen(function* () {
    const pick = <A>(all: ReadonlyArray<A>) => Effect.map(Random.nextIntBetween(0, all.length - 1), (n) => all[n])
    const stream = yield* pick([undefined, ...STREAMS])
    const actor = yield* pick([undefined, ...ACTORS])
    const kinds = yield* pick([undefined, undefined, ["inbox.received"], ["turn.started"]])
    const after = yield* pick([undefined, undefined, Math.floor(head / 3), head - 5])
    return {
      ...(stream === undefined ? {} : { stream }),
      ...(actor === undefined ? {} : { actor }),
      ...(kinds === undefined ? {} : { kinds }),
      ...(after === undefined ? {} : { after })
    } satisfies Selection
  })

/** The log reads as these runes, whichever way it is read. */
const agrees = Effect.fnUntraced(function* (log: EventLog["Service"], all: ReadonlyArray<Rune>, rounds = 25) {
  const isTheirs = ({ stream }: Rune) => stream !== "daemon"
  const now = Array.from(yield* Stream.runCollect(log.read({}))).filter(isTheirs)
  assert.deepStrictEqual(now, all)
  for (let round = 0; round < rounds; round++) {
    const select: Selection = yield* selection(all.at(-1)!.eventId)
    const wanted = all.filter((rune) => rune.eventId > (select.after ?? 0) && matches(select, rune))
    const read = Array.from(yield* Stream.runCollect(log.read(select))).filter(isTheirs)
    assert.deepStrictEqual(read, wanted, JSON.stringify(select))
    const count = yield* Random.nextIntBetween(1, 700)
    const streams = select.stream === undefined ? { ...select, stream: "shop" } : select
    const newest = all.filter((rune) => rune.eventId > (streams.after ?? 0) && matches(streams, rune)).slice(-count)
    assert.deepStrictEqual(yield* log.tail(streams, count), newest, JSON.stringify(streams))
  }
  for (const rune of [all[0]!, all[400]!, all.at(-1)!]) {
    assert.deepStrictEqual(yield* log.get(rune.eventId), rune)
    assert.deepStrictEqual(yield* log.find(rune), rune)
  }
  for (const stream of STREAMS) {
    const { state } = (yield* log.recover(stream, { sum })).sum
    const own = all.filter((rune) => rune.stream === stream)
    assert.deepStrictEqual(
      state,
      own.reduce((so, rune) => sum.apply(so, rune), sum.initial)
    )
  }
  const verdict = yield* log.verify
  assert.deepStrictEqual(verdict.problems, [])
  assert.strictEqual(verdict.runes, yield* log.head)
})

const allOf = (log: EventLog["Service"]) =>
  Effect.map(Stream.runCollect(log.read({})), (runes) => Array.from(runes).filter(({ stream }) => stream !== "daemon"))

/** A store of which two segments are sealed; what it read before. */
const sealed = Effect.gen(function* () {
  const file = yield* storeFile
  const all = yield* Effect.scoped(
    Effect.gen(function* () {
      const log = yield* opened(file)
      yield* append(log, 1_500)
      yield* rests
      const before = yield* allOf(log)
      assert.strictEqual((yield* log.seal({ upTo: 600, before: EVER, least: 1 }))?.payload["last"], 600)
      assert.strictEqual((yield* log.seal({ upTo: 1_100, before: EVER, least: 1 }))?.payload["first"], 601)
      yield* rests
      return before
    })
  )
  assert.strictEqual(rowsIn(file)[0], 1_101)
  return { file, all }
})

describe("segments", () => {
  it.effect("who reads finds the runes as before: at once, after a start, and with nothing beside the store", () =>
    seeded(
      Effect.gen(function* () {
        const { all, file } = yield* sealed
        yield* Effect.scoped(Effect.flatMap(opened(file), (log) => agrees(log, all)))
        for (const beside of [sideFileOf(file)]) {
          for (const end of ["", "-wal", "-shm"]) rmSync(beside + end, { force: true })
        }
        const log = yield* opened(file)
        yield* agrees(log, all)
        // the chains go on, also of a stream whose runes have all left
        yield* log.append([note("quiet", 1), note("shop", 2), note("yard", 3)])
        yield* rests
        yield* agrees(log, yield* allOf(log))
      })
    )
  )

  it.effect("the file's lines are plain; the rune names the file's hash and the chains where it ends", () =>
    Effect.gen(function* () {
      const { all, file } = yield* sealed
      const text = readFileSync(join(folderOf(file), "1-600.zst"))
      assert.deepStrictEqual(readdirSync(folderOf(file)).toSorted(), ["1-600.zst", "601-1100.zst"])
      const first = JSON.parse(String(zstdDecompressSync(text)).split("\n")[0]!) as ReadonlyArray<unknown>
      assert.strictEqual(first[0], 1)
      const log = yield* opened(file)
      const runes = yield* Stream.runCollect(log.read({ stream: "daemon", kinds: ["segment.sealed"] }))
      const { heads, sha256 } = runes[0]!.payload as { heads: Array<{ stream: string; seq: number }>; sha256: string }
      assert.lengthOf(sha256, 64)
      assert.strictEqual(
        heads.find(({ stream }) => stream === "yard")!.seq,
        all.filter(({ eventId, stream }) => eventId <= 600 && stream === "yard").length
      )
    })
  )

  it.effect("what is open stays: the first rune of a time stays, and all behind it; too few runes are left alone", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      const log = yield* opened(file)
      yield* append(log, 300)
      yield* TestClock.adjust("1 hour")
      yield* append(log, 300)
      yield* rests
      const since = (yield* log.get(301))!.at
      assert.isUndefined(yield* log.seal({ upTo: 500, before: since, least: 301 }))
      assert.strictEqual((yield* log.seal({ upTo: 500, before: since, least: 300 }))!.payload["last"], 300)
      assert.isUndefined(yield* log.seal({ upTo: 500, before: since, least: 1 }))
    })
  )

  it.effect("the room comes back", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* Effect.scoped(
        Effect.gen(function* () {
          const log = yield* opened(file)
          for (let n = 0; n < 40; n++) {
            yield* log.append(
              Array.from({ length: 100 }, (_, index) => note("shop", n * 100 + index, "x".repeat(2_000)))
            )
          }
          yield* rests
          const before = statSync(file).size
          yield* log.seal({ upTo: 3_900, before: EVER, least: 1 })
          yield* log.append([note("shop", 1)])
          yield* rests
          yield* log.append([note("shop", 2)])
          yield* rests
          assert.isBelow(statSync(file).size, before / 4)
        })
      )
    })
  )

  /** A disk whose thread is gone from a moment on. */
  const dying = (isGone: (order: Order | "chore") => boolean): InlineDisk => ({
    open: (options) =>
      new (class extends LogStore {
        private isDead = false
        override carryOut(order: Order): void {
          this.isDead ||= isGone(order)
          if (!this.isDead) super.carryOut(order)
          else if ("id" in order) throw new Error("gone")
        }
        override chore(): void {
          this.isDead ||= isGone("chore")
          if (!this.isDead) super.chore()
        }
        override choresDue(): number {
          return this.isDead ? Number.POSITIVE_INFINITY : super.choresDue()
        }
        override rest(): void {
          if (!this.isDead) super.rest()
        }
      })(options),
    seek: Effect.void,
    settle: Effect.void
  })

  /** To write 600 runes takes three steps; 600 rows go in three more. */
  const boundaries: ReadonlyArray<readonly [what: string, isGone: () => (order: Order | "chore") => boolean]> = [
    ["while the file is written", () => after(1)],
    [
      "when the rune is durable and the log knows nothing of it",
      () => (order) => order !== "chore" && order._tag === "Leave"
    ],
    ["when the store lists it and no row is gone", () => after(0, true)],
    ["when some rows are gone", () => after(1, true)],
    ["when all rows are gone and no room is given back", () => after(4, true)]
  ]

  /** Gone after so many chores: of all, or since the store lists the segment. */
  const after = (chores: number, isListed = false) => {
    let count = 0
    let counts = !isListed
    return (order: Order | "chore") => {
      if (order !== "chore") counts ||= order._tag === "Leave"
      return counts && order === "chore" && count++ >= chores
    }
  }

  /** The first row that each kill has left. */
  const left: Array<number> = []

  for (const [what, isGone] of boundaries) {
    it.effect(`kill -9 ${what}: nothing is lost, and the next start finishes it`, () =>
      seeded(
        Effect.gen(function* () {
          const file = yield* storeFile
          const all = yield* Effect.scoped(
            Effect.gen(function* () {
              const log = yield* opened(file)
              yield* append(log, 1_500)
              yield* rests
              return yield* allOf(log)
            })
          )
          yield* Effect.scoped(
            Effect.gen(function* () {
              const log = yield* opened(file, dying(isGone()))
              yield* Effect.forkChild(log.seal({ upTo: 600, before: EVER, least: 1 }))
              yield* rests
            })
          )
          left.push(rowsIn(file)[0]!)
          assert.deepStrictEqual((yield* verified(file)).problems, [])
          const log = yield* opened(file)
          yield* agrees(log, all, 5)
          yield* log.append([note("shop", 1)])
          yield* rests
          yield* log.append([note("shop", 2)])
          yield* rests
          const names = existsSync(folderOf(file)) ? readdirSync(folderOf(file)) : []
          const { last } = yield* log.sealed
          assert.deepStrictEqual(names, last === 0 ? [] : ["1-600.zst"])
          assert.strictEqual(rowsIn(file)[0], last + 1)
          yield* agrees(log, yield* allOf(log), 5)
        })
      )
    )
  }

  it("the kills above were where they say", () => {
    assert.deepStrictEqual(left, [1, 1, 1, 251, 601])
  })

  it.effect("kill -9 when the file is whole and no rune names it: the file goes, the runes stay", () =>
    seeded(
      Effect.gen(function* () {
        const [file, other] = [yield* storeFile, yield* storeFile]
        yield* Effect.scoped(Effect.flatMap(opened(file), (log) => append(log, 1_500)))
        copyFileSync(file, other)
        yield* Effect.scoped(Effect.flatMap(opened(file), (log) => log.seal({ upTo: 600, before: EVER, least: 1 })))
        mkdirSync(folderOf(other))
        for (const name of ["1-600.zst", "segment.part"]) {
          copyFileSync(join(folderOf(file), "1-600.zst"), join(folderOf(other), name))
        }
        const log = yield* opened(other)
        yield* append(log, 100)
        yield* rests
        assert.deepStrictEqual(readdirSync(folderOf(other)), [])
        yield* agrees(log, yield* allOf(log), 2)
      })
    )
  )

  const damages: ReadonlyArray<readonly [what: string, damage: (path: string) => void]> = [
    ["is gone", (path) => rmSync(path)],
    ["is cut off", (path) => truncateSync(path, 4_000)],
    [
      "has another byte",
      (path) => {
        const bytes = readFileSync(path)
        bytes[1_000] = bytes[1_000]! ^ 0x10
        writeFileSync(path, bytes)
      }
    ]
  ]
  for (const [what, damage] of damages) {
    it.effect(`verify names a segment whose file ${what}; states that rest on snapshots go on`, () =>
      Effect.gen(function* () {
        const { all, file } = yield* sealed
        damage(join(folderOf(file), "1-600.zst"))
        const log = yield* opened(file)
        const { problems } = yield* log.verify
        assert.include(problems[0]?.message, "1-600.zst")
        assert.deepStrictEqual(yield* log.get(1_300), all[1_299])
        const failed = yield* Effect.exit(Stream.runCollect(log.read({})))
        if (what !== "has another byte") assert.strictEqual(failed._tag, "Failure")
        yield* log.append([note("shop", 1)])
      })
    )
  }

  it.effect(
    "a segment that the runes know and the store does not list is named, and so is one that no rune knows",
    () =>
      Effect.gen(function* () {
        const { file } = yield* sealed
        force(file, "UPDATE segments SET sha256 = 'x' WHERE first = 1")
        const log = yield* opened(file)
        const { problems } = yield* log.verify
        assert.include(JSON.stringify(problems), "no rune says that its segment 1-600.zst is as it is listed")
      })
  )

  it.effect("a text is erased in its segment, once and for all", () =>
    seeded(
      Effect.gen(function* () {
        const { all, file } = yield* sealed
        yield* Effect.scoped(
          Effect.gen(function* () {
            const log = yield* opened(file)
            assert.include(String(zstdDecompressSync(readFileSync(join(folderOf(file), "1-600.zst")))), '"text 77\\"')
            yield* log.erase(77, "ada")
            assert.include(JSON.stringify((yield* log.get(77))!.payload), "[erased]")
            assert.notInclude(
              String(zstdDecompressSync(readFileSync(join(folderOf(file), "1-600.zst")))),
              '"text 77\\"'
            )
            assert.deepStrictEqual((yield* log.verify).problems, [])
          })
        )
        const log = yield* opened(file)
        assert.deepStrictEqual((yield* log.verify).problems, [])
        const now = yield* allOf(log)
        assert.deepStrictEqual(
          now.filter(({ eventId }) => eventId !== 77),
          all.filter(({ eventId }) => eventId !== 77)
        )
      })
    )
  )
})

const child = fileURLToPath(new URL("../../support/sealer.ts", import.meta.url))

const killedAfter = (file: string, lines: number) =>
  Effect.callback<ReadonlyArray<string>>((resume) => {
    const sealer = spawn(process.execPath, [child, file], { stdio: ["ignore", "pipe", "inherit"] })
    let said = ""
    sealer.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text
      if (said.split("\n").length > lines) sealer.kill("SIGKILL")
    })
    sealer.on("close", (code, signal) =>
      resume(
        signal === "SIGKILL" ? Effect.succeed(said.split("\n").slice(0, -1)) : Effect.die(new Error(`ended: ${code}`))
      )
    )
    return Effect.sync(() => sealer.kill("SIGKILL"))
  })

describe("kill -9 of a log that seals", () => {
  long.live("every acknowledged rune is there, in the store or in a segment, and the chains hold", () =>
    seeded(
      Effect.gen(function* () {
        const file = yield* storeFile
        const places = new Map<string, string>()
        for (let round = 0; round < sample(40, 2); round++) {
          const said = yield* killedAfter(file, yield* Random.nextIntBetween(1, 40))
          for (const word of said.filter((line) => !line.startsWith("sealed")).flatMap((line) => line.split(" "))) {
            const [id, place] = word.split(":")
            places.set(id!, place!)
          }
          yield* Effect.gen(function* () {
            const log = yield* EventLog
            const runes = new Map(
              Array.from(yield* Stream.runCollect(log.read({})), (rune) => [String(rune.eventId), causeText(rune)])
            )
            for (const [id, place] of places) assert.strictEqual(runes.get(id), place, `rune ${id} of round ${round}`)
            assert.deepStrictEqual((yield* log.verify).problems, [])
          }).pipe(Effect.provide(layer({ file }), { local: true }))
        }
      })
    )
  )
})
