/** Repairs of damaged stores: `verify` is well after them, streams are kept up to the damage, the log goes on. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Random, Stream } from "effect"
import { readdirSync, readFileSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import * as DaemonLog from "../../src/app/DaemonLog.ts"
import type { EventLog } from "../../src/core/event-log/EventLog.ts"
import * as Repair from "../../src/core/event-log/Repair.ts"
import type { RuneRow } from "../../src/core/event-log/RuneRow.ts"
import * as SqlitePages from "../support/SqlitePages.ts"
import { force, note, output, storeFile, withInlineLog } from "./Disk.ts"
import { copyOf, store, STREAMS, verified } from "./Flips.ts"
import { long, seeded } from "./Seed.ts"

const repair = (file: string, lost: Array<RuneRow> = []) =>
  Repair.run({ file, rules: DaemonLog.rules, onLost: (row) => void lost.push(row) }, 1_000_000)

const messagesIn = (log: EventLog["Service"], stream: string) =>
  Effect.map(Stream.runCollect(log.read({ stream })), (runes) => runes.map(({ payload }) => JSON.stringify(payload)))

/** The streams of a store that is well, and what each says. */
const said = (file: string) =>
  withInlineLog({ file }, (log) => Effect.forEach(STREAMS, (stream) => messagesIn(log, stream)))

describe("a repair", () => {
  for (const [where, samples] of [
    ["runes.db", 12],
    ["segments/1-300.zst", 4]
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
            for (let sample = 0; sample < (long ? samples * 25 : samples); sample++) {
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
      const looked = yield* Repair.look({ file, rules: DaemonLog.rules, onLost: (row) => void lost.push(row) })
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
      const home = (n: number) => ({
        stream: "daemon",
        kind: "daemon.stopping",
        actor: "daemon",
        payload: { reason: `${n}` }
      })
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
})
