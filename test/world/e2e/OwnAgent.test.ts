/** The agent in python of docs/own-agent.md in a real daemon: approvals over a kill -9, interrupts, its session; and agents with faults. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Laws from "../../support/Laws.ts"
import type { ConfigChangeInfo } from "../../../src/domain/Messages.ts"
import * as Stage from "../../support/Stage.ts"
import { long } from "../../support/Long.ts"

const ASKER = join(import.meta.dirname, "../../fixtures/acp/asker.py")
const CARELESS = join(import.meta.dirname, "../../fixtures/acp/careless.py")

/** The program in docs/own-agent.md that is written in this language. */
const inPage = (language: string): string => {
  const page = readFileSync(join(import.meta.dirname, "../../../docs/own-agent.md"), "utf8")
  return new RegExp(`\\n\`\`\`${language}\\n([^]*?)\\n\`\`\``).exec(page)![1]!
}

/** Whether a process of that command lives, whoever began it. */
const lives = (command: string): boolean =>
  readdirSync("/proc").some((name) => {
    try {
      return (
        /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, "utf8") === `${command.replaceAll(" ", "\0")}\0`
      )
    } catch {
      return false
    }
  })
const lacks = spawnSync("python3", ["--version"]).status !== 0
if (lacks) console.warn("SKIPPED: a backend in python (no python3 on this machine)")

const agentOf = (...argv: ReadonlyArray<string>) => ({
  backend: { type: "acp", argv, killGrace: "500ms", startTimeout: "20 seconds" },
  may: [],
  // without this rule, agentd itself would allow what the agents of the page ask for
  approvals: { always: ["execute"] },
  minRunInterval: "0ms",
  backoff: { base: "100ms", cap: "200ms" }
})

const ofPage = ({ box: { folder } }: Stage.Stage) => {
  const file = join(folder, "agent.py")
  writeFileSync(file, inPage("python"))
  return agentOf("python3", file)
}

describe("the agents in docs/own-agent.md", () => {
  it("the one in python has at most 60 lines", () => {
    assert.isAtMost(inPage("python").split("\n").length, 60)
  })

  it("the one on the SDK has at most 30 lines", () => {
    assert.isAtMost(inPage("js").split("\n").length, 30)
  })

  it.live("the one on the SDK asks, works turns and is interrupted", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const file = join(stage.box.folder, "agent.mjs")
      writeFileSync(file, inPage("js"))
      symlinkSync(join(import.meta.dirname, "../../../node_modules"), join(stage.box.folder, "node_modules"))
      const shop = stage.home({ agents: { ada: agentOf(process.execPath, file) } })
      yield* stage.up
      yield* shop.register
      yield* shop.send("ada", "run the command `true`")
      assert.strictEqual((yield* shop.asked("ada")).tool, "execute")
      yield* shop.answer("ada", "allow")
      assert.include(String((yield* shop.answers("ada", 1))[0]), "heard: ")
      yield* shop.send("ada", "count to a hundred")
      yield* shop.of("ada", 1, "turn.assistant_delta")
      yield* shop.interrupt("ada")
      yield* shop.of("ada", 1, "turn.interrupted")
      const result = yield* stage.box.cli("conformance", "--", process.execPath, file)
      assert.strictEqual(result.code, 0, result.stdout + result.stderr)
    }).pipe(Effect.scoped)
  )
})

describe.skipIf(lacks)("an agent of one's own", () => {
  it.live("works turns, asks, outlives its daemon, is interrupted, and goes on with its session", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.keeping
      const shop = stage.home({ agents: { ada: ofPage(stage) } })
      yield* stage.up
      yield* shop.register
      yield* shop.send("ada", "run the command `true`")
      const { tool } = yield* shop.asked("ada")
      assert.strictEqual(tool, "execute")
      yield* stage.box.kill9
      yield* stage.up
      yield* shop.asked("ada")
      yield* shop.answer("ada", "allow")
      assert.include(String((yield* shop.answers("ada", 1))[0]), "heard:")
      yield* shop.send("ada", "run the command `true` again")
      yield* shop.asked("ada")
      yield* shop.answer("ada", "deny", "Not now.")
      yield* shop.answers("ada", 2)
      const results = (yield* shop.log("tool.result", "tool.denied", "tool.completed")).map(({ kind }) => kind)
      assert.include(results, "tool.denied")
      yield* shop.send("ada", "count to one hundred")
      yield* shop.of("ada", 3, "turn.started")
      yield* shop.interrupt("ada")
      yield* shop.of("ada", 1, "turn.interrupted")
      assert.strictEqual(yield* shop.runs("ada"), 1)
      yield* shop.row("ada", "is idle", ({ word }) => word === "idle")
      yield* stage.rpc((client) => client.Restart({ name: "ada", caller: shop.caller }))
      yield* shop.send("ada", "and once more")
      yield* shop.answers("ada", 3)
      const spent = (yield* shop.log("agent.usage")).map(({ payload }) => Number(payload["tokens"]))
      assert.isAbove(Math.max(...spent), 0)
      assert.deepStrictEqual(yield* shop.log("run.memory_lost"), [])
      assert.deepStrictEqual(Laws.broken(yield* shop.log()), [])
    })
  )

  long.live(
    "a turn in the midst of which the daemon is killed, twice, is one turn, and each of its words is told once",
    () =>
      Effect.gen(function* () {
        const stage = yield* Stage.keeping
        const agent = ofPage(stage)
        const shop = stage.home({ agents: { ada: { ...agent, backend: { ...agent.backend, env: { STEP: "0.03" } } } } })
        yield* stage.up
        yield* shop.register
        yield* shop.send("ada", "count to one hundred")
        const told = Effect.map(shop.log("turn.assistant_delta"), (runes) =>
          runes.map(({ payload }) => String(payload["content"])).join("")
        )
        for (const far of [1, 40]) {
          yield* shop.until("it counts", told, (text) => text.split(" ").length > far)
          yield* stage.box.kill9
          yield* stage.up
        }
        yield* shop.answers("ada", 1)
        const numbers = Array.from({ length: 100 }, (_, at) => `${at} `)
        assert.isTrue((yield* told).startsWith(`${numbers.join("")}heard: `), yield* told)
        assert.lengthOf(yield* shop.log("turn.started"), 1)
        assert.deepStrictEqual(Laws.broken(yield* shop.log()), [])
      })
  )

  long.live(
    "what an interrupted call has begun is ended where the program leaves it, what an earlier turn began lives",
    () =>
      Effect.gen(function* () {
        const stage = yield* Stage.keeping
        const [server, command, second] = [3_617, 3_618, 3_619].map((seconds) => `${seconds}.${process.pid}`)
        const shop = stage.home({ agents: { ada: agentOf("python3", CARELESS) } })
        yield* stage.up
        yield* shop.register
        yield* shop.send("ada", `serve ${server}`)
        yield* shop.answers("ada", 1)
        // older than what may be heard of late
        yield* Effect.sleep("1500 millis")
        yield* shop.send("ada", `command ${command}`)
        yield* shop.until(
          "it runs",
          Effect.sync(() => lives(`sleep ${command}`)),
          (is) => is
        )
        yield* shop.interrupt("ada")
        yield* shop.row("ada", "is at rest", ({ word }) => word === "idle")
        assert.isFalse(lives(`sleep ${command}`), "no row says idle while the command runs")
        const ended = Effect.map(shop.log("run.notice"), (runes) =>
          runes.map(({ payload }) => String(payload["text"])).filter((text) => text.includes("still running"))
        )
        const [notice] = yield* shop.until("its end is told", ended, (texts) => texts.length > 0)
        assert.include(notice, `still running, and were ended: sleep ${command}`)
        assert.deepStrictEqual([lives(`sleep ${server}`), lives(`sleep ${command}`)], [true, false])
        // the daemon that hears of the interrupt is not the one that heard of the call
        yield* shop.send("ada", `command ${second}`)
        yield* shop.until(
          "it runs",
          Effect.sync(() => lives(`sleep ${second}`)),
          (is) => is
        )
        yield* shop.of("ada", 2, "tool.started")
        yield* Effect.sleep("1500 millis")
        yield* stage.box.kill9
        yield* stage.up
        yield* shop.interrupt("ada")
        yield* shop.until("the second end is told", ended, (texts) => texts.length > 1)
        assert.deepStrictEqual([lives(`sleep ${server}`), lives(`sleep ${second}`)], [true, false])
        assert.strictEqual(yield* shop.runs("ada"), 1)
        assert.deepStrictEqual(Laws.broken(yield* shop.log()), [])
      })
  )

  it.live("an answer to a call that is gone says so, by the command line and over HTTP, and ends with 1", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const shop = stage.home({
        agents: {
          back: agentOf("python3", ASKER),
          late: { ...agentOf("python3", ASKER), approvals: { timeout: "1 second" } },
          done: agentOf("python3", ASKER)
        }
      })
      yield* stage.up
      yield* shop.register
      yield* shop.send("back", "withdraw it")
      for (const name of ["late", "done"]) yield* shop.send(name, "go on")
      yield* shop.of("back", 1, "tool.approval_withdrawn")
      yield* shop.asked("done")
      yield* shop.answer("done", "allow")
      yield* shop.answers("done", 1)
      yield* shop.of("late", 1, "tool.result")
      const asks = yield* shop.log("tool.approval_requested")
      const callOf = (name: string) =>
        String(asks.find(({ actor }) => actor.startsWith(`tool/${name}/`))?.payload["call_id"])
      const gone = {
        back: "its agent has withdrawn the question",
        late: "expired: nobody answered in time",
        done: "ended: success"
      }
      for (const [name, says] of Object.entries(gone)) {
        const id = callOf(name)
        for (const args of [
          ["approve", id],
          ["approve", id.slice(0, 10), "0".repeat(16)],
          ["deny", id]
        ]) {
          const { code, stderr } = yield* shop.cli(...args)
          assert.strictEqual(code, 1, `${name}: ${args.join(" ")}: ${stderr}`)
          assert.include(stderr, says, args.join(" "))
        }
        const byName = yield* shop.cli("deny", name)
        assert.strictEqual(byName.code, 1)
        assert.include(byName.stderr, `Nothing waits for an answer under "${name}"`)
        for (const decision of ["allow", "deny"] as const) {
          const answer = { name: id, decision, reason: "", hash: "0".repeat(16), caller: shop.caller } as const
          const { message } = yield* Effect.flip(stage.rpc((client) => client.Answer(answer)))
          assert.include(message, says)
        }
      }
      const { rows } = yield* stage.rpc((client) => client.Waiting())
      assert.deepStrictEqual(
        rows.filter(({ kind }) => kind === "approval" || kind === "question"),
        []
      )
    })
  )

  it.live("what it does in a turn of its own is a turn: it works, is asked for leave, and has its answer", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.keeping
      const shop = stage.home({ agents: { ada: agentOf("python3", ASKER) } })
      yield* stage.up
      yield* shop.register
      yield* shop.send("ada", "go on, and again")
      yield* shop.asked("ada")
      yield* shop.answer("ada", "allow")
      const isOwn = (reason: string | null) => reason === "effects of its own"
      const calls = stage.rpc((client) => client.Calls())
      yield* shop.until("it asks by itself", calls, (all) => all.some(({ reason }) => isOwn(reason)))
      yield* shop.row("ada", "needs a person", ({ word }) => word === "needs you")
      yield* stage.box.kill9
      yield* stage.up
      yield* shop.until("it asks still", calls, (all) => all.some(({ reason }) => isOwn(reason)))
      yield* shop.answer("ada", "allow")
      assert.deepStrictEqual(yield* shop.answers("ada", 2), ["answered c1", "answered c2"])
      yield* shop.row("ada", "is idle", ({ word }) => word === "idle")
      assert.strictEqual(yield* shop.runs("ada"), 1)
      assert.deepStrictEqual(Laws.broken(yield* shop.log()), [])
    })
  )

  it.live("what breaks the protocol is told in words: no start, a line that is no message", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const shop = stage.home({
        agents: {
          silent: agentOf("sh", "-c", "echo no licence >&2; exit 7"),
          noisy: agentOf("sh", "-c", "echo working; sleep 100")
        }
      })
      yield* stage.up
      yield* shop.register
      for (const name of ["silent", "noisy"]) yield* shop.send(name, "go on")
      yield* shop.until("silent says why", shop.why("silent"), (why) => JSON.stringify(why).includes("no licence"))
      const [notice] = yield* shop.of("noisy", 1, "run.notice")
      assert.include(JSON.stringify(notice?.payload), "working")
    })
  )

  it.live("an agent of the type exec is failed and names the page, and the others run", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const old = {
        backend: { type: "exec", argv: ["python3", ASKER], readOnlyTools: ["look"], resume: true, env: { A: "b" } }
      }
      const shop = stage.home({ agents: { old, ada: ofPage(stage) } })
      yield* stage.up
      yield* shop.register
      yield* shop.send("ada", "hello")
      assert.include(String((yield* shop.answers("ada", 1))[0]), "hello")
      const row = yield* shop.row("old", "is failed", ({ word }) => word === "failed")
      assert.include(row.detail, 'no longer has the backend type "exec"')
      const { rows } = yield* stage.rpc((client) => client.Waiting())
      assert.include(JSON.stringify(rows.filter(({ who }) => who.endsWith("/old"))), "docs/own-agent.md")
      for (const verb of [["ps"], ["waiting"], ["why", "old"]])
        assert.include((yield* shop.cli(...verb)).stdout, 'no longer has the backend type "exec"', verb.join(" "))
      assert.include((yield* shop.cli("waiting")).stdout, "docs/own-agent.md")
      // its program is an ACP agent now
      shop.configure({ agents: { old: ofPage(stage), ada: ofPage(stage) } })
      yield* shop.cli("up")
      // another program needs a person's consent
      const change: ConfigChangeInfo = JSON.parse((yield* shop.cli("--json", "trust", "shop")).stdout)
      assert.strictEqual((yield* shop.cli("trust", change.hash!)).code, 0)
      assert.strictEqual((yield* shop.cli("start", "old")).code, 0)
      yield* shop.send("old", "hello")
      assert.include(String((yield* shop.answers("old", 1))[0]), "hello")
    })
  )
})
