/** Incidents that others had with agents, by their names: all under one real daemon, which is killed in the end. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { execFileSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe } from "vitest"
import * as Stage from "../../support/Stage.ts"

/** Backends that have a process of their own. */
const PROGRAMS = ["claude", "acp"] as const

const shell = (script: string, { backend = {}, ...more }: Stage.More = {}) => ({
  backend: { type: "command", shell: script, readyAfter: "50ms", killGrace: "300ms", ...backend },
  backoff: { base: "100ms", cap: "200ms" },
  interruptGrace: "2 seconds",
  minRunInterval: "0ms",
  ...more
})

/** Commits a file, and leaves another one that is not committed. */
const WORK =
  'cat > /dev/null; echo 1 > made.txt; git add -A; git -c user.name=w -c user.email=w@example.org commit -qm made; echo 2 > "half done.txt"'

/** Fails at a message that says so, and at that one only. */
const POISONED = "p=$(cat); echo run >> runs; case $p in *poison*) exit 3;; esac; echo fine"

/** Fails at its first two runs and at its fourth. */
const STUMBLING = "cat > /dev/null; echo run >> runs; case $(wc -l < runs) in 1|2|4) exit 3;; esac; echo fine"

/** Twenty children in sessions of their own, then its own death. */
const ORPHANING =
  "cat > /dev/null; for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do setsid sh -c 'trap \"\" TERM; echo $$ >> pids; sleep 300' & done; while [ $(wc -l < pids) -lt 20 ]; do sleep 0.02; done; kill -9 $$"

const FAMILY = `cat > /dev/null; trap '' TERM; echo $$ >> pids; setsid sh -c 'trap "" TERM; echo $$ >> pids; sleep 300' & (sh -c 'echo $$ >> pids; exec sleep 300' &) ; sleep 300; sleep 300`

class Shop extends Context.Service<Shop, Stage.Project>()("test/Shop") {}

const git = (shop: Stage.Project, ...args: ReadonlyArray<string>) =>
  execFileSync("git", ["-C", shop.root, ...args], { encoding: "utf8", stdio: "pipe" })

const shop = Layer.effect(
  Shop,
  Effect.gen(function* () {
    const stage = yield* Stage.make
    const project = stage.project("shop", { agents: {} })
    git(project, "init", "-q", "-b", "main")
    git(project, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "--allow-empty", "-m", "first")
    const silent = { backend: { silence: "700ms", killGrace: "100ms" } }
    const hour = { backoff: { base: "1 hour", cap: "1 hour" } }
    const agents = {
      ...stage.trio("tool"),
      reader: stage.agent("acp", { may: ["inbox"] }),
      "silent-claude": stage.agent("claude", silent),
      "silent-acp": stage.agent("acp", silent),
      "hung-claude": stage.agent("claude", { idleTimeout: "100ms", backend: { killGrace: "100ms" } }),
      deaf: shell("trap '' TERM INT HUP; echo $$ >> pids; cat > /dev/null; echo up; while :; do :; done", {
        ...hour,
        runTimeout: "2 seconds",
        interruptGrace: "200ms"
      }),
      family: shell(FAMILY),
      orphaning: shell(ORPHANING, hour),
      "idle-claude": stage.agent("claude", silent),
      "idle-acp": stage.agent("acp", silent),
      poor: shell("cat > /dev/null; exit 3", hour),
      stumbling: shell(STUMBLING, { backoff: { base: "400ms", cap: "1 hour" } }),
      poisoned: shell(POISONED, { maxConsecutiveErrors: 3, backend: { readyAfter: "1 minute" } }),
      eager: shell("true", { mode: "loop", prompt: "work", maxRunsPerHour: 3 }),
      limited: stage.agent("model", {
        maxConsecutiveErrors: 1,
        maxTotalErrors: 1,
        backend: { keyFile: stage.key("limited"), retries: 0 }
      }),
      "held-claude": stage.agent("claude", { idleTimeout: "100ms", maxConsecutiveErrors: 2, maxTotalErrors: 2 }),
      tidy: shell(WORK, { worktree: true }),
      once: shell("cat > /dev/null; echo run >> runs; echo done")
    }
    project.configure({
      conversation: { maxFatalStops: 100, maxTurnErrors: 100 },
      goals: { autoStart: true, workers: ["once"] },
      agents
    })
    yield* stage.up
    yield* project.register
    return project
  })
)

const isAlive = (pid: number) => {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
  } catch {
    return false
  }
}

const errorsOf = (project: Stage.Project, agent: string) =>
  Effect.map(
    project.row(agent, "is there", () => true),
    ({ totalErrors }) => totalErrors
  )

layer(shop, { excludeTestServices: true })("incidents", (it) => {
  describe.concurrent("mail cancels the tool", () => {
    it.effect("neither a message nor a steer ends a call in flight: it is made once, and each message is heard", () =>
      Effect.gen(function* () {
        const shop = yield* Shop
        yield* Stage.onEach((on) =>
          Effect.gen(function* () {
            const agent = `tool-${on}`
            const file = (name: string) => join(shop.root, `${agent}.${name}`)
            const call = `echo begun >> ${file("made")}; until [ -e ${file("go")} ]; do sleep 0.05; done; echo made >> ${file("made")}`
            yield* shop.tell(agent, { ask: call }, { say: "first" })
            yield* shop.answer((yield* shop.asked(agent)).callId, "allow")
            yield* shop.until(
              "it is in the call",
              Effect.sync(() => shop.noted(`${agent}.made`)),
              (lines) => lines.length === 1
            )
            for (const text of ["second", "third"]) yield* shop.tell(agent, { say: text })
            yield* shop.send(agent, 'do: [{"say":"steered"}]', "steer")
            writeFileSync(file("go"), "")
            // those that wait are one turn
            const said = yield* shop.answers(agent, 2)
            assert.deepStrictEqual(said, ["steered", "second\nthird"])
            assert.deepStrictEqual(shop.noted(`${agent}.made`), ["begun", "made"])
            const [result] = yield* shop.of(agent, 1, "tool.result")
            assert.strictEqual(result?.payload["status"], "success")
            assert.strictEqual(yield* shop.runs(agent), 1)
          })
        )
      })
    )
  })

  describe.concurrent("stale nudge", () => {
    it.effect("a message that was read in a turn's inbox comes once, as a turn, and none comes after it", () =>
      Effect.gen(function* () {
        const shop = yield* Shop
        const file = join(shop.root, "reader.go")
        yield* shop.tell("reader", { until: file }, { mcp: ["inbox", {}] })
        yield* shop.of("reader", 1, "turn.started")
        yield* shop.tell("reader", { say: "the second" }, { mcp: ["inbox", {}] })
        writeFileSync(file, "")
        const [first, second] = yield* shop.answers("reader", 2)
        assert.match(String(first), /the second/)
        assert.notMatch(String(second), /until/, "what is done is in no inbox")
        yield* shop.row("reader", "is idle", ({ inbox }) => inbox === 0)
        assert.lengthOf(yield* shop.of("reader", 2, "turn.started"), 2)
      })
    )
  })

  describe.concurrent("alive but dead", () => {
    it.effect("a process that is stopped in its turn is ended after its silence, and the work is done again", () =>
      Effect.gen(function* () {
        const shop = yield* Shop
        yield* Stage.onEach(
          (on) =>
            Effect.gen(function* () {
              const agent = `silent-${on}`
              yield* shop.tell(agent, { signal: "SIGSTOP" }, { say: "awake" })
              assert.deepStrictEqual(yield* shop.answers(agent, 1), ["awake"])
              assert.isAtLeast(yield* errorsOf(shop, agent), 1)
            }),
          PROGRAMS
        )
      })
    )

    it.effect("a process that hangs after its result is ended, counts no error, and holds up nothing", () =>
      Effect.gen(function* () {
        const shop = yield* Shop
        const script = { processes: [{ turns: [[{ text: "one" }]], end: "hang" }, { turns: [[{ text: "two" }]] }] }
        writeFileSync(join(shop.root, "hung-claude", "script.json"), JSON.stringify(script))
        yield* shop.send("hung-claude", "go")
        yield* shop.answers("hung-claude", 1)
        yield* shop.row(
          "hung-claude",
          "has ended its run",
          ({ pid, state }) => pid === null && state === "BuildingPrompt"
        )
        assert.isFalse(isAlive(Number(shop.noted("hung-claude", "pids")[0])))
        yield* shop.send("hung-claude", "go on")
        assert.deepStrictEqual(yield* shop.answers("hung-claude", 2), ["one", "two"])
        assert.strictEqual(yield* errorsOf(shop, "hung-claude"), 0)
      })
    )

    it.effect("one that takes a processor and no SIGTERM is ended when its time is over", () =>
      Effect.gen(function* () {
        const shop = yield* Shop
        yield* shop.send("deaf", "go")
        const row = yield* shop.row("deaf", "cools down", ({ state }) => state === "CoolingDown")
        assert.match(row.detail, /took longer|time/)
        // its row has the pid only while it runs, which may be between two looks
        const pids = shop.noted("deaf", "pids").map(Number)
        assert.lengthOf(pids, 1)
        assert.isFalse(isAlive(pids[0]!))
      })
    )
  })

  describe.concurrent("orphans", () => {
    it.effect("no process of an agent outlives its stop, its children's children included", () =>
      Effect.gen(function* () {
        const shop = yield* Shop
        yield* shop.send("family", "go")
        const pids = yield* shop.until(
          "three processes",
          Effect.sync(() => shop.noted("family", "pids").map(Number)),
          (all) => all.length === 3
        )
        const stopped = yield* shop.cli("stop", "family")
        assert.strictEqual(stopped.code, 0, stopped.stderr)
        assert.deepStrictEqual(pids.filter(isAlive), [], "when stop has answered nothing is left")
      })
    )

    it.effect("nor does any outlive an agent that was killed: twenty, in sessions of their own", () =>
      Effect.gen(function* () {
        const shop = yield* Shop
        yield* shop.send("orphaning", "go")
        yield* shop.row("orphaning", "has died", ({ state }) => state === "CoolingDown")
        const pids = shop.noted("orphaning", "pids").map(Number)
        assert.lengthOf(pids, 20)
        assert.deepStrictEqual(pids.filter(isAlive), [])
      })
    )
  })

  describe.concurrent("false death", () => {
    it.effect("an agent that has nothing to do is not taken for dead; one whose process died then is noticed", () =>
      Effect.gen(function* () {
        const shop = yield* Shop
        yield* Stage.onEach(
          (on) =>
            Effect.gen(function* () {
              const agent = `idle-${on}`
              yield* shop.tell(agent, { say: "one" })
              yield* shop.answers(agent, 1)
              const before = yield* shop.row(agent, "lives", ({ pid }) => pid !== null)
              // twice the silence after which it would be, in a turn
              yield* Effect.sleep("1500 millis")
              const after = yield* shop.row(agent, "is there", () => true)
              assert.deepInclude(after, { pid: before.pid, state: "Running", totalErrors: before.totalErrors })
              process.kill(before.pid!, "SIGKILL")
              yield* shop.row(agent, "is noticed", ({ pid }) => pid !== before.pid)
              yield* shop.tell(agent, { say: "two" })
              assert.deepStrictEqual(yield* shop.answers(agent, 2), ["one", "two"])
            }),
          PROGRAMS
        )
      })
    )
  })

  describe.concurrent("backoff shared", () => {
    it.effect("each agent waits for its own failures, and from the beginning after an answer", () =>
      Effect.gen(function* () {
        const shop = yield* Shop
        yield* shop.send("poor", "go")
        yield* shop.row("poor", "waits", ({ state }) => state === "CoolingDown")
        const moved = Effect.map(shop.of("stumbling", 1, "worker.moved"), (runes) =>
          runes.flatMap(({ at, to }, index) => (to === "CoolingDown" ? [runes[index + 1]!.at - at] : []))
        )
        yield* shop.send("stumbling", "one")
        yield* shop.answers("stumbling", 1)
        yield* shop.send("stumbling", "two")
        yield* shop.answers("stumbling", 2)
        const [first, second, third] = yield* moved
        assert.isAtLeast(first!, 400)
        assert.isAtLeast(second!, 800)
        assert.isAtLeast(third!, 400)
        const row = yield* shop.row("stumbling", "is there", () => true)
        assert.deepInclude(row, { consecutiveErrors: 0, totalErrors: 3 })
      })
    )

    it.effect("a poison message stops its agent after so many tries, is in the list, and can be taken away", () =>
      Effect.gen(function* () {
        const shop = yield* Shop
        yield* shop.send("poisoned", "this is poison")
        const row = yield* shop.row("poisoned", "stops", ({ state }) => state === "Stopped")
        assert.match(row.detail, /3 errors in a row/)
        yield* shop.send("poisoned", "hello")
        yield* shop.start("poisoned")
        yield* shop.until(
          "it fails as often once more, and no more",
          Effect.sync(() => shop.noted("poisoned", "runs")),
          (runs) => runs.length === 6
        )
        yield* shop.row("poisoned", "stops again", ({ state }) => state === "Stopped")
        const waiting = yield* shop.stage.rpc((client) => client.Waiting())
        const [row_] = waiting.rows.filter(({ kind, who }) => kind === "held" && who === "shop/poisoned")
        assert.match(row_!.text, /has 2 queued messages/)
        const dismissed = yield* shop.cli("dismiss", "poisoned", "--held")
        assert.strictEqual(dismissed.code, 0, dismissed.stderr)
        yield* shop.start("poisoned")
        yield* shop.send("poisoned", "hello again")
        yield* shop.answers("poisoned", 1)
        assert.lengthOf(shop.noted("poisoned", "runs"), 7)
      })
    )
  })

  describe.concurrent("the expensive success", () => {
    it.effect("maxRunsPerHour bounds an agent that succeeds on every run", () =>
      Effect.gen(function* () {
        const shop = yield* Shop
        const row = yield* shop.row(
          "eager",
          "waits for the next hour",
          ({ nextAt }) => nextAt !== null && nextAt > Date.now() + 3_000_000
        )
        assert.match(row.detail, /waits for its next run/)
        const moves = yield* shop.of("eager", 3, "worker.moved")
        assert.lengthOf(
          moves.filter(({ to }) => to === "Spawning"),
          3
        )
      })
    )
  })

  describe.concurrent("quota counted as crash", () => {
    it.effect("a limit is waited for until it is lifted, and takes nothing of the restart budget", () =>
      Effect.gen(function* () {
        const shop = yield* Shop
        yield* shop.tell("limited", { say: "at last" })
        const row = yield* shop.row("limited", "waits", ({ state }) => state === "CoolingDown")
        assert.isAtLeast(row.nextAt! - row.since, 800)
        assert.deepStrictEqual(yield* shop.answers("limited", 1), ["at last"])
        assert.strictEqual(yield* errorsOf(shop, "limited"), 0)
      })
    )
  })

  describe.concurrent("held session", () => {
    it.effect("a resume that is refused since the session is open elsewhere counts no error, however often", () =>
      Effect.gen(function* () {
        const shop = yield* Shop
        const held = {
          before: [{ stderr: "Error: Session abc is already open in another Claude Code process." }, { exit: 1 }]
        }
        const processes = [{ turns: [[{ text: "one" }]] }, held, held, held, { turns: [[{ text: "two" }]] }]
        writeFileSync(join(shop.root, "held-claude", "script.json"), JSON.stringify({ processes }))
        yield* shop.send("held-claude", "go")
        yield* shop.answers("held-claude", 1)
        yield* shop.row("held-claude", "has ended its run", ({ pid }) => pid === null)
        yield* shop.send("held-claude", "go on")
        assert.deepStrictEqual(yield* shop.answers("held-claude", 2), ["one", "two"])
        assert.strictEqual(yield* errorsOf(shop, "held-claude"), 0)
      })
    )
  })

  describe.concurrent("cleanup destroys work", () => {
    it.effect("of an agent that goes, what is not merged and what is not committed stays, gc and a kill included", () =>
      Effect.gen(function* () {
        const shop = yield* Shop
        yield* shop.send("tidy", "work")
        yield* shop.answers("tidy", 1)
        const { cwd } = yield* shop.row(
          "tidy",
          "waits",
          ({ inbox, state }) => inbox === 0 && state === "BuildingPrompt"
        )
        const file = JSON.parse(readFileSync(shop.config, "utf8"))
        const { tidy: _, ...left } = file.agents
        writeFileSync(shop.config, JSON.stringify({ ...file, agents: left }))
        assert.strictEqual((yield* shop.cli("start")).code, 0)
        const [kept] = yield* shop.until("it is kept", shop.log("worktree.kept"), (all) => all.length > 0)
        assert.isString(kept?.payload["reason"])
        const gc = yield* shop.cli("gc", "--yes", "--days", "0")
        assert.strictEqual(gc.code, 0, gc.stderr)
        const there = ["made.txt", "half done.txt"].map((name) => readFileSync(join(cwd!, name), "utf8"))
        assert.deepStrictEqual(there, ["1\n", "2\n"])
        assert.strictEqual(git(shop, "show", "agentd/tidy:made.txt"), "1\n")
      })
    )
  })

  describe("work redone", () => {
    it.effect("a task that is done is taken up by no restart, and by no retry", () =>
      Effect.gen(function* () {
        const shop = yield* Shop
        writeFileSync(join(shop.root, "plan.json"), JSON.stringify({ tasks: [{ id: "a", title: "a" }] }))
        const given = yield* shop.cli("goal", "Open a shop", "--plan", "plan.json")
        assert.strictEqual(given.code, 0, given.stderr)
        yield* shop.until("the goal is met", shop.log("plan.goal_met"), (runes) => runes.length === 1)
        yield* shop.stage.box.kill9
        yield* shop.stage.up
        yield* shop.register
        const again = yield* shop.cli("goal", "retry", "g1", "a")
        assert.notStrictEqual(again.code, 0, again.stdout)
        yield* shop.tell("once", { say: "anything else" })
        yield* shop.answers("once", 2)
        assert.lengthOf(shop.noted("once", "runs"), 2)
      })
    )
  })

  describe("respawn of the finished", () => {
    it.effect("what has been answered is begun by no restart: each turn ends once, and nothing waits", () =>
      Effect.gen(function* () {
        const shop = yield* Shop
        const begun = Effect.map(shop.log("turn.started"), (runes) => runes.length)
        const before = yield* begun
        yield* shop.stage.box.kill9
        yield* shop.stage.up
        yield* shop.register
        yield* shop.tell("once", { say: "anything else" })
        yield* shop.answers("once", 3)
        // those that wait to try again, and the one that runs an hour's runs, have not done so
        assert.strictEqual(yield* begun, before + 1)
        const waiting = (yield* shop.agents).filter(
          ({ agent, inbox }) => inbox > 0 && !["poor", "deaf", "orphaning", "family"].includes(agent)
        )
        assert.deepStrictEqual(
          waiting.map(({ agent }) => agent),
          []
        )
        assert.strictEqual((yield* shop.cli("verify")).code, 0)
      })
    )
  })
})
