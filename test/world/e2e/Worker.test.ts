/** Real agents under a real daemon: a real socket, store, processes and git repository. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { Effect } from "effect"
import * as Sandbox from "../../support/Sandbox.ts"

const shell = (script: string, more: object = {}) => ({
  backend: { type: "command", shell: script, readyAfter: "50ms", killGrace: "1 second" },
  backoff: { base: "200ms", cap: "1 second" },
  interruptGrace: "2 seconds",
  minRunInterval: "0ms",
  ...more
})

describe("an agent under the daemon", () => {
  it.live("works through its inbox in a worktree of its own and commits there", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      const git = (...args: ReadonlyArray<string>) =>
        execFileSync("git", ["-C", box.project, ...args], { encoding: "utf8" })
      git("init", "-q", "-b", "main")
      git("-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "--allow-empty", "-m", "first")
      box.configure({
        agents: {
          builder: shell(
            'cat >> notes.txt; git add . && git -c user.name=b -c user.email=b@example.org commit -qm "work" && sleep 0.2',
            { worktree: true }
          )
        }
      })
      yield* box.up()
      for (const text of ["one", "two"]) {
        assert.strictEqual((yield* box.cli("send", "builder", text)).code, 0)
        yield* box.untilAgent("builder", "has done it", ({ inbox, state }) => inbox === 0 && state === "BuildingPrompt")
      }
      assert.match(git("show", "agentd/builder:notes.txt"), /one[^]*two/)
      assert.strictEqual(git("rev-list", "--count", "main..agentd/builder").trim(), "2")
      assert.isFalse(existsSync(box.file("notes.txt")), "the person's own checkout is left alone")
      const folder = (yield* box.agents)[0]!.cwd!
      box.configure({ agents: {} })
      assert.strictEqual((yield* box.cli("start")).code, 0)
      const [kept] = yield* box.until(
        "the log says what became of it",
        box.runes("worktree.kept"),
        (all) => all.length > 0
      )
      assert.strictEqual(kept?.payload["reason"], "Unmerged", "cleanup destroys no work")
      assert.isTrue(existsSync(folder))
    })
  )

  it.live("INV-AGENT-SUPERVISED: one crashing never disturbs another", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({
        agents: {
          bad: shell("echo broken >&2; exit 3", { mode: "loop", prompt: "work" }),
          good: shell("cat; exec sleep 300")
        }
      })
      yield* box.up()
      yield* box.cli("send", "good", "begin")
      const before = yield* box.untilAgent("good", "runs", ({ state }) => state === "Running")
      const stopped = yield* box.untilAgent("bad", "stops for good", ({ detail }) =>
        detail.includes("5 errors in a row")
      )
      assert.deepInclude(stopped, { state: "Stopped", consecutiveErrors: 5 })
      assert.match(stopped.detail, /5 errors in a row.*exit code 3: broken/)
      const after = (yield* box.agents).find(({ agent }) => agent === "good")
      assert.strictEqual(after?.pid, before.pid)
      assert.strictEqual(after?.totalErrors, 0)
      const why = yield* box.cli("why", "bad")
      assert.match(why.stdout, /5th error in a row[^]*agentd .*start shop\/bad/)
    })
  )

  it.live("an urgent message ends the run, and the next one carries it and the work cut short", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      const seen = box.file("seen")
      box.configure({
        agents: { thinker: shell(`cat > ${seen}.$$; mv ${seen}.$$ ${seen}; grep -q urgent ${seen} || sleep 300`) }
      })
      yield* box.up()
      yield* box.cli("send", "thinker", "think for ever")
      yield* box.untilAgent("thinker", "runs", ({ state }) => state === "Running")
      yield* box.cli("send", "thinker", "--urgent", "answer now")
      yield* box.untilAgent("thinker", "is done", ({ inbox, state }) => inbox === 0 && state === "BuildingPrompt")
      assert.match(readFileSync(seen, "utf8"), /interrupted by an urgent message[^]*think for ever[^]*answer now/)
      const runes = yield* box.runes("worker.moved")
      assert.strictEqual(runes.filter((rune) => rune.to === "Interrupting").length, 1, "interrupted once")
      const row = (yield* box.agents)[0]
      assert.strictEqual(row?.totalErrors, 0, "an interrupt is no error")
    })
  )

  it.live("interrupt ends the run and drops its work; with no run it says so", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({ agents: { slow: shell("cat; exec sleep 300") } })
      yield* box.up()
      const idle = yield* box.cli("interrupt", "slow")
      assert.strictEqual(idle.code, 1)
      assert.match(idle.stderr, /nothing to interrupt[^]*agentd .*why/)
      yield* box.cli("send", "slow", "work")
      yield* box.untilAgent("slow", "runs", ({ state }) => state === "Running")
      assert.strictEqual((yield* box.cli("interrupt", "slow")).code, 0)
      const row = yield* box.untilAgent("slow", "waits", ({ state }) => state === "BuildingPrompt")
      assert.match(row.detail, /waits for a message/)
    })
  )

  it.live("stops, starts with fresh counters, restarts; the log says who asked", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({ agents: { bad: shell("exit 1", { mode: "loop", prompt: "work", maxConsecutiveErrors: 2 }) } })
      yield* box.up()
      yield* box.untilAgent("bad", "stops", ({ detail }) => detail.includes("2 errors in a row"))
      assert.strictEqual((yield* box.cli("start", "bad")).code, 0)
      yield* box.until(
        "a second incarnation stops",
        box.runes("worker.moved"),
        (runes) => runes.filter((rune) => rune.to === "Stopped").length === 2
      )
      const begun = yield* box.runes("worker.started")
      assert.deepStrictEqual(
        begun.map((rune) => rune.payload["incarnation"]),
        [1, 2]
      )
      assert.notStrictEqual(begun[1]?.payload["by"], "agentd", "a person asked")
    })
  )

  it.live("a message to a stopped agent is kept, and carried when it is started", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      const seen = box.file("seen")
      box.configure({ agents: { later: shell(`cat > ${seen}; sleep 0.1`, { autostart: false }) } })
      yield* box.up()
      const sent = yield* box.cli("send", "later", "keep me")
      assert.match(sent.stdout, /stored for shop\/later, which is stopped/)
      yield* box.cli("start", "later")
      yield* box.untilAgent("later", "has it", ({ inbox, state }) => inbox === 0 && state === "BuildingPrompt")
      assert.match(readFileSync(seen, "utf8"), /keep me/)
    })
  )

  it.live("a program that is not there is fatal at once, with the remedy", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({
        agents: { ghost: { mode: "loop", prompt: "work", backend: { type: "command", argv: ["no-such-program-xyz"] } } }
      })
      yield* box.up()
      // before its start it is stopped, too
      const row = yield* box.untilAgent("ghost", "stops", ({ detail }) => detail.includes("no-such-program-xyz"))
      assert.strictEqual(row.state, "Stopped")
      assert.strictEqual((yield* box.runes("worker.moved")).filter((rune) => rune.to === "Spawning").length, 1)
    })
  )
})
