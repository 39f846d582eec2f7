/** Incidents that others had, by their names: a daemon that is killed, that hangs, and whose disk fails. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import * as Sandbox from "../support/Sandbox.ts"

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
