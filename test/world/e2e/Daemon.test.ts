/** The daemon as a whole: killed, restarted, doubled, reconfigured. */
import { assert, describe, it } from "@effect/vitest"
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Queue, Random } from "effect"
import * as Sandbox from "../../support/Sandbox.ts"
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { sample, long } from "../../support/Long.ts"

const shell = (script: string, more: object = {}) => ({
  backend: { type: "command", shell: script, readyAfter: "50ms", killGrace: "1 second" },
  backoff: { base: "200ms", cap: "1 second" },
  minRunInterval: "0ms",
  ...more
})

/** Crash points: a sample, or many. */
const KILLS = sample(40, 2)

describe("the daemon", () => {
  long.live(
    "killed while somebody edits its project's file it comes back, by the last good one, and says so until it is mended",
    () =>
      Effect.gen(function* () {
        const box = yield* Sandbox.make()
        const file = { agents: { worker: shell("cat > done") } }
        box.configure(file)
        yield* box.up()
        // its sockets answer before the project is in its log; only one that is known may come back without its file
        yield* box.untilAgent("worker", "is there", ({ state }) => state === "BuildingPrompt")
        yield* box.kill9
        writeFileSync(box.file("agentd.jsonc"), "{ half of")
        yield* box.up()
        yield* box.untilAgent("worker", "is back", ({ state }) => state === "BuildingPrompt")
        assert.match((yield* box.cli("status")).stdout, /agentd\.jsonc/, "what is wrong with the file")
        assert.strictEqual((yield* box.cli("send", "worker", "precious")).code, 0)
        yield* box.until(
          "it was done",
          Effect.sync(() => existsSync(box.file("done"))),
          (done) => done
        )
        const projects = box
          .cli("--json", "status")
          .pipe(
            Effect.map(
              ({ stdout }) => JSON.parse(stdout).projects as ReadonlyArray<{ problems: ReadonlyArray<string> }>
            )
          )
        assert.isNotEmpty((yield* projects)[0]!.problems)
        box.configure(file)
        yield* box.until("the file is sound", projects, ([shop]) => shop!.problems.length === 0)
      })
  )

  it.live("killed at any moment it loses nothing that it acknowledged", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({
        agents: {
          a: shell("cat; sleep 0.1"),
          b: shell("exit 1", { mode: "loop", prompt: "x", maxTotalErrors: 1000, maxConsecutiveErrors: 1000 })
        }
      })
      const acknowledged: Array<string> = []
      const heard = yield* Queue.unbounded<string>()
      let count = 0
      for (let kill = 0; kill < KILLS; kill++) {
        yield* box.up()
        const sending = yield* Effect.forkChild(
          Effect.forever(
            Effect.gen(function* () {
              const text = `message ${++count}`
              const { code } = yield* box.cli("send", "a", text)
              if (code !== 0) return
              acknowledged.push(text)
              yield* Queue.offer(heard, text)
            })
          )
        )
        // Each life acknowledges something; then it ends at any moment, on a slow machine, too.
        yield* Queue.take(heard)
        yield* Effect.sleep(yield* Random.nextIntBetween(0, 1200))
        yield* box.kill9
        sending.interruptUnsafe()
      }
      yield* box.up()
      const received = (yield* box.runes("inbox.received")).map(
        (rune) => (rune.payload["event"] as { readonly message: { readonly text: string } }).message.text
      )
      assert.isAbove(acknowledged.length, 0)
      assert.deepStrictEqual(
        acknowledged.filter((text) => !received.includes(text)),
        []
      )
      assert.strictEqual(new Set(received).size, received.length, "and none is there twice")
      yield* box.untilAgent(
        "a",
        "has worked off all of it",
        ({ inbox, state }) => inbox === 0 && state === "BuildingPrompt"
      )
      const verdict = yield* box.cli("verify")
      assert.strictEqual(verdict.code, 0, verdict.stdout)
    })
  )

  it.live("a cool-down that a restart interrupts is neither shortened nor begun again", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({
        agents: {
          bad: shell("exit 1", { mode: "loop", prompt: "x", backoff: { base: "6 seconds", cap: "6 seconds" } })
        }
      })
      yield* box.up()
      const before = yield* box.untilAgent("bad", "cools down", ({ state }) => state === "CoolingDown")
      yield* box.kill9
      yield* box.up()
      // A slow machine may be past the cool-down by now: the log tells what was waited for.
      const after = yield* box.untilAgent("bad", "is back", () => true)
      if (after.restsOn === before.restsOn) assert.strictEqual(after.nextAt, before.nextAt)
      yield* box.untilAgent("bad", "goes on", ({ totalErrors }) => totalErrors >= 2)
      const moves = (yield* box.runes("worker.moved")).filter(({ eventId }) => eventId >= before.restsOn)
      const [cooled, elapsed] = moves as [Rune, Rune]
      assert.deepStrictEqual([cooled.to, elapsed.trigger], ["CoolingDown", "BackoffElapsed"])
      assert.isAtLeast(elapsed.at - cooled.at, 6000)
    })
  )

  it.live("stopping it is no OperatorStop: what ran runs again at the next start", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({
        agents: {
          a: shell("exec sleep 300", { mode: "loop", prompt: "x" }),
          b: shell("exec sleep 300", { mode: "loop", prompt: "x" })
        }
      })
      yield* box.up()
      for (const agent of ["a", "b"]) yield* box.untilAgent(agent, "runs", ({ state }) => state === "Running")
      yield* box.cli("stop", "b")
      assert.strictEqual(yield* box.terminate, 0)
      assert.deepStrictEqual(yield* box.processes, [])
      yield* box.up()
      yield* box.untilAgent("a", "runs again", ({ state }) => state === "Running")
      assert.strictEqual((yield* box.agents).find(({ agent }) => agent === "b")?.state, "Stopped")
      const kinds = (yield* box.runes()).map((rune) => rune.kind)
      assert.includeMembers(kinds, ["daemon.started", "daemon.stopped"])
    })
  )

  it.live(
    "a config that breaks leaves the last good one in force, and says what is wrong; another one is taken over when a person starts it",
    () =>
      Effect.gen(function* () {
        const box = yield* Sandbox.make()
        const a = shell("exec sleep 300", { mode: "loop", prompt: "x" })
        box.configure({ agents: { a } })
        yield* box.up()
        const before = yield* box.untilAgent("a", "runs", ({ state }) => state === "Running")
        box.configure({ agents: { a: { ...a, mode: "lop" } } })
        yield* box.until("the problem shows", box.cli("status"), ({ stdout }) => /agents\.a\.mode/.test(stdout))
        assert.strictEqual((yield* box.agents)[0]?.pid, before.pid)
        box.configure({ agents: { a, b: shell("cat") } })
        yield* box.until("it waits", box.cli("status"), ({ stdout }) => /agentd .*trust/.test(stdout))
        assert.strictEqual((yield* box.agents).length, 1)
        yield* box.agree
        yield* box.untilAgent("b", "is there", ({ state }) => state === "BuildingPrompt")
        assert.strictEqual((yield* box.agents).find(({ agent }) => agent === "a")?.pid, before.pid)
        box.configure({ agents: { b: shell("cat") } })
        yield* box.cli("start")
        yield* box.until("a is gone", box.rows, (rows) => rows.length === 1)
        yield* box.until("and its processes", box.processes, (pids) => pids.length === 0)
        box.configure({ agents: { a, b: shell("cat") } })
        yield* box.agree
        yield* box.untilAgent("a", "is back", ({ state }) => state === "Running")
      })
  )

  it.live("a log that is damaged is refused with the remedy, and no agent runs", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      const ran = box.file("ran")
      box.configure({ agents: { a: shell(`touch ${ran}`, { mode: "loop", prompt: "x" }) } })
      mkdirSync(box.state, { mode: 0o700 })
      writeFileSync(join(box.state, "runes.db"), "this is no database, whatever it is called ".repeat(200))
      const up = yield* box.cli("up")
      assert.strictEqual(up.code, 74, up.stderr)
      assert.match(up.stderr, /runes\.db/)
      assert.isFalse(existsSync(ran))
    })
  )
})
