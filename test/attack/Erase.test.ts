/**
 * Attacks on erasure: a text that was erased is looked for in every byte that the daemon keeps;
 * what is left is looked over by `verify`, and edited behind its back; the daemon is killed at
 * each step.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { gunzipSync } from "node:zlib"
import * as Erasure from "../../src/core/event-log/Erasure.ts"
import type { EventLog } from "../../src/core/event-log/EventLog.ts"
import { hashPayload } from "../../src/core/event-log/HashChain.ts"
import type { StreamFold } from "../../src/core/event-log/StreamFold.ts"
import {
  archivedRune,
  closing,
  force,
  note,
  output,
  storeFile,
  withInlineLog,
  withLog
} from "../world/event-log/Disk.ts"

const STREAM = "shop-1a2b3c4d"
const SECRET = "the-text-that-nobody-should-read"
/** The rune that holds it, between others of its stream and of another. */
const RUNE = 7

type Log = EventLog["Service"]

const drafts = (count: number) =>
  Array.from({ length: count }, (_, n) =>
    note(n % 3 === 2 ? "other" : STREAM, n, n + 1 === RUNE ? SECRET : `text ${n}`)
  )

/** A fold whose snapshots hold the texts. */
const texts: StreamFold<ReadonlyArray<string>> = {
  name: "texts",
  version: 1,
  initial: [],
  apply: (all, { payload }) => [...all, JSON.stringify(payload)]
}

/** All bytes in the state folder, packed ones as they are and unpacked. */
const bytesIn = (file: string): string =>
  readdirSync(dirname(file), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const bytes = readFileSync(join(entry.parentPath, entry.name))
      return entry.name.endsWith(".gz") ? gunzipSync(bytes).toString("latin1") : bytes.toString("latin1")
    })
    .join("\n")

const isGone = (file: string) => assert.notInclude(bytesIn(file), SECRET)

const payloadOf = (log: Log, eventId: number) => Effect.map(log.get(eventId), (rune) => rune?.payload)

const left = {
  event: { _tag: "Received", n: 6, message: { messageId: "6", from: "ada", text: "[erased]", urgent: false, at: 6 } }
}

const archived = (file: string) =>
  withLog({ file }, (log) =>
    Effect.gen(function* () {
      yield* log.append([...drafts(30), closing(STREAM)])
      yield* log.archive(STREAM, archivedRune(STREAM))
    })
  )

/** The rune with which an erasure begins, as `erase` writes it. */
const beginning = (payload: unknown) => {
  const text = JSON.stringify(payload)
  const fields = Erasure.textsIn(payload)
  const erasing = {
    eventId: RUNE,
    stream: STREAM,
    fields,
    left: hashPayload(Erasure.without(text, fields)),
    by: "ada"
  }
  return { stream: "daemon", kind: "rune.erasing", actor: "log/eraser", payload: erasing }
}

describe("Erase", () => {
  it.live("no byte of the state folder holds the text: store, write-ahead log, snapshots; the structure stays", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withLog({ file, folds: [texts] }, (log) =>
        Effect.gen(function* () {
          yield* log.append(drafts(300))
          const { texts: found } = yield* log.recover(STREAM, { texts })
          assert.include(JSON.stringify(found.state), SECRET)
        })
      )
      assert.include(bytesIn(file), SECRET)
      yield* withLog({ file, folds: [texts] }, (log) =>
        Effect.gen(function* () {
          yield* log.recover(STREAM, { texts })
          const would = yield* log.erasable(RUNE)
          assert.deepStrictEqual(would, {
            eventId: RUNE,
            stream: STREAM,
            kind: "inbox.received",
            fields: ["event.message.text"],
            size: SECRET.length
          })
          yield* log.append([note(STREAM, 300, "one more, so that the newest runes are in memory")])
          yield* log.erase(RUNE, "ada")
          assert.deepStrictEqual(yield* payloadOf(log, RUNE), left)
          const all = yield* Stream.runCollect(log.read({ stream: STREAM }))
          assert.notInclude(JSON.stringify(all), SECRET)
          isGone(file)
          const verdict = yield* log.verify
          assert.deepStrictEqual(verdict.problems, [])
          assert.deepStrictEqual(verdict.erased, [{ eventId: RUNE, stream: STREAM }])
          const told = yield* log.tail({ stream: "daemon" }, 2)
          assert.deepStrictEqual(
            told.map(({ kind }) => kind),
            ["rune.erasing", "rune.erased"]
          )
          assert.include(JSON.stringify(told), '"by":"ada"')
        })
      )
      isGone(file)
      yield* withLog({ file, folds: [texts] }, (log) =>
        Effect.gen(function* () {
          const { texts: found } = yield* log.recover(STREAM, { texts })
          assert.lengthOf(found.state, 201)
          assert.notInclude(JSON.stringify(found.state), SECRET)
        })
      )
    })
  )

  it.live("what was appended just now is erased from memory, too, and erasing twice is refused", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          yield* log.append(drafts(10))
          yield* log.erase(RUNE, "ada")
          assert.deepStrictEqual(yield* payloadOf(log, RUNE), left)
          assert.strictEqual((yield* Effect.flip(log.erase(RUNE, "ada")))._tag, "RuneRefused")
        })
      )
      isGone(file)
    })
  )

  it.live("from an archive, whose other lines stay as they are", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* archived(file)
      assert.include(bytesIn(file), SECRET)
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          yield* log.erase(RUNE, "ada")
          assert.deepStrictEqual((yield* log.verify).problems, [])
        })
      )
      isGone(file)
      assert.include(bytesIn(file), "text 1")
    })
  )

  it.live("a stream is archived after a text of it was erased", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          yield* log.append([...drafts(30), closing(STREAM)])
          yield* log.erase(RUNE, "ada")
          yield* log.archive(STREAM, archivedRune(STREAM))
          assert.deepStrictEqual((yield* log.verify).problems, [])
        })
      )
      isGone(file)
    })
  )

  for (const step of ["rune.erasing is durable", "the store is rewritten", "the snapshots are gone"] as const) {
    it.live(`killed when ${step}: the next start finishes it, once`, () =>
      Effect.gen(function* () {
        const file = yield* storeFile
        yield* withLog({ file }, (log) =>
          Effect.gen(function* () {
            yield* log.append(drafts(10))
            const payload = yield* payloadOf(log, RUNE)
            yield* log.append([beginning(payload)])
          })
        )
        if (step !== "rune.erasing is durable") {
          force(file, `UPDATE runes SET payload = '${JSON.stringify(left)}' WHERE event_id = ${RUNE}`)
        }
        for (let start = 0; start < 2; start++) {
          yield* withInlineLog({ file }, (log) =>
            Effect.gen(function* () {
              yield* Stream.runHead(log.subscribe({ kinds: ["rune.erased"] }))
              assert.strictEqual(yield* Stream.runCount(log.read({ kinds: ["rune.erased"] })), 1)
              assert.deepStrictEqual(yield* payloadOf(log, RUNE), left)
              assert.deepStrictEqual((yield* log.verify).problems, [])
            })
          )
        }
        isGone(file)
      })
    )
  }

  it.live("what is left of a payload cannot be edited, and nothing passes for an erasure that no rune tells of", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withLog({ file }, (log) => Effect.andThen(log.append(drafts(10)), log.erase(RUNE, "ada")))
      const edited = JSON.stringify(left).replace("ada", "eve")
      force(
        file,
        `UPDATE runes SET payload = '${edited}' WHERE event_id = ${RUNE}; UPDATE runes SET payload = '${JSON.stringify(left)}' WHERE event_id = 2`
      )
      const { erased, problems } = yield* withInlineLog({ file }, (log) => log.verify)
      assert.deepStrictEqual(erased, [])
      assert.deepStrictEqual(
        problems.map(({ eventId, rule }) => [eventId, rule]),
        [
          [2, "INV-HASH-VALID"],
          [RUNE, "INV-HASH-VALID"]
        ]
      )
    })
  )

  it.live("what states are made of is refused with a reason, and nothing changes", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      yield* withLog({ file }, (log) =>
        Effect.gen(function* () {
          yield* log.append([...drafts(10), closing(STREAM), output("other", "a line")])
          for (const eventId of [11, 99, 0]) {
            const refused = yield* Effect.flip(log.erase(eventId, "ada"))
            assert.strictEqual(refused._tag, "RuneRefused")
          }
          assert.match((yield* Effect.flip(log.erasable(11))).message, /holds no text that can be erased: ids/)
          assert.deepStrictEqual((yield* log.erasable(12)).fields, ["text"])
          assert.strictEqual(yield* Stream.runCount(log.read({ kinds: ["rune.erasing"] })), 0)
          yield* log.erase(12, "ada")
          const refused = yield* Effect.flip(log.erasable(13))
          assert.strictEqual(refused._tag, "RuneRefused")
        })
      )
    })
  )
})
