/**
 * Flips: a store with all that a store can hold, and copies of it with single flipped bits.
 */
import { Effect, Fiber, Random } from "effect"
import { TestClock } from "effect/testing"
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import * as DaemonLog from "../../../src/app/DaemonLog.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import { folder, note, storeFile, withInlineLog } from "./Disk.ts"

export const STREAMS = ["shop", "yard", "quiet"]
const EVER = Number.MAX_SAFE_INTEGER

/** Small and large payloads, erased texts, a segment, free pages. */
export const store = Effect.gen(function* () {
  const file = yield* storeFile
  yield* withInlineLog({ file }, (log) =>
    Effect.gen(function* () {
      for (let n = 1; n <= 900; n += 30) {
        yield* log.append(
          Array.from({ length: 30 }, (_, index) =>
            note(STREAMS[(n + index) % 3]!, n + index, "text ".repeat((n + index) % 40 === 0 ? 3_000 : 9))
          )
        )
      }
      const sealing = yield* Effect.forkChild(log.seal({ upTo: 300, before: EVER, least: 1 }))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(sealing)
      yield* log.erase(400, "ada")
      yield* TestClock.adjust("5 seconds")
    })
  )
  return file
})

export const verified = (file: string) =>
  Effect.flatMap(EventLog, (log) => log.verify).pipe(Effect.provide(DaemonLog.layerReadOnly({ file }), { local: true }))

/** The store once more, with one file of which bits are flipped, a single one at a time. */
export const copyOf = Effect.fnUntraced(function* (original: string, name: string) {
  const copies = yield* folder
  const bytes = readFileSync(join(dirname(original), name))
  return {
    file: join(copies, "runes.db"),
    size: bytes.length,
    flip: (at: number) =>
      Effect.map(Random.nextIntBetween(0, 7), (bit) => {
        rmSync(copies, { recursive: true })
        cpSync(dirname(original), copies, { recursive: true })
        const flipped = Buffer.from(bytes)
        flipped[at] = flipped[at]! ^ (1 << bit)
        writeFileSync(join(copies, name), flipped)
        return `bit ${bit} of byte ${at} of ${name} (page ${Math.floor(at / 4096) + 1}, byte ${at % 4096})`
      })
  }
})
