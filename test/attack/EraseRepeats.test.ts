/**
 * EraseRepeats: a text that was sent stands in several runes and, where it is what a waiting call would
 * do, in a file: `agentd erase` names the runes, takes them where it is told to, and reaches the file.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { Rune } from "../../src/core/event-log/Rune.ts"
import * as Sandbox from "../support/Sandbox.ts"
import { long } from "../support/Long.ts"

const SECRET = "the-text-that-nobody-should-read"
const AGENT = join(import.meta.dirname, "../fixtures/acp/agent.mjs")

const log = (box: Sandbox.Sandbox) =>
  Effect.map(box.cli("--json", "log", "-n", "10000"), ({ stdout }) =>
    stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Rune)
  )

const holding = (runes: ReadonlyArray<Rune>) => runes.filter(({ payload }) => JSON.stringify(payload).includes(SECRET))

/** Files of the state folder that hold the text. */
const filesWith = (box: Sandbox.Sandbox) =>
  readdirSync(box.state, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => readFileSync(file).includes(SECRET))

describe("agentd erase", () => {
  it.live("names the runes that repeat the text, and with --also takes them all", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({ agents: { a: { backend: { type: "command", shell: "cat" } } } })
      yield* box.up()
      yield* box.cli("send", "a", `do it: ${SECRET}`)
      yield* box.until("it is done", box.runes("turn.completed"), (runes) => runes.length > 0)
      yield* box.cli("send", "a", "another matter, which stays")
      yield* box.until("that is done, too", box.runes("turn.completed"), (runes) => runes.length > 1)
      const before = holding(yield* log(box))
      assert.isAbove(before.length, 2, "one message is in more than one rune")
      const sent = before.find(({ kind }) => kind === "inbox.received")!
      const others = before.filter(({ eventId }) => eventId !== sent.eventId)
      const asked = yield* box.cli("erase", String(sent.eventId))
      assert.strictEqual(asked.code, 2)
      for (const { eventId, kind } of others) assert.include(asked.stdout + asked.stderr, `${eventId} (${kind})`)
      assert.notInclude(asked.stdout + asked.stderr, SECRET)
      assert.strictEqual(holding(yield* log(box)).length, before.length, "nothing was erased by asking")
      const done = yield* box.cli("erase", String(sent.eventId), "--also", "--yes")
      assert.strictEqual(done.code, 0, done.stderr)
      for (const { eventId } of others) assert.include(done.stdout, String(eventId))
      assert.deepStrictEqual(holding(yield* log(box)), [])
      assert.include(JSON.stringify(yield* log(box)), "another matter, which stays")
      assert.strictEqual((yield* box.cli("verify")).code, 0)
      yield* box.terminate
      yield* box.up()
      assert.deepStrictEqual(filesWith(box), [])
      assert.strictEqual((yield* box.cli("verify")).code, 0)
    })
  )

  long.live("reaches the file in which a call that waits keeps its whole input", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({
        agents: { a: { backend: { type: "acp", argv: [process.execPath, AGENT, "asking"] } } }
      })
      yield* box.up()
      yield* box.cli("send", "a", SECRET)
      const waiting = () => readdirSync(join(box.state, "waiting"))
      yield* box.until("a call waits", box.runes("tool.approval_requested"), (runes) => runes.length > 0)
      yield* box.until("its input is kept", Effect.sync(waiting), (files) => files.length === 1)
      const call = (yield* log(box)).find(({ kind }) => kind === "tool.call")!
      assert.strictEqual((yield* box.cli("erase", String(call.eventId), "--yes")).code, 0)
      assert.deepStrictEqual(waiting(), [])
      assert.strictEqual((yield* box.cli("verify")).code, 0)
    })
  )
})
