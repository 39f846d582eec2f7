/** Tests of changes of the file behind agentd's back, and of their names by `verify`. */
import { describe, expect, it } from "@effect/vitest"
import { Cause, Effect, Exit, Random, Stream } from "effect"
import { copyFileSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { force, folder, note, OTHER_COLUMNS, storeFile, withInlineLog, withLog, withSampleLog } from "./Disk.ts"
import { seeded } from "./Seed.ts"
import { sample } from "../../support/Long.ts"

/** Twelve runes in two streams: `a` has the odd ids, `b` the even ones. */
const store = Effect.gen(function* () {
  const file = yield* storeFile
  yield* withInlineLog({ file }, (log) =>
    log.append(Array.from({ length: 12 }, (_, index) => note(index % 2 === 0 ? "a" : "b", index + 1)))
  )
  return file
})

const problems = (file: string, open = withLog) =>
  open({ file }, (log) => Effect.map(log.verify, (verdict) => verdict.problems))

/** A change, and all that verify says about it, as `eventId stream rule`. */
const cases: ReadonlyArray<readonly [name: string, sql: string, said: ReadonlyArray<string>]> = [
  [
    "INV-HASH-VALID: one byte of a payload",
    `UPDATE runes SET payload = replace(payload, '"n":5', '"n":6') WHERE event_id = 5`,
    ["5 a INV-HASH-VALID"]
  ],
  ["INV-HASH-VALID: a kind", "UPDATE runes SET kind = 'inbox.delivered' WHERE event_id = 5", ["5 a INV-HASH-VALID"]],
  ["INV-HASH-VALID: a time", "UPDATE runes SET at = at + 1 WHERE event_id = 5", ["5 a INV-HASH-VALID"]],
  ["INV-HASH-VALID: an actor", "UPDATE runes SET actor = 'inbox/x' WHERE event_id = 5", ["5 a INV-HASH-VALID"]],
  ["INV-HASH-VALID: a visibility", "UPDATE runes SET visibility = 'secret' WHERE event_id = 5", ["5 a INV-HASH-VALID"]],
  ["INV-HASH-VALID: a cause", "UPDATE runes SET cause = 1 WHERE event_id = 5", ["5 a INV-HASH-VALID"]],
  ["INV-HASH-VALID: a cause by its seq", "UPDATE runes SET cause_seq = 1 WHERE event_id = 5", ["5 a INV-HASH-VALID"]],
  ["INV-HASH-VALID: a moved machine", `UPDATE runes SET moves = '["a/b"]' WHERE event_id = 5`, ["5 a INV-HASH-VALID"]],
  ["INV-HASH-VALID: a format", "UPDATE runes SET format = 1 WHERE event_id = 5", ["5 a INV-HASH-VALID"]],
  ["INV-HASH-VALID: the rune before it", "UPDATE runes SET prev = 1 WHERE event_id = 5", ["5 a INV-HASH-VALID"]],
  [
    "INV-EVENTID-MONOTONIC: a seq",
    "UPDATE runes SET seq = 4 WHERE event_id = 5",
    ["5 a INV-EVENTID-MONOTONIC", "5 a INV-HASH-VALID", "7 a INV-EVENTID-MONOTONIC"]
  ],
  ["INV-HASH-VALID: a state", "UPDATE runes SET to_state = 'Stopped' WHERE event_id = 5", ["5 a INV-HASH-VALID"]],
  ["INV-HASH-VALID: a trigger", "UPDATE runes SET trigger_name = NULL WHERE event_id = 5", ["5 a INV-HASH-VALID"]],
  [
    "INV-HASH-VALID: a hash, which breaks the next link too",
    "UPDATE runes SET hash = substr(hash, 2) || '0' WHERE event_id = 5",
    ["5 a INV-HASH-VALID", "7 a INV-HASH-VALID"]
  ],
  [
    "INV-HASH-VALID: a payload together with its hash",
    `UPDATE runes SET payload = '{}', payload_hash = '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a' WHERE event_id = 5`,
    ["5 a INV-HASH-VALID"]
  ],
  [
    "INV-HASH-VALID: a rune moved to another stream",
    "UPDATE runes SET stream = 'b' WHERE event_id = 5",
    [
      "5 b INV-HASH-VALID",
      "6 b INV-EVENTID-MONOTONIC",
      "6 b INV-HASH-VALID",
      "7 a INV-EVENTID-MONOTONIC",
      "7 a INV-HASH-VALID"
    ]
  ],
  [
    "INV-HASH-VALID: two runes swapped",
    `UPDATE runes SET event_id = 100 WHERE event_id = 5;
     UPDATE runes SET event_id = 5 WHERE event_id = 7;
     UPDATE runes SET event_id = 7 WHERE event_id = 100`,
    [
      "5 a INV-EVENTID-MONOTONIC",
      "5 a INV-HASH-VALID",
      "7 a INV-EVENTID-MONOTONIC",
      "7 a INV-HASH-VALID",
      "9 a INV-EVENTID-MONOTONIC",
      "9 a INV-HASH-VALID"
    ]
  ],
  [
    "INV-EVENTID-MONOTONIC: a rune deleted from the middle",
    "DELETE FROM runes WHERE event_id = 5",
    ["6 b INV-EVENTID-MONOTONIC", "7 a INV-EVENTID-MONOTONIC", "7 a INV-HASH-VALID"]
  ],
  [
    "INV-EVENTID-MONOTONIC: the newest runes deleted",
    "DELETE FROM runes WHERE event_id > 10",
    ["10  INV-EVENTID-MONOTONIC"]
  ],
  [
    "INV-EVENTID-MONOTONIC: a rune slipped in at the end",
    `INSERT INTO runes SELECT 13, ${OTHER_COLUMNS} FROM runes WHERE event_id = 12`,
    ["13 b INV-EVENTID-MONOTONIC", "13 b INV-HASH-VALID", "13  INV-EVENTID-MONOTONIC"]
  ]
]

describe("verify", () => {
  for (const [name, sql, said] of cases) {
    it.effect(name, () =>
      Effect.gen(function* () {
        const file = yield* store
        expect(yield* problems(file, withInlineLog)).toEqual([])
        force(file, sql)
        expect((yield* problems(file)).map(({ eventId, stream, rule }) => `${eventId} ${stream} ${rule}`)).toEqual(said)
      })
    )
  }

  it.effect("a stream whose chain is broken is halted; the others go on, and the refusal is written down", () =>
    Effect.gen(function* () {
      const file = yield* store
      force(file, "UPDATE runes SET kind = 'inbox.delivered' WHERE event_id = 5")
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          const refused = yield* Effect.flip(log.append([note("a", 13)]))
          expect(refused).toMatchObject({ _tag: "RuneRefused", rule: "INV-HASH-VALID" })
          expect(refused.message).toContain("rune 5")
          expect(yield* log.append([note("b", 13)])).toHaveLength(1)
          const [said] = yield* log.tail({ kinds: ["invariant.violated"] }, 1)
          expect(said).toMatchObject({
            stream: "daemon",
            payload: { rule: "INV-HASH-VALID", severity: "FATAL", stream: "a" }
          })
        })
      )
    })
  )

  it.effect("ids whose runes are gone are not given out again", () =>
    Effect.gen(function* () {
      const file = yield* store
      force(file, "DELETE FROM runes WHERE event_id > 10")
      const [next] = yield* withLog({ file }, (log) => log.append([note("c", 1)]))
      expect(next!.eventId).toBe(13)
    })
  )

  it.live("a damaged byte anywhere in the file is either noticed or changes no rune", () =>
    seeded(
      Effect.gen(function* () {
        const original = yield* store
        const runes = yield* withInlineLog({ file: original }, (log) => Stream.runCollect(log.read({})))
        const bytes = readFileSync(original)
        const samples = sample(2000, 20)
        const copies = yield* folder
        let noticed = 0
        for (let sample = 0; sample < samples; sample++) {
          const at = yield* Random.nextIntBetween(0, bytes.length - 1)
          const flipped = Buffer.from(bytes)
          flipped[at] = flipped[at]! ^ (1 << (sample % 8))
          const file = join(copies, `${sample}.db`)
          writeFileSync(file, flipped)
          const outcome = yield* Effect.exit(
            withSampleLog(sample)({ file, giveUpAfter: "0 millis" }, (log) =>
              Effect.all([Effect.map(log.verify, (verdict) => verdict.problems), Stream.runCollect(log.read({}))])
            )
          )
          if (Exit.isFailure(outcome)) {
            expect(Cause.hasDies(outcome.cause), String(outcome.cause)).toBe(false)
            noticed += 1
          } else if (outcome.value[0].length > 0) noticed += 1
          else expect(outcome.value[1], `bit ${sample % 8} of byte ${at}`).toEqual(runes)
        }
        expect(noticed).toBeGreaterThan(0)
      })
    )
  )

  it.effect("a store that was copied verifies like the original", () =>
    Effect.gen(function* () {
      const file = yield* store
      const copy = join(yield* folder, "copy.db")
      copyFileSync(file, copy)
      expect(yield* problems(copy)).toEqual([])
    })
  )
})
