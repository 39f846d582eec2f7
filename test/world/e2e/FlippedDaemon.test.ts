/** Daemons on stores with a single flipped bit: each starts, or says why not; a repair leads back to work. ALL=1. */
import { assert, it } from "@effect/vitest"
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Random } from "effect"
import { seeded } from "../event-log/Seed.ts"
import * as Sandbox from "../../support/Sandbox.ts"
import * as SqlitePages from "../../support/SqlitePages.ts"
import { all } from "../../support/Long.ts"

const SAMPLES = Number(process.env["SAMPLES"] ?? 20)

const config = {
  agents: {
    a: { backend: { type: "command", shell: "cat" } },
    b: { backend: { type: "command", shell: "cat" }, mode: "inbox" }
  },
  channels: { talk: { agents: ["a", "b"] } }
}

all.describe("a daemon on a store with one flipped bit", () => {
  it.live(
    "starts and can be worked with, or ends with the remedy; no close hangs; a repair leads back to work",
    () =>
      seeded(
        Effect.gen(function* () {
          const box = yield* Sandbox.make()
          box.configure(config)
          yield* box.up()
          for (const text of ["one", "two", "three"]) {
            assert.strictEqual((yield* box.cli("send", "a", text)).code, 0)
            yield* box.until("it answers", box.rows, (rows) => rows.every(({ state }) => state === "BuildingPrompt"))
          }
          yield* box.terminate
          const good = join(box.folder, "good")
          cpSync(box.state, good, { recursive: true })
          const bytes = readFileSync(join(good, "runes.db"))
          const uses = SqlitePages.usesOf(join(good, "runes.db"))
          const places = Array.from({ length: bytes.length }, (_, at) => at).filter((at) => uses(at) === "stored")
          const ends: Record<string, number> = { up: 0, refused: 0, apart: 0, unmended: 0 }
          for (let sample = 0; sample < SAMPLES; sample++) {
            const at = places[yield* Random.nextIntBetween(0, places.length - 1)]!
            const bit = yield* Random.nextIntBetween(0, 7)
            const what = `bit ${bit} of byte ${at} (page ${Math.floor(at / 4096) + 1}, byte ${at % 4096})`
            rmSync(box.state, { recursive: true })
            cpSync(good, box.state, { recursive: true })
            const flipped = Buffer.from(bytes)
            flipped[at] = flipped[at]! ^ (1 << bit)
            writeFileSync(join(box.state, "runes.db"), flipped)
            const started = yield* Effect.result(box.up())
            if (started._tag === "Failure") {
              assert.match(started.failure.message, /agentd .*(verify|repair|restore)/, what)
              ends["refused"]! += 1
            } else {
              ends["up"]! += 1
              const asked = yield* box.cli("send", "a", "four")
              if (asked.code !== 0) {
                assert.match(asked.stderr, /→/, what)
                ends["apart"]! += 1
              }
              const closed = yield* Effect.timeout(box.cli("project", "close", "--yes"), "40 seconds")
              assert.isTrue(closed.code === 0 || /→/.test(closed.stderr), `${what}: ${closed.stderr}`)
              yield* box.terminate
            }
            rmSync(box.state, { recursive: true })
            cpSync(good, box.state, { recursive: true })
            writeFileSync(join(box.state, "runes.db"), flipped)
            const repaired = yield* box.cli("repair", "--yes")
            if (repaired.code !== 0) {
              assert.isBelow(at, 4096, `${what}: ${repaired.stderr}`)
              ends["unmended"]! += 1
              continue
            }
            const verified = yield* box.cli("verify")
            assert.strictEqual(verified.code, 0, `${what}: ${verified.stdout}`)
            yield* box.up()
            const again = yield* box.cli("send", "a", "five")
            assert.strictEqual(again.code, 0, `${what}: ${again.stderr}`)
            yield* box.terminate
          }
          process.stdout.write(`${JSON.stringify(ends)}\n`)
        })
      ),
    3_600_000
  )
})
