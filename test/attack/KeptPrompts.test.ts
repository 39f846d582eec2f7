/**
 * KeptPrompts: with `keepPrompts` texts older than that are gone from every byte of the state folder,
 * whatever runes they stood in, also where the daemon is killed meanwhile; what still waits stays.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import * as DaemonLog from "../../src/app/DaemonLog.ts"
import { EventLog } from "../../src/core/event-log/EventLog.ts"
import * as Sandbox from "../support/Sandbox.ts"
import { sample, long } from "../support/Long.ts"

const OLD = "the-old-text-whose-time-is-over"
const WAITS = "the-text-that-nobody-has-read-yet"
const CRASH_AT = resolve(import.meta.dirname, "../support/crashAt.ts")

const command = { backend: { type: "command", shell: "cat" } }

const keep = (box: Sandbox.Sandbox, span: string) => {
  // a keeper holds what a run has said until that has ended
  box.setUser({ keepPrompts: span, orphanGrace: "0 seconds" })
}

const filesWith = (box: Sandbox.Sandbox, text: string) =>
  readdirSync(box.state, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => readFileSync(file).includes(text))

const holding = (box: Sandbox.Sandbox, text: string) =>
  Effect.map(box.runes(), (runes) => runes.filter(({ payload }) => JSON.stringify(payload).includes(text)))

/** A log with turns that are over, and a message to an agent that does not run. */
const lived = Effect.gen(function* () {
  const box = yield* Sandbox.make()
  box.configure({ agents: { a: command, idle: { ...command, autostart: false } } })
  yield* box.up()
  for (const n of [1, 2, 3]) {
    yield* box.cli("send", "a", `${OLD} ${n}`)
    yield* box.until(`turn ${n} is over`, box.runes("turn.completed"), (runes) => runes.length === n)
  }
  yield* box.cli("send", "idle", WAITS)
  assert.isAbove((yield* holding(box, OLD)).length, 6)
  return box
})

/** The agent that did not run reads its message, which is kept from now on: so it can be looked at. */
const readsWhatWaited = Effect.fnUntraced(function* (box: Sandbox.Sandbox) {
  keep(box, "30d")
  yield* box.up()
  yield* box.cli("start", "idle")
  yield* box.until("what waited is read", box.runes("run.output"), (runes) =>
    runes.some(({ payload }) => JSON.stringify(payload).includes(WAITS))
  )
  assert.strictEqual((yield* box.cli("verify")).code, 0)
})

/** A daemon that kills itself there. */
const killedAt = Effect.fnUntraced(function* (box: Sandbox.Sandbox, point: string) {
  box.environment["AGENTD_CRASH_AT"] = point
  yield* box.up(Effect.succeed(true))
  const signal = Effect.sync(() => box.daemon?.signalCode ?? null)
  yield* box.until(`killed at ${point}`, signal, (code) => code === "SIGKILL")
})

/** The runes that a daemon left which is gone. */
const left = (box: Sandbox.Sandbox) =>
  Effect.flatMap(EventLog, (log) => Stream.runCollect(log.read({}))).pipe(
    Effect.provide(DaemonLog.layerReadOnly({ file: join(box.state, "runes.db") }), { local: true })
  )

describe("keepPrompts", () => {
  it.live("erases all runes that hold what is older, and nothing that waits; the chain stays whole", () =>
    Effect.gen(function* () {
      const box = yield* lived
      yield* box.terminate
      keep(box, "1 second")
      yield* box.up()
      yield* box.until("it is gone", holding(box, OLD), (runes) => runes.length === 0)
      assert.lengthOf(yield* holding(box, WAITS), 1)
      const by = (yield* box.runes("rune.erased")).map(({ payload }) => payload["by"])
      assert.deepStrictEqual([...new Set(by)], ["agentd keepPrompts"])
      assert.strictEqual((yield* box.cli("verify")).code, 0)
      yield* box.terminate
      assert.deepStrictEqual(filesWith(box, OLD), [])
      yield* readsWhatWaited(box)
    })
  )

  for (const isClosed of [false, true]) {
    const where = isClosed ? "a closed conversation" : "an open one, in which a message waits"
    long.live(`killed in the midst of erasing, each start goes on where the last one was: ${where}`, () =>
      Effect.gen(function* () {
        const box = yield* lived
        if (isClosed) assert.strictEqual((yield* box.cli("project", "close", "shop", "--yes")).code, 0)
        yield* box.terminate
        keep(box, "1 second")
        box.environment["NODE_OPTIONS"] = `--import ${CRASH_AT}`
        let begun = 0
        const points = ["rewrite: before 2", "rewrite: after 2"]
        for (const point of isClosed ? sample(points, points.slice(1)) : points) {
          yield* killedAt(box, point)
          const runes = yield* left(box)
          const count = (text: string) => runes.filter((rune) => JSON.stringify(rune).includes(text)).length
          assert.isAbove(count('"rune.erasing"'), begun, point)
          assert.strictEqual(count('"rune.erased"'), count('"rune.erasing"') - 1, point)
          assert.isAbove(count(OLD), 0, point)
          if (!isClosed) assert.strictEqual(count(WAITS), 1, point)
          begun = count('"rune.erasing"')
        }
        delete box.environment["NODE_OPTIONS"]
        yield* box.up()
        yield* box.until("it is gone", holding(box, OLD), (runes) => runes.length === 0)
        assert.strictEqual((yield* box.cli("verify")).code, 0)
        yield* box.terminate
        assert.deepStrictEqual(filesWith(box, OLD), [])
        if (!isClosed) yield* readsWhatWaited(box)
      })
    )
  }

  it.live("without it nothing goes", () =>
    Effect.gen(function* () {
      const box = yield* lived
      const before = (yield* holding(box, OLD)).length
      yield* box.terminate
      yield* box.up()
      assert.lengthOf(yield* holding(box, OLD), before)
      assert.deepStrictEqual(yield* box.runes("rune.erasing"), [])
    })
  )
})
