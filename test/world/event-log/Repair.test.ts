/** Repairs of damaged stores: `verify` is well after them, streams are kept up to the damage, the log goes on. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Random, Stream } from "effect"
import { TestClock } from "effect/testing"
import { spawnSync } from "node:child_process"
import { hash } from "node:crypto"
import { cpSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as DaemonLog from "../../../src/app/DaemonLog.ts"
import type { EventLog } from "../../../src/core/event-log/EventLog.ts"
import * as Repair from "../../../src/core/event-log/Repair.ts"
import { FreeBytes } from "../../../src/core/event-log/Room.ts"
import type { RuneRow } from "../../../src/core/event-log/RuneRow.ts"
import * as SqlitePages from "../../support/SqlitePages.ts"
import { folder, force, note, output, storeFile, withInlineLog } from "./Disk.ts"
import { copyOf, store, STREAMS, verified } from "./Flips.ts"
import { seeded } from "./Seed.ts"
import { isAll, long, sample } from "../../support/Long.ts"

const inputOf = (file: string, only?: string): Repair.Input => ({
  file,
  rules: DaemonLog.rules,
  only,
  onLost: () => {}
})

const repair = (file: string, only?: string, now = 1_000_000) => Repair.run(inputOf(file, only), now)

const messagesIn = (log: EventLog["Service"], stream: string) =>
  Effect.map(Stream.runCollect(log.read({ stream })), (runes) => runes.map(({ payload }) => JSON.stringify(payload)))

/** The streams of a store that is well, and what each says. */
const said = (file: string, streams: ReadonlyArray<string> = STREAMS) =>
  withInlineLog({ file }, (log) => Effect.forEach(streams, (stream) => messagesIn(log, stream)))

const home = (n: number) => ({
  stream: "daemon",
  kind: "daemon.stopping",
  actor: "daemon",
  payload: { reason: `${n}` }
})

const seal = Effect.fnUntraced(function* (log: EventLog["Service"], upTo: number) {
  const sealing = yield* Effect.forkChild(log.seal({ upTo, before: Number.MAX_SAFE_INTEGER, least: 1 }))
  yield* TestClock.adjust("1 second")
  yield* Fiber.join(sealing)
})

/** The files of a state folder, and what each holds. */
const contents = (file: string) =>
  readdirSync(dirname(file), { recursive: true, encoding: "utf8" })
    .filter((name) => statSync(join(dirname(file), name)).isFile())
    .map((name) => [name, hash("sha256", readFileSync(join(dirname(file), name)))])

const KILLED = ["a", "b"]

/** Every tenth rune is the daemon's own. Two segments; the first block of the second one cannot be read. */
const sealedTwice = Effect.gen(function* () {
  const file = yield* storeFile
  yield* withInlineLog({ file }, (log) =>
    Effect.gen(function* () {
      yield* log.append(
        Array.from({ length: 600 }, (_, at) => (at % 10 === 0 ? home(at + 1) : note(KILLED[at % 2]!, at + 1)))
      )
      yield* seal(log, 260)
      yield* seal(log, 520)
    })
  )
  const sealed = join(dirname(file), "segments")
  const damaged = readFileSync(join(sealed, "261-520.zst"))
  damaged[0] = damaged[0]! ^ 1
  writeFileSync(join(sealed, "261-520.zst"), damaged)
  return { damaged, file, sealed }
}).pipe(Effect.provide(TestClock.layer()))

/** In a process of its own; the signal that ended it. */
const repairThere = (file: string, env: Readonly<Record<string, string>>) =>
  spawnSync(process.execPath, ["--import", support("crashAt.ts"), support("repairer.ts"), file, "up"], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "inherit", "inherit"]
  }).signal

const support = (name: string) => join(import.meta.dirname, "../../support", name)

describe("a repair", () => {
  for (const [where, samples] of [
    ["runes.db", sample(12, 3)],
    ["segments/1-300.zst", sample(4, 2)]
  ] as const) {
    it.effect(
      `after a flipped bit in ${where}: verify is well, each stream is a beginning of what it was, and goes on`,
      () =>
        seeded(
          Effect.gen(function* () {
            const original = yield* store
            const before = yield* said(original)
            const { file, flip, size } = yield* copyOf(original, where)
            const uses = where === "runes.db" ? SqlitePages.usesOf(original) : () => "stored"
            const places = Array.from({ length: size }, (_, at) => at).filter((at) => at > 100 && uses(at) === "stored")
            for (let sample = 0; sample < (isAll ? samples * 25 : samples); sample++) {
              const at = places[yield* Random.nextIntBetween(0, places.length - 1)]!
              const what = yield* flip(at)
              const repaired = yield* Effect.result(repair(file))
              if (repaired._tag === "Failure") {
                // where the tables begin, nothing says it again
                assert.isTrue(where === "runes.db" && at < 4096, what)
                assert.strictEqual(repaired.failure.reason, "corrupt", what)
                continue
              }
              const { beside } = repaired.success
              assert.deepStrictEqual((yield* verified(file)).problems, [], what)
              yield* withInlineLog({ file }, (log) =>
                Effect.gen(function* () {
                  for (const [index, stream] of STREAMS.entries()) {
                    const now = yield* messagesIn(log, stream)
                    assert.deepStrictEqual(now, before[index]!.slice(0, now.length), `${what}: ${stream}`)
                    yield* log.append([note(stream, 1)])
                  }
                  const told = yield* log.tail({ kinds: ["log.repaired"] }, 1)
                  assert.strictEqual(told[0]?.payload["folder"], beside, what)
                })
              )
              assert.deepStrictEqual((yield* verified(file)).problems, [], what)
              assert.strictEqual(statSync(beside).mode & 0o777, 0o700)
              for (const name of readdirSync(beside))
                assert.strictEqual(statSync(join(beside, name)).mode & 0o077, 0, name)
            }
          })
        )
    )
  }

  it.effect("a stream is cut at its damage alone, and says what is lost; the others lose nothing", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withInlineLog({ file }, (log) =>
        log.append(Array.from({ length: 12 }, (_, index) => note(index % 2 === 0 ? "a" : "b", index + 1)))
      )
      force(file, "UPDATE runes SET kind = 'inbox.delivered' WHERE event_id = 5")
      const lost: Array<RuneRow> = []
      const looked = yield* Repair.look({ ...inputOf(file), onLost: (row) => void lost.push(row) })
      assert.deepStrictEqual(
        lost.map(({ event_id }) => event_id),
        [5, 7, 9, 11]
      )
      const { beside, plan } = yield* repair(file)
      assert.deepStrictEqual([...plan.cuts], [...looked.cuts])
      assert.deepInclude(plan.cuts.get("a"), { eventId: 3, seq: 2, lost: 4 })
      const lines = readFileSync(join(beside, "lost.jsonl"), "utf8").trimEnd().split("\n")
      assert.deepStrictEqual(
        lines.map((line) => JSON.parse(line).event_id),
        [5, 7, 9, 11]
      )
      yield* withInlineLog({ file }, (log) =>
        Effect.gen(function* () {
          assert.strictEqual((yield* messagesIn(log, "b")).length, 6)
          const [next] = yield* log.append([note("a", 99)])
          assert.strictEqual(next!.seq, 3)
        })
      )
    })
  )

  it.effect("of one stream that is named touches no other, and changes nothing where it cannot tell them apart", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withInlineLog({ file }, (log) =>
        log.append(Array.from({ length: 12 }, (_, index) => note(index % 2 === 0 ? "a" : "b", index + 1)))
      )
      force(file, "UPDATE runes SET kind = 'inbox.delivered' WHERE event_id IN (5, 6)")
      const { plan } = yield* repair(file, "a")
      assert.deepStrictEqual([plan.lost, [...plan.cuts.keys()]], [4, ["a"]])
      const left = (yield* verified(file)).problems.map(({ eventId, stream }) => [eventId, stream])
      assert.deepStrictEqual(left, [[6, "b"]])

      const { file: unreadable } = yield* sealedTwice
      const before = contents(unreadable)
      for (const attempt of [Repair.look(inputOf(unreadable, "a")), Effect.asVoid(repair(unreadable, "a"))]) {
        const { message, remedy } = yield* Effect.flip(Effect.asVoid(attempt))
        assert.match(
          message,
          /256 runes cannot be read at all, from rune 261 on: nobody can tell whether they are of a/
        )
        assert.match(remedy, /agentd repair --dry-run/)
        assert.deepStrictEqual(contents(unreadable), before)
      }
    })
  )

  it.effect("a damaged output loses its text, and nothing else", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withInlineLog({ file }, (log) =>
        Effect.gen(function* () {
          yield* log.append([note("a", 1)])
          yield* log.appendLazy([output("a", "a text")])
          yield* log.append([note("a", 2)])
        })
      )
      force(file, "UPDATE runes SET payload = replace(payload, 'a text', 'b text') WHERE kind = 'run.output'")
      const { plan } = yield* repair(file)
      assert.deepStrictEqual([plan.lost, plan.blanked], [0, [2]])
      const { erased, problems } = yield* verified(file)
      assert.deepStrictEqual([problems, erased.map(({ eventId }) => eventId)], [[], [2]])
    })
  )

  it.effect("of the daemon's own stream only the damaged rune is lost", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withInlineLog({ file }, (log) => log.append([home(1), note("a", 1), home(2), home(3), note("a", 2)]))
      force(file, "UPDATE runes SET payload = '{' WHERE event_id = 3")
      yield* repair(file)
      assert.deepStrictEqual((yield* verified(file)).problems, [])
      yield* withInlineLog({ file }, (log) =>
        Effect.gen(function* () {
          const told = yield* log.tail({ stream: "daemon", kinds: ["daemon.stopping"] }, 9)
          assert.deepStrictEqual(
            told.map(({ payload }) => payload["reason"]),
            ["1", "3"]
          )
          assert.strictEqual((yield* messagesIn(log, "a")).length, 2)
        })
      )
      assert.include(readdirSync(dirname(file)), "damaged")
    })
  )

  it.effect("an output in the daemon's own stream loses its text alone, also behind other damage of that stream", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withInlineLog({ file }, (log) =>
        Effect.gen(function* () {
          yield* log.append([home(1), home(2)])
          yield* log.appendLazy([output("daemon", "a text")])
          yield* log.append([home(3)])
        })
      )
      force(file, "UPDATE runes SET at = 7 WHERE event_id = 2")
      force(file, "UPDATE runes SET payload = replace(payload, 'a text', 'b text') WHERE kind = 'run.output'")
      const { plan } = yield* repair(file)
      assert.deepStrictEqual([plan.lost, plan.blanked], [1, [3]])
      const { erased, problems } = yield* verified(file)
      assert.deepStrictEqual([problems, erased.map(({ eventId }) => eventId)], [[], [3]])
      const runes = yield* withInlineLog({ file }, (log) => Stream.runCollect(log.read({ stream: "daemon" })))
      assert.deepStrictEqual(
        runes.slice(0, 4).map(({ kind, payload, seq }) => [seq, kind, payload["reason"]]),
        [
          [1, "daemon.stopping", "1"],
          [2, "rune.lost", undefined],
          [3, "run.output", undefined],
          [4, "daemon.stopping", "3"]
        ]
      )
      assert.deepStrictEqual(runes[2]?.payload, {})
    })
  )

  it.effect("a lost rune of the daemon's own stream leaves the numbers and causes of later ones as they were", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      const [, second, third] = yield* withInlineLog({ file }, (log) => log.append([home(1), home(2), home(3)]))
      const cause = { stream: "daemon", seq: third!.seq }
      yield* withInlineLog({ file }, (log) =>
        log.append([
          { ...home(4), cause },
          { ...note("a", 1), cause }
        ])
      )
      force(file, `UPDATE runes SET at = 7 WHERE event_id = ${second!.eventId}`)
      yield* repair(file)
      const runes = yield* withInlineLog({ file }, (log) => Stream.runCollect(log.read({ stream: "daemon" })))
      assert.deepStrictEqual(
        runes.slice(0, 4).map(({ kind, payload, seq }) => [seq, kind, payload["reason"]]),
        [
          [1, "daemon.stopping", "1"],
          [2, "rune.lost", undefined],
          [3, "daemon.stopping", "3"],
          [4, "daemon.stopping", "4"]
        ]
      )
      assert.deepStrictEqual(runes[3]!.cause, cause)
      assert.deepStrictEqual((yield* verified(file)).problems, [])
    })
  )

  it.effect("an erasure that the daemon's own stream loses is told again: what it erased is no damage", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      const erasing = "kind = 'rune.erasing'"
      yield* withInlineLog({ file }, (log) =>
        Effect.gen(function* () {
          yield* log.append([note("a", 1, "a secret"), note("a", 2)])
          yield* log.erase(1, "ada")
        })
      )
      const copies = yield* folder
      cpSync(dirname(file), copies, { recursive: true })
      force(file, `UPDATE runes SET at = 7 WHERE ${erasing}`)
      const { plan } = yield* repair(file)
      assert.deepStrictEqual([...plan.cuts.keys()], ["daemon"])
      for (let start = 0; start < 2; start++) {
        const { erased, problems } = yield* verified(file)
        assert.deepStrictEqual([problems, erased.map(({ eventId }) => eventId)], [[], [1]])
        const texts = yield* withInlineLog({ file }, (log) => messagesIn(log, "a"))
        assert.deepStrictEqual([texts.length, texts[0]?.includes("[erased]")], [2, true])
      }

      const lost = join(copies, "runes.db")
      force(lost, `UPDATE runes SET payload = '{' WHERE ${erasing}`)
      const { cuts } = yield* Repair.look(inputOf(lost))
      assert.match(cuts.get("a")?.reason ?? "", /that was appended; its text may have been erased, and no rune says so/)
    })
  )

  it.effect("segments before the damage stay; the runes of the damaged one and of later ones are in the store", () =>
    Effect.gen(function* () {
      const { damaged, file, sealed } = yield* sealedTwice
      const { beside, plan } = yield* repair(file)
      assert.deepStrictEqual([plan.unknown, plan.first], [256, 261])
      assert.deepStrictEqual((yield* verified(file)).problems, [])
      assert.deepStrictEqual(readdirSync(sealed), ["1-260.zst"])
      assert.deepStrictEqual(readFileSync(join(beside, "261-520.zst")), damaged)
      for (const upTo of [0, 500]) {
        yield* withInlineLog({ file }, (log) =>
          Effect.gen(function* () {
            assert.strictEqual((yield* log.sealed).last, upTo === 0 ? 260 : 500)
            const kept = yield* log.tail({ stream: "daemon", kinds: ["daemon.stopping"] }, 999)
            // the first one behind the hole follows from a rune that nobody can read
            const there = Array.from({ length: 60 }, (_, n) => n * 10 + 1).filter((n) => n <= 260 || n > 521)
            assert.deepStrictEqual(
              kept.map(({ eventId, payload }) => [eventId, payload["reason"]]),
              there.map((n) => [n, `${n}`])
            )
            if (upTo === 0) yield* seal(log, 500)
          })
        )
        assert.deepStrictEqual((yield* verified(file)).problems, [])
      }
      assert.deepStrictEqual(readdirSync(sealed), ["1-260.zst", "261-500.zst"])
    })
  )

  it.effect("a damaged list of segments is made anew from the files' names", () =>
    Effect.gen(function* () {
      const file = yield* store
      const before = yield* said(file)
      force(file, "UPDATE segments SET last = 1152921504606846976")
      const { plan } = yield* repair(file)
      assert.strictEqual(plan.lost, 0)
      assert.deepStrictEqual((yield* verified(file)).problems, [])
      assert.deepStrictEqual(yield* said(file), before)
    })
  )

  it.effect(
    "says what room it needs before it begins; one that fails at its end leaves nothing, and the next works",
    () =>
      Effect.gen(function* () {
        const { file } = yield* sealedTwice
        const before = contents(file)
        const roomless = yield* Effect.flip(repair(file).pipe(Effect.provideService(FreeBytes, () => 0)))
        assert.match(roomless.message, /is not repaired: that needs 1 MB, and 0 MB are free\. Nothing is changed/)
        assert.deepStrictEqual(contents(file), before)
        const reader = new DatabaseSync(file, { readOnly: true })
        reader.exec("BEGIN")
        reader.prepare("SELECT count(*) FROM runes").get()
        force(file, "UPDATE head SET event_id = event_id")
        const { reason } = yield* Effect.flip(repair(file))
        reader.close()
        assert.strictEqual(reason, "locked")
        assert.deepStrictEqual(
          readdirSync(dirname(file)).filter((name) => /damaged|repaired|mending/.test(name)),
          []
        )
        yield* repair(file)
        assert.deepStrictEqual((yield* verified(file)).problems, [])
      })
  )

  it.effect("a kill before the new store is there loses nothing of a write-ahead log that another program holds", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withInlineLog({ file }, (log) => log.append([note("a", 1)]))
      const other = new DatabaseSync(file)
      other.prepare("SELECT count(*) FROM runes").get()
      force(file, "UPDATE runes SET kind = 'inbox.delivered' WHERE event_id = 1")
      assert.isAbove(statSync(`${file}-wal`).size, 0)
      const { problems } = yield* verified(file)
      assert.strictEqual(repairThere(file, { AGENTD_CRASH_AT: "file rename: before 2" }), "SIGKILL")
      assert.deepStrictEqual((yield* verified(file)).problems, problems)
      other.close()
    })
  )

  long.live("after kill -9 in its midst the store is as it was or repaired, and a repair completes it", () =>
    seeded(
      Effect.gen(function* () {
        const { file: original } = yield* sealedTwice
        force(original, "UPDATE runes SET kind = 'inbox.delivered' WHERE event_id = 560")
        // files beside the store may be gone
        const named = (file: string) =>
          Effect.map(verified(file), ({ problems }) =>
            problems.filter(({ eventId }) => eventId > 0).map(({ eventId, rule }) => `${eventId} ${rule}`)
          )
        const damage = yield* named(original)
        assert.isAbove(damage.length, 1)
        const copy = Effect.map(folder, (to) => {
          cpSync(dirname(original), to, { recursive: true })
          return join(to, "runes.db")
        })
        const whole = yield* copy
        const counts = `${whole}.counts`
        repairThere(whole, { AGENTD_CRASH_COUNTS: counts })
        const passed = JSON.parse(readFileSync(`${counts}.0`, "utf8")) as Readonly<Record<string, number>>
        const points = Object.entries(passed).flatMap(([kind, count]) =>
          Array.from({ length: count }, (_, index) => `${kind} ${index + 1}`)
        )
        assert.include(points.join(), "file rename: before")
        const some = ["file rename: before 2", "file rename: after 2", points.at(-1)!]
        while (some.length < 7) some.push(points[yield* Random.nextIntBetween(0, points.length - 1)]!)
        const expected = yield* said(whole, ["daemon", ...KILLED])
        for (const point of isAll ? points : some) {
          const file = yield* copy
          assert.strictEqual(repairThere(file, { AGENTD_CRASH_AT: point }), "SIGKILL", point)
          const problems = yield* named(file)
          if (problems.length > 0) assert.deepStrictEqual(problems, damage, point)
          yield* repair(file, undefined, 2_000_000)
          assert.notInclude(readdirSync(join(dirname(file), "damaged")), "unfinished", point)
          assert.deepStrictEqual((yield* verified(file)).problems, [], point)
          const now = yield* said(file, ["daemon", ...KILLED])
          assert.deepStrictEqual(now.slice(1), expected.slice(1), point)
          assert.isTrue(now[0]!.length >= expected[0]!.length, point)
        }
      })
    )
  )
})
