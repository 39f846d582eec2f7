/** A store that is taken away from a daemon that runs: nothing is acknowledged any more, and the daemon ends and says why. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schedule } from "effect"
import { copyFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import * as StoreLock from "../../../src/core/event-log/StoreLock.ts"
import { StorePlace } from "../../../src/core/event-log/StorePlace.ts"
import * as Sandbox from "../../support/Sandbox.ts"
import { folder as tempFolder, note, storeFile, withInlineLog, withLog } from "./Disk.ts"

describe("a store that is taken away", () => {
  it.effect("is told from one that is there, and from one in its place", () =>
    Effect.gen(function* () {
      const file = join(yield* tempFolder, "file")
      writeFileSync(file, "one")
      const place = new StorePlace(file)
      writeFileSync(file, "another word")
      assert.isFalse(place.isLeft)
      renameSync(file, `${file}.away`)
      assert.isTrue(place.isLeft)
      copyFileSync(`${file}.away`, file)
      assert.isTrue(place.isLeft, "a copy")
      rmSync(file)
      renameSync(`${file}.away`, file)
      assert.isFalse(place.isLeft, "it is back")
      // a folder on the way is a file: the system answers with an error, and not that there is none
      assert.isFalse(new StorePlace(join(file, "below")).isLeft)
    })
  )

  for (const [how, opened] of [
    ["of a thread's", withLog],
    ["of one that is written on this thread", withInlineLog]
  ] as const)
    for (const [what, take] of [
      ["removed", (folder: string) => rmSync(folder, { recursive: true })],
      ["moved", (folder: string) => renameSync(folder, `${folder}.away`)]
    ] as const)
      it.live(`${how}, and ${what}: the next append fails, and says why`, () =>
        Effect.gen(function* () {
          const file = yield* storeFile
          const within = join(dirname(file), "within", "runes.db")
          mkdirSync(dirname(within))
          yield* Effect.ignore(
            opened({ file: within }, (log) =>
              Effect.gen(function* () {
                yield* log.append([note("a", 1)])
                take(dirname(within))
                const error = yield* Effect.flip(log.append([note("a", 2)]))
                assert.deepInclude(error, { _tag: "StorageError", reason: "moved" })
                assert.include(error.message, within)
                assert.deepInclude(yield* log.failed, { reason: "moved" })
                assert.deepInclude(yield* Effect.flip(log.append([note("a", 3)])), { reason: "moved" })
              })
            )
          )
        })
      )

  it.live("its removal is told to who holds it", () =>
    Effect.gen(function* () {
      const folder = join(yield* tempFolder, "s")
      yield* StoreLock.acquire({ folder, socket: null })
      writeFileSync(join(folder, "runes.db"), "")
      const lost = yield* Effect.forkChild(StoreLock.lost(folder), { startImmediately: true })
      writeFileSync(join(folder, "other"), "")
      for (const name of ["other", "lock.db"]) rmSync(join(folder, name))
      yield* Effect.sleep("20 millis")
      assert.isUndefined(lost.pollUnsafe())
      rmSync(folder, { recursive: true })
      assert.deepInclude(yield* Fiber.join(lost), { reason: "moved" })
    }).pipe(Effect.scoped)
  )

  it.live("a daemon that has nothing to do ends, says why, and its programs end with it", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({
        agents: { a: { mode: "loop", prompt: "go", backend: { type: "command", shell: "echo up; sleep 300" } } }
      })
      yield* box.up()
      yield* box.cli("start")
      yield* box.cli("wait", "a", "--state", "working")
      rmSync(box.state, { recursive: true, maxRetries: 9 })
      yield* box.gone
      assert.match(box.output, /was removed, or moved, while agentd ran/)
      assert.match(box.output, /agentd .*restore/)
      yield* Effect.repeat(box.processes, {
        until: (left) => left.length === 0,
        schedule: Schedule.spaced("50 millis")
      })
    })
  )
})
