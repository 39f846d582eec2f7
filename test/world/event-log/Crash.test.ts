/** Tests of the log after kill -9, and after the write-ahead log was torn. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Random, Stream } from "effect"
import { spawn } from "node:child_process"
import { copyFileSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { causeText } from "../../../src/core/event-log/Rune.ts"
import { folder, note, openLog, storeFile, withLog, withSampleLog } from "./Disk.ts"
import { seeded } from "./Seed.ts"
import { sample } from "../../support/Long.ts"

const appender = fileURLToPath(new URL("../../support/appender.ts", import.meta.url))

/** Runs the appender until it has acknowledged so many calls, kills it, and gives what it had said by then. */
const killedAfter = (file: string, writers: number, calls: number) =>
  Effect.callback<ReadonlyArray<string>>((resume) => {
    const child = spawn(process.execPath, [appender, file, String(writers)], { stdio: ["ignore", "pipe", "inherit"] })
    let said = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text
      if (said.split("\n").length > calls) child.kill("SIGKILL")
    })
    child.on("close", (code, signal) => {
      const lines = said.split("\n").slice(0, -1)
      const itself = `the appender ended by itself after ${lines.length} of ${calls} calls: ${code ?? signal}`
      resume(signal === "SIGKILL" ? Effect.succeed(lines) : Effect.die(new Error(itself)))
    })
    return Effect.sync(() => child.kill("SIGKILL"))
  })

describe("kill -9", () => {
  it.live("every acknowledged rune is there, no call is torn, and the chains hold", () =>
    seeded(
      Effect.gen(function* () {
        const file = yield* storeFile
        let acknowledged = 0
        for (let round = 0; round < sample(60, 2); round++) {
          const calls = yield* Random.nextIntBetween(1, 400)
          const said = yield* killedAfter(file, 1 + (round % 4) * 8, calls)
          expect(said.length).toBeGreaterThanOrEqual(calls)
          acknowledged += said.length * 2
          yield* withLog({ file }, (log) =>
            Effect.gen(function* () {
              const runes = yield* Stream.runCollect(log.read({}))
              const places = new Map(runes.map((rune) => [String(rune.eventId), causeText(rune)]))
              for (const rune of said.flatMap((line) => line.split(" "))) {
                const [id, place] = rune.split(":")
                expect(places.get(id!), `rune ${id} of round ${round}`).toBe(place)
              }
              expect(runes.length % 2).toBe(0)
              expect(runes.length).toBeGreaterThanOrEqual(acknowledged)
              expect((yield* log.verify).problems).toEqual([])
            })
          )
        }
      })
    )
  )
})

describe("a torn write-ahead log", () => {
  /** Runes in the file, then more in its write-ahead log alone; copies of both as a power cut finds them. */
  const store = Effect.gen(function* () {
    const file = yield* storeFile
    const settled = yield* withLog({ file }, (log) => log.append(Array.from({ length: 20 }, (_, n) => note("a", n))))
    const log = yield* openLog({ file })
    for (let n = 0; n < 20; n++) yield* log.append([note("a", n, "x".repeat(n * 50)), note("b", n)])
    const runes = yield* Stream.runCollect(log.read({}))
    return { file, settled: settled.length, runes }
  })

  /** Opens what is left: a beginning of what was written, in whole calls, and the log goes on from there. */
  const expectPrefix = (file: string, settled: number, runes: ReadonlyArray<unknown>, sample: number) =>
    withSampleLog(sample)({ file }, (log) =>
      Effect.gen(function* () {
        const left = yield* Stream.runCollect(log.read({}))
        expect(left).toEqual(runes.slice(0, left.length))
        expect(left.length).toBeGreaterThanOrEqual(settled)
        expect((left.length - settled) % 2).toBe(0)
        expect((yield* log.verify).problems).toEqual([])
        const [next] = yield* log.append([note("a", 99)])
        expect(next!.eventId).toBe(left.length + 1)
        return left.length
      })
    )

  const samples = sample(500, 10)

  it.live("cut off at any byte: what is left is a beginning of what was written", () =>
    seeded(
      Effect.gen(function* () {
        const { file, settled, runes } = yield* store
        const copies = yield* folder
        const wal = readFileSync(`${file}-wal`)
        const lengths = new Set<number>()
        for (let sample = 0; sample < samples; sample++) {
          const copy = join(copies, `${sample}.db`)
          copyFileSync(file, copy)
          writeFileSync(`${copy}-wal`, wal.subarray(0, yield* Random.nextIntBetween(0, wal.length)))
          lengths.add(yield* expectPrefix(copy, settled, runes, sample))
        }
        expect(lengths.size).toBeGreaterThan(2)
      })
    )
  )

  it.live("a damaged byte: what came before it is left, and nothing that was changed", () =>
    seeded(
      Effect.gen(function* () {
        const { file, settled, runes } = yield* store
        const copies = yield* folder
        const wal = readFileSync(`${file}-wal`)
        const lengths = new Set<number>()
        for (let sample = 0; sample < samples; sample++) {
          const copy = join(copies, `${sample}.db`)
          const damaged = Buffer.from(wal)
          const at = yield* Random.nextIntBetween(0, wal.length - 1)
          damaged[at] = damaged[at]! ^ 0x10
          copyFileSync(file, copy)
          writeFileSync(`${copy}-wal`, damaged)
          lengths.add(yield* expectPrefix(copy, settled, runes, sample))
        }
        expect(lengths.size).toBeGreaterThan(2)
      })
    )
  )
})
