/** Incidents that others had, by their names: a daemon that is killed, that hangs, and whose disk fails. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import * as Sandbox from "../../support/Sandbox.ts"

const shell = (script: string, more: object = {}) => ({
  backend: { type: "command", shell: script, readyAfter: "50ms", ...more },
  minRunInterval: "0ms"
})

describe("orphans", () => {
  it.live("a daemon that is killed in the middle of a run it leaves none, and the work is taken up again", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      const runs = box.file("runs")
      box.configure({
        agents: {
          worker: shell(
            `cat >> ${runs}; echo RUN >> ${runs}; setsid sleep 300 & [ "$(grep -c ^RUN ${runs})" -gt 1 ] || sleep 300`
          )
        }
      })
      yield* box.up()
      yield* box.cli("send", "worker", "precious")
      yield* box.untilAgent("worker", "runs", ({ state }) => state === "Running")
      assert.isAbove((yield* box.processes).length, 0)
      yield* box.kill9
      yield* box.until("no process is left though nobody restarts it", box.processes, (pids) => pids.length === 0)
      yield* box.up()
      const row = yield* box.untilAgent(
        "worker",
        "has done it",
        ({ inbox, sessionSeq, state }) => inbox === 0 && state === "BuildingPrompt" && sessionSeq > 1
      )
      assert.strictEqual(row.totalErrors, 0, "a run lost through agentd counts no error")
      assert.strictEqual(readFileSync(runs, "utf8").match(/precious/g)?.length, 2, "offered again to the next run")
      assert.strictEqual((yield* box.cli("verify")).code, 0)
    })
  )
})

describe("wedged reconciler", () => {
  it.live("a confined run that puts pipes in the places of git's files wedges neither its next run nor another's", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      const plant =
        'cat > /dev/null; [ -e w ] || { mkdir -p w/worktrees/x; mkfifo w/worktrees/x/gitdir; echo "gitdir: w/worktrees/x" > .git; }'
      box.configure({ agents: { a: shell(plant, { sandbox: "on" }), b: shell("cat", { sandbox: "on" }) } })
      yield* box.up()
      for (const [agent, seq] of [
        ["a", 0],
        ["a", 1],
        ["b", 0]
      ] as const) {
        yield* box.cli("send", agent, "hello")
        yield* box.untilAgent(agent, "has worked", ({ inbox, sessionSeq, state }) => {
          return inbox === 0 && sessionSeq > seq && state === "BuildingPrompt"
        })
      }
    })
  )
})

describe("a cleaner", () => {
  it.live(
    "that takes away the sockets of a daemon at work keeps nobody from it: its pid is told, then they are back",
    () =>
      Effect.gen(function* () {
        const box = yield* Sandbox.make()
        box.configure({ agents: { worker: shell("cat > /dev/null; sleep 300") } })
        yield* box.up()
        yield* box.cli("send", "worker", "work")
        yield* box.untilAgent("worker", "runs", ({ state }) => state === "Running")
        const runs = join(box.state, "sockets")
        const [run = ""] = readdirSync(runs)
        const sockets = [join(box.state, "control.sock"), join(box.state, "http.sock"), join(runs, run, "api")]
        for (const socket of sockets) {
          assert.isTrue(existsSync(socket), socket)
          rmSync(socket)
        }
        const pid = `pid ${box.daemon!.pid}`
        const runsHere = /The daemon runs \(pid \d+\), but nobody answers at .*control\.sock/
        for (const verb of [["ps"], ["why", "worker"], ["stop", "--daemon"], ["doctor"]]) {
          const { code, stderr, stdout } = yield* box.cli(...verb)
          // it may be back by now
          if (existsSync(sockets[0]!)) break
          assert.match(stdout + stderr, runsHere, verb.join(" "))
          assert.include(stdout + stderr, pid)
          assert.strictEqual(code, verb[0] === "doctor" ? 4 : 3, verb.join(" "))
        }
        const started = yield* box.cli("start")
        assert.strictEqual(started.code, 0, started.stderr)
        assert.include(started.stdout, `The daemon is already running (${pid}).`)
        yield* box.until(
          "all are back",
          Effect.sync(() => sockets.every((socket) => existsSync(socket))),
          Boolean
        )
        assert.strictEqual((yield* box.cli("ps")).code, 0)
        assert.strictEqual((yield* box.cli("stop", "--daemon", "--yes")).code, 0)
        assert.isFalse(existsSync(sockets[0]!))
        const after = yield* box.cli("ps")
        assert.match(after.stderr, /No daemon is running/)
      }).pipe(Effect.scoped)
  )
})
