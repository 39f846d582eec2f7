/** Runs that outlive their daemon: killed, restarted, its keeper killed with it. */
import { assert, describe, it } from "@effect/vitest"
import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import type { AgentInfo } from "../../../src/domain/Messages.ts"
import { dice } from "../../support/Dice.ts"
import * as Laws from "../../support/Laws.ts"
import { killedAtAnyMoment } from "../../support/Person.ts"
import * as Stage from "../../support/Stage.ts"
import { long, sample } from "../../support/Long.ts"

const KILLS = sample(50, 3)
/** A failing one is printed; `SEED=n` plays it again. */
const seed = Number(process.env["SEED"] ?? Date.now() % 1_000_000)

/** Says 500 lines a second or so, each with its number. */
const COUNTING = (lines: number) =>
  `i=0; while [ $i -lt ${lines} ]; do echo "line $i"; echo "note $i" >&2; i=$((i+1)); [ $((i % 10)) -gt 0 ] || sleep 0.02; done; cat > /dev/null`

const text = (value: unknown): string => (typeof value === "string" ? value : "")

/** The lines that the log has of the agent's runs, in its order. */
const linesOf = (shop: Stage.Project, agent: string, source: string) =>
  Effect.map(shop.log("run.output"), (runes) =>
    runes
      .filter(({ actor, payload }) => actor === `worker/${agent}` && payload["source"] === source)
      .flatMap(({ payload }) => text(payload["text"]).split("\n"))
  )

const killKeepers = (stage: Stage.Stage) =>
  Effect.sync(() => {
    for (const pid of stage.keepers) process.kill(pid, "SIGKILL")
  })

describe("a run outlives its daemon", () => {
  it.live(`a command: ${KILLS} kills in the midst of its turn; each line is in the log once, and the turn is one`, () =>
    Effect.gen(function* () {
      const lines = 100 + KILLS * 250
      const stage = yield* Stage.keeping
      const shop = stage.home({
        agents: {
          counter: { backend: { type: "command", shell: COUNTING(lines), promptBy: "stdin", readyAfter: "100ms" } }
        }
      })
      yield* stage.up
      yield* shop.register
      yield* shop.send("counter", "count")
      yield* shop.of("counter", 1, "turn.started")
      for (let kills = 0; kills < KILLS; kills++) {
        yield* Effect.sleep(100 + 37 * (kills % 7))
        yield* stage.box.kill9
        yield* Effect.sleep(20 * (kills % 5))
        yield* stage.up
      }
      yield* shop.of("counter", 1, "turn.completed")
      const numbers = Array.from({ length: lines }, (_, at) => at)
      assert.deepStrictEqual(
        yield* linesOf(shop, "counter", "stdout"),
        numbers.map((at) => `line ${at}`)
      )
      assert.deepStrictEqual(
        yield* linesOf(shop, "counter", "stderr"),
        numbers.map((at) => `note ${at}`)
      )
      const turns = yield* shop.log("turn.started", "turn.error", "turn.interrupted")
      assert.lengthOf(turns, 1)
      const [ended] = yield* shop.log("turn.completed")
      assert.match(text(ended?.payload["final_output"]), new RegExp(`^line 0\\n[^]*line ${lines - 1}\\n?$`))
      assert.deepStrictEqual(Laws.broken(yield* shop.log()), [])
    })
  )

  for (const on of Stage.BACKENDS) {
    // a model agent works in the project's own folder
    const made = on === "model" ? ["made"] : ["ada", "made"]
    const first = on === "model" ? it.live : long.live
    first(`${on}: asked before, answered after; the daemon killed, the keeper with it, and a restart`, () =>
      Effect.gen(function* () {
        const stage = yield* Stage.keeping
        const shop = stage.home({ agents: { ada: stage.agent(on) } })
        yield* stage.up
        yield* shop.register
        const ends = [
          stage.box.kill9,
          Effect.andThen(stage.box.kill9, killKeepers(stage)),
          Effect.asVoid(stage.rpc((client) => client.Shutdown({ reason: "agentd restart", by: "ada", keep: true })))
        ]
        for (const [at, end] of ends.entries()) {
          yield* shop.tell("ada", { ask: `echo ${at} >> made` }, { say: `made ${at}` })
          yield* shop.asked("ada")
          yield* end
          yield* stage.box.gone
          yield* stage.up
          yield* shop.asked("ada")
          yield* shop.answer("ada", "allow")
          const answers = yield* shop.answers("ada", at + 1)
          assert.strictEqual(answers[at], `made ${at}`)
        }
        assert.deepStrictEqual(shop.noted(...made), ["0", "1", "2"])
        assert.strictEqual(yield* shop.runs("ada"), 1)
        assert.deepStrictEqual(Laws.broken(yield* shop.log()), [])
      })
    )

    const live = on === "claude" ? it.live : long.live
    live(`${on}: an answer that was decided, and died with the daemon on its way, is given by the next one`, () =>
      Effect.gen(function* () {
        const stage = yield* Stage.keeping
        const shop = stage.home({ agents: { ada: stage.agent(on) } })
        yield* stage.up
        yield* shop.register
        for (let at = 0; at < sample(20, 2); at++) {
          yield* shop.tell("ada", { ask: `echo ${at} >> made` }, { say: `made ${at}` })
          yield* shop.asked("ada")
          yield* shop.answer("ada", "allow")
          yield* stage.box.kill9
          yield* stage.up
          yield* shop.answers("ada", at + 1)
        }
        assert.deepStrictEqual(
          shop.noted(...made),
          Array.from({ length: sample(20, 2) }, (_, at) => `${at}`)
        )
        assert.strictEqual(yield* shop.runs("ada"), 1)
        assert.deepStrictEqual(Laws.broken(yield* shop.log()), [])
      })
    )
  }

  it.live("one that ends while no daemon is there: its outcome is the one that it had", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.keeping
      const shell = "cat > /dev/null; while [ ! -e go ]; do sleep 0.05; done; echo done; exit 3"
      const shop = stage.home({
        agents: {
          late: { backend: { type: "command", shell, readyAfter: "50ms" }, backoff: { base: "1 hour", cap: "1 hour" } }
        }
      })
      yield* stage.up
      yield* shop.register
      yield* shop.send("late", "go on")
      yield* shop.of("late", 1, "turn.started")
      yield* stage.box.kill9
      writeFileSync(join(shop.root, "late", "go"), "")
      yield* stage.box.until("it has ended", stage.box.processes, (pids) => pids.length === 0)
      yield* stage.up
      const row = yield* shop.row("late", "cools down", ({ state }) => state === "CoolingDown")
      assert.match(row.detail, /exit code 3/)
      assert.deepStrictEqual(yield* linesOf(shop, "late", "stdout"), ["done"])
    })
  )

  for (const keeps of [false, true]) {
    it.live(
      keeps
        ? "a restart cuts short no turn of a run that is kept: nobody is asked"
        : "a restart names whose turns it would cut short, and asks first",
      () =>
        Effect.gen(function* () {
          const stage = yield* keeps ? Stage.keeping : Stage.make
          const shop = stage.home({ agents: { ada: stage.agent("claude"), bob: stage.agent("acp") } })
          yield* stage.up
          yield* shop.register
          for (const name of ["ada", "bob"]) yield* shop.tell(name, { hold: true })
          for (const name of ["ada", "bob"])
            yield* shop.row(name, "works", ({ busy, outlives }) => busy === true && outlives === keeps)
          if (keeps) return
          const { code, stderr } = yield* shop.cli("restart")
          assert.strictEqual(code, 2)
          assert.match(stderr, /2 agents are in a turn that the restart interrupts.*: shop\/ada, shop\/bob\./)
          assert.isTrue(
            yield* stage.rpc((client) => Effect.map(client.Status(), ({ daemon }) => daemon.phase === "ready"))
          )
        })
    )
  }

  it.live("stop ends the runs, and the keeper goes; a run that nobody wants any more is ended by the next daemon", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.keeping
      const shell = "cat > /dev/null; echo $$ >> pids; exec sleep 1000"
      const agents = { one: { backend: { type: "command", shell, readyAfter: "50ms" } } }
      const shop = stage.home({ agents })
      yield* stage.up
      yield* shop.register
      yield* shop.send("one", "sleep")
      yield* shop.of("one", 1, "turn.started")
      yield* stage.rpc((client) => client.Shutdown({ reason: "stop", by: "ada" }))
      yield* stage.box.gone
      assert.deepStrictEqual(yield* stage.box.processes, [])
      yield* stage.box.until(
        "the keeper is gone",
        Effect.sync(() => stage.keepers),
        (pids) => pids.length === 0
      )
      yield* stage.up
      yield* stage.box.until(
        "it runs again",
        Effect.sync(() => shop.noted("one", "pids")),
        (pids) => pids.length === 2
      )
      yield* stage.box.kill9
      assert.isAbove((yield* stage.box.processes).length, 0)
      // its conversation cannot be found any more
      for (const name of readdirSync(stage.box.state)) {
        if (name.startsWith("runes.db")) rmSync(join(stage.box.state, name))
      }
      yield* stage.up
      yield* stage.box.until("the run is ended", stage.box.processes, (pids) => {
        return !pids.includes(Number(shop.noted("one", "pids")[1]))
      })
      assert.isTrue(existsSync(stage.box.state))
    })
  )

  long.live("a run that takes agentd down again and again ends its agent at last, and no other", () =>
    Effect.gen(function* () {
      // one that is kept is taken up, and does it once: these end with the daemon
      const stage = yield* Stage.make
      const lock = join(stage.box.state, "lock.json")
      const shell = `cat > /dev/null; kill -9 $(sed 's/.*"pid":\\([0-9]*\\).*/\\1/' '${lock}'); exec sleep 1000`
      const backend = { type: "command", shell, readyAfter: "1 hour" }
      const shop = stage.home({
        agents: { poison: { backend, backoff: { base: "10ms", cap: "10ms" } }, ada: stage.agent("claude") }
      })
      yield* stage.up
      yield* shop.register
      yield* Effect.ignore(shop.send("poison", "die"))
      const isDead = () => stage.box.daemon === undefined || stage.box.daemon.signalCode !== null
      const stopped = (rows: ReadonlyArray<AgentInfo>) =>
        rows.find(({ agent, state }) => agent === "poison" && state === "Stopped")
      let lives = 1
      for (let rows: ReadonlyArray<AgentInfo> = []; stopped(rows) === undefined;) {
        rows = yield* stage.box.until(
          "it dies, or is stopped",
          shop.agents,
          (rows) => isDead() || stopped(rows) !== undefined
        )
        // it may die before it answers
        if (isDead() && (lives += 1) > 0) yield* Effect.ignore(stage.up)
      }
      assert.strictEqual(lives, 21)
      const row = yield* shop.row("poison", "is stopped", ({ state }) => state === "Stopped")
      assert.match(row.detail, /agentd ended 20 times during a run of this agent/)
      assert.deepInclude(row, { consecutiveErrors: 0, totalErrors: 0 })
      yield* shop.tell("ada", { say: "well" })
      assert.deepStrictEqual(yield* shop.answers("ada", 1), ["well"])
    })
  )

  long.live(
    `all kinds of agents at random work, ${KILLS} kills: nothing asked is lost, all is done once [SEED=${seed}]`,
    () =>
      Effect.gen(function* () {
        const stage = yield* Stage.keeping
        const die = dice(seed)
        yield* killedAtAnyMoment(stage, {
          die,
          kills: KILLS,
          longest: sample(1500, 600),
          then: Effect.suspend(() => (die(4) === 0 ? killKeepers(stage) : Effect.void))
        })
      })
  )
})
