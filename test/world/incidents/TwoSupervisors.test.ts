/** Incidents that others had, by their names: daemons that come to a store which has one, while the lock's file is gone: they go again, and have touched nothing. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { hostname } from "node:os"
import { join } from "node:path"
import { agentd, launch } from "../cli/Child.ts"
import { folder } from "../event-log/Disk.ts"
import * as Sandbox from "../../support/Sandbox.ts"
import { long } from "../../support/Long.ts"

/** Files that a second one could take its place from: the lock, its note, and where the first one listens. */
const REMOVED = [["lock.db"], ["lock.db", "lock.json"], ["lock.db", "lock.json", "control.sock"]]

const until = <A>(ask: Effect.Effect<A | undefined>): Effect.Effect<A> =>
  Effect.flatMap(ask, (found) =>
    found === undefined ? Effect.andThen(Effect.sleep("30 millis"), until(ask)) : Effect.succeed(found)
  )

const inodeOf = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.ino

const sleeps = { backend: { type: "command", shell: "exec sleep 300", readyAfter: "50ms" } }

describe("two supervisors", () => {
  it.live("a second daemon on the same store is refused; a second project joins the live one", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({ agents: { a: { ...sleeps, mode: "loop", prompt: "x" } } })
      yield* box.up()
      yield* box.untilAgent("a", "runs", ({ state }) => state === "Running")
      const second = yield* box.cli("up")
      assert.strictEqual(second.code, 75, second.stderr)
      assert.match(second.stderr, /agentd/)
      const other = join(box.folder, "other")
      mkdirSync(other)
      writeFileSync(join(other, "agentd.jsonc"), JSON.stringify({ agents: { a: sleeps } }))
      const joined = yield* box.cliIn(other, "start")
      assert.strictEqual(joined.code, 0, joined.stderr)
      yield* box.until("both are there", box.rows, (rows) => rows.length === 2)
      const ambiguous = yield* box.cliIn(box.folder, "why", "a")
      assert.strictEqual(ambiguous.code, 1)
      assert.match(ambiguous.stderr, /names 2 agents/)
      assert.match((yield* box.cliIn(other, "why", "a")).stdout, /other\/a/)
      assert.match((yield* box.cliIn(other, "why", "shop/a")).stdout, /shop\/a/)
    })
  )

  long.live(
    "twenty daemons over one store whose lock's file is removed: the first goes on, no rune is of another",
    () =>
      Effect.gen(function* () {
        const state = join(yield* folder, "s")
        const ask = (verb: string) => agentd(["--state", state, ...verb.split(" ")])
        const first = yield* launch(["--state", state, "up"])
        const runes = Effect.map(ask("log --json"), ({ code, out }) => (code === 0 ? out : undefined))
        yield* until(Effect.map(ask("status --json"), ({ code }) => (code === 0 ? true : undefined)))
        const before = yield* runes
        assert.include(before, '"daemon.started"')
        for (let round = 0; round < 20; round++) {
          const removed = REMOVED[round < 16 ? round % 2 : 2]!
          for (const name of removed) rmSync(join(state, name), { force: true })
          const second = yield* ask("up")
          assert.strictEqual(second.code, 75, second.err)
          assert.include(second.err, "is in use by another agentd")
          assert.strictEqual(inodeOf(join(state, "lock.db")), undefined, "it makes no lock of its own")
          assert.include(second.err, `pid ${first.child.pid}`)
        }
        assert.strictEqual(first.child.exitCode, null)
        first.child.kill("SIGTERM")
        assert.strictEqual((yield* first.ended).code, 0)
        const after = (yield* ask("verify --json")).out
        assert.deepInclude(JSON.parse(after), { problems: [] })
        // in the log of the next one
        const next = yield* launch(["--state", state, "up"])
        const told = yield* until(
          Effect.map(runes, (text) => (text?.match(/"daemon.started"/g)?.length === 2 ? text : undefined))
        )
        assert.strictEqual(told.match(/"daemon.stopped"/g)?.length, 1)
        next.child.kill("SIGTERM")
        yield* next.ended
      })
  )

  it.live("a store that a daemon of another host has: refused by its name, until that one's note is gone", () =>
    Effect.gen(function* () {
      const state = join(yield* folder, "s")
      const first = yield* launch(["--state", state, "up"])
      yield* until(Effect.sync(() => inodeOf(join(state, "lock.json"))))
      first.child.kill("SIGKILL")
      yield* first.ended
      const note = { pid: 4711, socket: "/run/x.sock", host: `not-${hostname()}`, boot: "another", start: "1" }
      writeFileSync(join(state, "lock.json"), JSON.stringify(note))
      const { code, err } = yield* agentd(["--state", state, "up"])
      assert.strictEqual(code, 75)
      assert.include(err, `on the host not-${hostname()} (pid 4711)`)
      assert.include(err, `rm '${join(state, "lock.json")}'`)
      assert.deepStrictEqual(JSON.parse(readFileSync(join(state, "lock.json"), "utf8")), note)
      rmSync(join(state, "lock.json"))
      const second = yield* launch(["--state", state, "up"])
      yield* until(Effect.map(agentd(["--state", state, "status"]), (asked) => (asked.code === 0 ? true : undefined)))
      second.child.kill("SIGTERM")
      assert.strictEqual((yield* second.ended).code, 0)
    })
  )
})
