/**
 * RunLimits: a fork bomb, a memory hog and a disk filler in a real daemon: each ends its own run and nothing else,
 * and a person is told which limit it passed. All are bounded, since this machine is somebody's.
 */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber, Layer } from "effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { CheckCommand } from "../../src/goals/CheckCommand.ts"
import { Reaper } from "../../src/runs/process/Reaper.ts"
import { sentence } from "../../src/runs/process/RunLimits.ts"
import { RunLimits } from "../../src/runs/process/RunLimits.ts"
import * as ProcessTree from "../../src/runs/process/ProcessTree.ts"
import * as RunWatch from "../../src/runs/process/RunWatch.ts"
import * as Scratch from "../support/Scratch.ts"
import * as Stage from "../support/Stage.ts"
import { missing } from "../support/toolbox.ts"

/**
 * A number of seconds that no other test sleeps for, so that what one leaves is told of there alone; what bears it is
 * ended with the test.
 */
let marks = 0
const end = (pid: string) => {
  try {
    process.kill(Number(pid), "SIGKILL")
  } catch {
    // it has ended
  }
}
const mark = Effect.suspend(() => {
  const made = `641.${process.pid}${++marks}`
  return Effect.as(
    Effect.addFinalizer(() => Effect.sync(() => pidsOf(made).forEach(end))),
    made
  )
})

/** An agent that counts the first error as the last: what it does is done once. */
const hostile = (shell: string, limits: object, backend: object = {}) => ({
  // a grace that nothing here waits for
  backend: { type: "command", shell: `cat > /dev/null; ${shell}`, killGrace: "1 hour", readyAfter: "0ms", ...backend },
  may: [],
  maxConsecutiveErrors: 1,
  limits: { tasks: 50, memory: "100 MB", disk: "10 MB", ...limits }
})

/** An agent that does nothing wrong meanwhile. */
const bystander = hostile("echo here; exec sleep 600", {}, { killGrace: "100ms" })

/** The pids whose command line holds these words. */
const pidsOf = (words: string): ReadonlyArray<string> =>
  fs
    .readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return fs.readFileSync(`/proc/${pid}/cmdline`, "latin1").replaceAll("\0", " ").includes(words)
      } catch {
        return false
      }
    })

const NODE = `"${process.execPath}" -e`
/** Holds 300 MB, until it is ended. */
const hog = (bytes: number, mark: string) =>
  `${NODE} 'globalThis.held = Buffer.alloc(${bytes}, 1); setInterval(() => {}, 1e6)' ${mark}`
const fill = (file: string) => `head -c 50000000 /dev/zero >> ${file}; exec sleep 600`

/** Each with its limit, and what is in its folder before. */
const attacks: ReadonlyArray<{
  readonly what: string
  readonly shell: (mark: string) => string
  readonly told: RegExp
  readonly limits?: object
  readonly before?: string
}> = [
  {
    what: "a fork bomb",
    shell: (mark) => `trap '' TERM; for i in $(seq 300); do sleep ${mark} & done; wait`,
    told: /processes and threads, \d+ above the limit of 50.*raise limits\.tasks/
  },
  {
    what: "a fork bomb of sessions of their own, without the mark",
    shell: (mark) => `for i in $(seq 300); do env -i setsid sleep ${mark} & done; wait`,
    told: /above the limit of 50/
  },
  {
    what: "a memory hog",
    shell: (mark) => hog(300e6, mark),
    told: /of memory, .* above the limit of 100 MB.*raise limits\.memory/
  },
  {
    what: "a memory hog of many parts",
    shell: (mark) => `for i in 1 2 3 4; do ${hog(60e6, mark)} & done; wait`,
    told: /of memory, .* above the limit of 200 MB/,
    limits: { memory: "200 MB", tasks: 1000 }
  },
  { what: "a disk filler", shell: () => fill("big"), told: /wrote .* above the limit of 10\.0 MB.*raise limits\.disk/ },
  {
    what: "a disk filler by a file that was there",
    shell: () => fill("old"),
    told: /above the limit of 10\.0 MB/,
    before: "old"
  },
  {
    what: "a disk filler by a file without a name",
    shell: (mark) => `exec 7> gone; rm gone; head -c 50000000 /dev/zero >&7; sleep ${mark}`,
    told: /above the limit of 10\.0 MB/
  }
]

const attack = Effect.fnUntraced(function* (
  { before, limits = {}, shell, told }: (typeof attacks)[number],
  backend = {}
) {
  const marked = yield* mark
  const stage = yield* Stage.make
  const shop = stage.home({
    agents: { hostile: hostile(shell(marked), { tasks: 50, ...limits }, backend), bystander }
  })
  if (before !== undefined) fs.writeFileSync(`${shop.root}/hostile/${before}`, "old\n")
  yield* stage.up
  yield* shop.send("bystander", "be here")
  yield* shop.of("bystander", 1, "turn.started")
  const [run] = (yield* shop.agents).filter(({ agent }) => agent === "bystander")
  yield* shop.send("hostile", "go")
  const { detail } = yield* shop.row("hostile", "is stopped", ({ state }) => state === "Stopped")
  assert.match(detail, told)
  assert.match(detail, /1 errors? in a row/)
  const { lines } = yield* shop.why("hostile")
  assert.match(JSON.stringify(lines), told)
  const [failed] = yield* shop.of("hostile", 1, "turn.error")
  assert.match(JSON.stringify(failed!.payload), told)
  assert.match((yield* shop.cli("log")).stdout, /above the limit of/)
  assert.deepStrictEqual(pidsOf(marked), [], "nothing of it is left")
  const [after] = (yield* shop.agents).filter(({ agent }) => agent === "bystander")
  assert.deepStrictEqual([after!.state, after!.runId], [run!.state, run!.runId], "no other run is ended")
}, Effect.scoped)

describe.skipIf(process.platform !== "linux")("a run that takes more than its limits", () => {
  for (const one of attacks) it.live(`${one.what} ends its own run and nothing else, and is told`, () => attack(one))

  if (missing.length > 0) it.skip(`not tried confined, since this machine cannot: ${missing.join("; ")}`)
  else {
    const confined = { sandbox: "required", share: [process.execPath] }
    const [bomb, , memory] = attacks
    it.live("a confined fork bomb does, too", () => attack(bomb!, confined))
    it.live("a confined memory hog does, too", () => attack(memory!, confined))
    it.live("a confined filler of its home does, too", () =>
      attack({ what: "", shell: () => fill('"$HOME/big"'), told: /above the limit of 10\.0 MB/ }, confined)
    )
  }

  it.live("of agents that share a folder, the one that fills it is ended", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const shared = { cwd: "." }
      const shop = stage.home({
        agents: {
          filler: hostile(fill("big"), {}, shared),
          worker: hostile("exec sleep 600", {}, { cwd: ".", killGrace: "1ms" })
        }
      })
      yield* stage.up
      yield* shop.send("worker", "work")
      yield* shop.of("worker", 1, "turn.started")
      yield* shop.send("filler", "go")
      yield* shop.row("filler", "is stopped", ({ state }) => state === "Stopped")
      const [worker] = (yield* shop.agents).filter(({ agent }) => agent === "worker")
      assert.strictEqual(worker!.state, "Running")
    }).pipe(Effect.scoped)
  )

  it.live("memory that processes share counts once", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      // each shows 60 MB of its own, which are one and the same
      const shell = `exec perl -e '$held = "x" x 60_000_000; for (1..4) { fork or last } open F, ">done$$"; sleep 600'`
      const shop = stage.home({ agents: { a: hostile(shell, { memory: "200 MB" }, { killGrace: "1ms" }) } })
      yield* stage.up
      yield* shop.send("a", "go")
      const done = Effect.sync(() => fs.readdirSync(`${shop.root}/a`).filter((name) => name.startsWith("done")))
      yield* shop.until("all hold it", done, (files) => files.length === 5)
      // a look at least
      yield* Effect.sleep("3 seconds")
      const [row] = yield* shop.agents
      assert.strictEqual(row!.state, "Running", row!.detail)
    }).pipe(Effect.scoped)
  )

  it.live("a lighter weight of the processor is given to all its processes", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const marked = yield* mark
      const shell = `sleep ${marked} & exec sleep ${marked}`
      const shop = stage.home({ agents: { a: hostile(shell, { cpuWeight: 10 }, { killGrace: "1ms" }) } })
      yield* stage.up
      yield* shop.send("a", "go")
      const nice = Effect.sync(() => pidsOf(marked).map((pid) => os.getPriority(Number(pid))))
      yield* shop.until("it is light", nice, (all) => all.length === 2 && all.every((one) => one === 10))
    }).pipe(Effect.scoped)
  )
})

it.live.skipIf(process.platform !== "linux")(
  "a check of a goal that takes more than its limits has failed, and says why",
  () =>
    Effect.gen(function* () {
      const check = yield* CheckCommand
      const cwd = fs.mkdtempSync(path.join(os.tmpdir(), "agentd-test-check-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => fs.rmSync(cwd, { recursive: true })))
      const limits = { memory: 100e6, tasks: 50, cpuWeight: 100, disk: 10e6 }
      const manner = { env: {}, network: false, sandbox: "preferred", limits } as const
      const of = { cwd, timeout: 600_000, store: "none", environment: process.env, manner, shared: [] }
      const marked = yield* mark
      for (const [command, told] of [
        [`for i in $(seq 300); do sleep ${marked} & done; wait`, /raise limits\.tasks of the project's goals/],
        [hog(300e6, marked), /raise limits\.memory of the project's goals/],
        [fill("big"), /raise limits\.disk of the project's goals/]
      ] as const) {
        const ended = yield* check({ ...of, command })
        assert.match(ended?.printed ?? "", told)
        assert.notStrictEqual(ended?.status.code, 0)
      }
      assert.deepStrictEqual(pidsOf(marked), [])
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.mergeAll(RunWatch.layer({ store: "none", homes: "/nowhere" }), Reaper.layerNone, NodeServices.layer).pipe(
          Layer.provideMerge(ProcessTree.ProcessTree.layer)
        )
      )
    )
)

describe("the watch", () => {
  it.live("finds the processes of a run that began before it, as under an earlier daemon", () =>
    Effect.gen(function* () {
      const { passed } = yield* RunLimits
      const marked = yield* mark
      const env = { ...process.env, ...ProcessTree.environmentOf({ store: "none", runId: "before" }) }
      const args = ["-c", hog(300e6, marked)]
      const child = yield* Effect.acquireRelease(
        Effect.sync(() => spawn("sh", args, { env, stdio: "ignore" })),
        (child) => Effect.sync(() => child.kill("SIGKILL"))
      )
      yield* Effect.sleep("1 second")
      const limits = { memory: 100e6, tasks: 50, cpuWeight: 100, disk: 10e6 }
      const cwd = Scratch.make("agentd-watch-")
      const { limit } = yield* passed({ runId: "before", cwd, limits })
      assert.strictEqual(limit, "memory")
      assert.isAbove(child.pid!, 0)
    }).pipe(
      Effect.scoped,
      Effect.provide(
        RunWatch.layer({ store: "none", homes: "/nowhere" }).pipe(Layer.provide(ProcessTree.ProcessTree.layer))
      )
    )
  )

  it.live("looks once a second, and sets no timer while there is no run", () =>
    Effect.gen(function* () {
      const sleeps: Array<number> = []
      const clock = yield* Clock.Clock
      const counting: Clock.Clock = Object.assign(Object.create(clock), {
        sleep: (duration: Parameters<Clock.Clock["sleep"]>[0]) =>
          Effect.suspend(() => {
            sleeps.push(Duration.toMillis(duration))
            return clock.sleep(duration)
          })
      })
      yield* Effect.gen(function* () {
        const { passed } = yield* RunLimits
        const settle = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        yield* settle
        assert.deepStrictEqual(sleeps, [])
        const limits = { memory: 1e9, tasks: 10, cpuWeight: 100, disk: 1e9 }
        const run = yield* Effect.forkChild(passed({ runId: "r", agent: "a", cwd: "/nowhere", limits }))
        yield* Effect.repeat(settle, { until: () => sleeps.includes(1_000) })
        yield* Fiber.interrupt(run)
        yield* clock.sleep(Duration.millis(1_200))
        const before = sleeps.length
        yield* clock.sleep(Duration.millis(1_200))
        assert.strictEqual(sleeps.length, before)
        // 0 is a turn for other fibers, the longer ones are limits of reads
        assert.strictEqual(Math.min(...sleeps.filter((ms) => ms > 0)), 1_000)
      }).pipe(
        Effect.provide(
          RunWatch.layer({ store: "none", homes: "/nowhere" }).pipe(Layer.provide(ProcessTree.ProcessTree.layer))
        ),
        Effect.provideService(Clock.Clock, counting)
      )
    })
  )

  it("says what limit was passed, by how much, and what to do", () => {
    assert.strictEqual(
      sentence({ limit: "memory", used: 312e6, most: 100e6 }),
      "its processes used 312 MB of memory, 212 MB above the limit of 100 MB, and were ended: raise limits.memory of the agent in agentd.jsonc, or give it less to do at once"
    )
  })
})
