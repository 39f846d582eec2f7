/** Schedules of a real daemon that is killed around the times that are due: each runs once, and is told as what it is. */
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { ScheduleInfo } from "../../../src/domain/ScheduleMessages.ts"
import { call } from "../../../src/api/rpc/ControlClient.ts"
import * as Sandbox from "../../support/Sandbox.ts"
import { isAll, all, long } from "../../support/Long.ts"

const shell = (script: string) => ({ backend: { type: "command", shell: script, readyAfter: "10ms" } })

const world = Effect.gen(function* () {
  const box = yield* Sandbox.make()
  box.configure({
    agents: {
      worker: shell(`cat >> got.txt; sleep 0.2; echo done`),
      pm: shell(`sleep 0.2; echo '{"tasks":[{"id":"a","title":"tidy"}]}'`)
    },
    goals: { planner: "pm" },
    schedules: {
      nightly: { cron: "30 2 * * *", timeZone: "Europe/Berlin", send: { agent: "worker", text: "good night" } },
      weekly: { cron: "0 9 * * 1", goal: { text: "tidy up", autoStart: false } },
      ...(isAll ? { minutely: { cron: "* * * * *", send: { agent: "worker", text: "tick" } } } : {})
    }
  })
  const caller = { by: "ada", config: box.file("agentd.jsonc") }
  const rows = Effect.orElseSucceed(
    call(join(box.state, "control.sock"), (client) => client.Schedules({ all: false, caller })),
    (): ReadonlyArray<ScheduleInfo> => []
  )
  const row = (name: string, what: string, holds: (row: ScheduleInfo) => boolean) =>
    Effect.map(
      box.until(`${name} ${what}`, rows, (all) => all.some((one) => one.name === name && holds(one))),
      (all) => all.find((one) => one.name === name)!
    )
  /** How often each time was sent, by the log. */
  const sent = Effect.map(box.runes("inbox.received", "plan.goal_received"), (runes) => {
    const all: { [key: string]: number } = {}
    for (const { payload } of runes) {
      const event = payload["event"] as { readonly key?: string; readonly message?: { readonly messageId: string } }
      const key = event.key ?? event.message!.messageId
      all[key] = (all[key] ?? 0) + 1
    }
    return all
  })
  const got = () => (existsSync(box.file("got.txt")) ? readFileSync(box.file("got.txt"), "utf8") : "")
  return { box, row, sent, got }
})

describe("schedules of a daemon that is killed", () => {
  long.live("before, at and after the time: each runs once", () =>
    Effect.gen(function* () {
      const { box, got, row, sent } = yield* world
      yield* box.up()
      // due while nobody is there
      assert.include((yield* box.cli("at", "--in", "2s", "send", "worker", "one")).stdout, "at-1 sends to worker.")
      yield* box.cli("at", "tomorrow", "9:00", "send", "worker", "two")
      yield* box.kill9
      yield* Effect.sleep("2 seconds")
      yield* box.up()
      yield* row("at-1", "is over", ({ state }) => state === "done")
      // killed as soon as it is sent
      yield* box.cli("at", "--in", "1s", "send", "worker", "three")
      yield* row("at-3", "is over", ({ state }) => state === "done")
      yield* box.kill9
      yield* box.up()
      yield* box.until("it is worked on", Effect.sync(got), (text) => text.includes("three"))
      assert.include(got(), "from the schedule at-3")
      // a goal, as what it is
      assert.include((yield* box.cli("schedule", "run", "weekly")).stdout, "weekly submits a goal now.")
      const again = yield* box.cli("schedule", "run", "weekly")
      assert.strictEqual(again.code, 1)
      assert.include(again.stderr, "still in progress")
      yield* box.kill9
      yield* box.up()
      assert.strictEqual((yield* row("weekly", "goes on", ({ last }) => last?.underWay === true)).last?.goalId, "g1")
      assert.match(
        (yield* box.cli("why", "g1")).stdout,
        /the schedule weekly, run by hand .*, submitted this goal: tidy up/
      )
      const times = Object.entries(yield* sent).map(([key, count]) => `${key.replace(/@.*Z/u, "")} ${count}`)
      for (const one of ["schedule/at-1 1", "schedule/at-3 1", "schedule/weekly/asked 1"]) assert.include(times, one)
      assert.isTrue(times.every((time) => time.endsWith(" 1")))
      const listed = (yield* box.cli("schedule", "ls")).stdout
      assert.match(listed, /shop\/nightly +waits +.*30 2 \* \* \* Europe\/Berlin/)
      assert.match(listed, /shop\/weekly +waits .*run by hand .* → g1, in progress/)
      assert.strictEqual((yield* box.cli("verify")).code, 0)
    })
  )

  all.live("a cron message each minute, over a kill between two", () =>
    Effect.gen(function* () {
      const { box, row, sent } = yield* world
      yield* box.up()
      for (const life of [1, 2]) {
        const before = yield* sent
        yield* row("minutely", "has run", ({ last }) => last !== null && before[last.messageId!] === undefined)
        yield* box.kill9
        yield* box.up()
        assert.isAtLeast(Object.keys(yield* sent).length, life)
      }
      assert.isTrue(Object.values(yield* sent).every((count) => count === 1))
    })
  )
})
