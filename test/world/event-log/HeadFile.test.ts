/** A store that lacks what was acknowledged: `verify` and a start say so; a power cut's older file says nothing. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { copyFileSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Sandbox from "../../support/Sandbox.ts"
import * as DaemonLog from "../../../src/app/DaemonLog.ts"
import * as Repair from "../../../src/core/event-log/Repair.ts"
import { meddle, note, storeFile, withInlineLog } from "./Disk.ts"
import { verified } from "./Flips.ts"
import { anchorFileOf, anchorIn } from "../../../src/core/event-log/HeadFile.ts"

const messages = (file: string) =>
  Effect.map(verified(file), ({ problems }) => problems.map(({ message }) => message).join("; "))

/** Twelve runes, and the store as it was after six. */
const world = Effect.gen(function* () {
  const file = yield* storeFile
  const half = (from: number) => Array.from({ length: 6 }, (_, index) => note("a", from + index))
  yield* withInlineLog({ file }, (log) => log.append(half(1)))
  copyFileSync(file, `${file}.old`)
  copyFileSync(anchorFileOf(file), `${file}.old.head`)
  yield* withInlineLog({ file }, (log) => log.append(half(7)))
  return file
})

describe("the newest rune, noted beside the store", () => {
  it.effect("is the newest that was acknowledged", () =>
    Effect.gen(function* () {
      const file = yield* world
      assert.strictEqual(anchorIn(file)?.eventId, 12)
      assert.strictEqual(yield* messages(file), "")
    })
  )

  it.effect(
    "an older copy in the store's place is named, and said once in the log by the start that goes on with it",
    () =>
      Effect.gen(function* () {
        const file = yield* world
        copyFileSync(`${file}.old`, file)
        assert.match(yield* messages(file), /ends with rune 6, and rune 12 was acknowledged/)
        const told = (log: Parameters<Parameters<typeof withInlineLog>[1]>[0]) =>
          log.tail({ stream: "daemon", kinds: ["invariant.violated"] }, 5)
        yield* withInlineLog({ file }, (log) =>
          Effect.gen(function* () {
            yield* log.append([note("a", 7)])
            const [rune] = yield* told(log)
            assert.match(String(rune?.payload["message"]), /rune 12 was acknowledged/)
          })
        )
        yield* withInlineLog({ file }, (log) => Effect.map(told(log), (runes) => assert.strictEqual(runes.length, 1)))
        assert.strictEqual(yield* messages(file), "")
      })
  )

  it.effect("a repair of an older copy says that it brings nothing back", () =>
    Effect.gen(function* () {
      const file = yield* world
      copyFileSync(`${file}.old`, file)
      const input = { file, rules: DaemonLog.rules, onLost: () => {} }
      assert.match((yield* Repair.look(input)).behind ?? "", /rune 12 was acknowledged/)
      assert.match((yield* Repair.run(input, 1_000_000)).plan.behind ?? "", /rune 12 was acknowledged/)
      assert.strictEqual(yield* messages(file), "")
    })
  )

  it.effect("an older copy that has gone on elsewhere is named", () =>
    Effect.gen(function* () {
      const file = yield* world
      const anchor = readFileSync(anchorFileOf(file))
      copyFileSync(`${file}.old`, file)
      rmSync(anchorFileOf(file))
      yield* withInlineLog({ file }, (log) => log.append(Array.from({ length: 9 }, (_, n) => note("b", n))))
      writeFileSync(anchorFileOf(file), anchor)
      assert.match(yield* messages(file), /rune 12 is another than the one that was acknowledged/)
    })
  )

  it.effect("an older file, one that is not whole, and none say nothing: a power cut leaves them", () =>
    Effect.gen(function* () {
      const file = yield* world
      copyFileSync(`${file}.old.head`, anchorFileOf(file))
      assert.strictEqual(yield* messages(file), "")
      writeFileSync(anchorFileOf(file), Buffer.alloc(128))
      assert.strictEqual(yield* messages(file), "")
      rmSync(anchorFileOf(file))
      assert.strictEqual(yield* messages(file), "")
      yield* withInlineLog({ file }, (log) => log.append([note("a", 13)]))
      assert.strictEqual(anchorIn(file)?.eventId, 13)
    })
  )

  it.effect("runes whose rows are gone are missing, whatever the file says", () =>
    Effect.gen(function* () {
      const file = yield* world
      meddle(file, "UPDATE head SET event_id = 11")
      assert.match(yield* messages(file), /rune 12 was acknowledged/)
    })
  )

  it.live(
    "a daemon that was killed, and whose write-ahead log was removed: verify names what is missing, and it waits for a person",
    () =>
      Effect.gen(function* () {
        const box = yield* Sandbox.make()
        box.configure({ agents: { a: { backend: { type: "command", shell: "cat" } } } })
        yield* box.up()
        assert.strictEqual((yield* box.cli("send", "a", "acknowledged")).code, 0)
        yield* box.kill9
        rmSync(join(box.state, "runes.db-wal"), { force: true })
        const verified = yield* box.cli("verify")
        assert.notStrictEqual(verified.code, 0, verified.stdout)
        assert.match(verified.stdout + verified.stderr, /write-ahead log/)
        yield* box.up()
        const waiting = yield* box.cli("waiting")
        assert.match(waiting.stdout, /log.* has lost acknowledged runes: .*write-ahead log/)
      })
  )
})
