/** Incidents that others had, by their names: a disk that fails for a moment, and for longer than a daemon waits. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { execFileSync } from "node:child_process"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as Laws from "../../support/Laws.ts"
import * as Stage from "../../support/Stage.ts"

const AGENTS = ["a", "b", "c"] as const

/** Says something all the time, in one turn that goes on. */
const TALKING = "cat > /dev/null; echo $$ >> pids; while :; do echo tick; sleep 0.1; done"

const talker = { backend: { type: "command", shell: TALKING, readyAfter: "50ms" }, minRunInterval: "0ms" }

/** Three agents at work, and one that has nothing to do. */
const atWork = Effect.fnUntraced(function* (stage: Stage.Stage) {
  const idle = { ...talker, backend: { ...talker.backend, shell: "cat" } }
  const shop = stage.home({ agents: { a: talker, b: talker, c: talker, idle } })
  yield* stage.up
  yield* shop.register
  for (const agent of AGENTS) yield* shop.send(agent, "go")
  for (const agent of AGENTS) yield* shop.of(agent, 1, "turn.started")
  return shop
})

const pidsOf = (shop: Stage.Project) => AGENTS.map((agent) => shop.noted(agent, "pids"))

/** A disk that can be full; undefined where this user can mount none. */
const small = (folder: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      try {
        execFileSync("mount", ["-t", "tmpfs", "-o", "size=16m,mode=700", "none", folder], { stdio: "ignore" })
        return { full: () => fill(join(folder, "fill")), free: () => rmSync(join(folder, "fill")) }
      } catch {
        return undefined
      }
    }),
    (disk) =>
      Effect.sync(() => (disk === undefined ? undefined : execFileSync("umount", ["-l", folder], { stdio: "ignore" })))
  )

const fill = (file: string): void => {
  try {
    writeFileSync(file, Buffer.alloc(64 * 1024 * 1024))
  } catch {
    // it is full
  }
}

describe.concurrent("one blip restarts all", () => {
  it.live("a store that is locked for a moment: no run is restarted, and what was asked meanwhile is done once", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      const shop = yield* atWork(stage)
      const store = new DatabaseSync(join(stage.box.state, "runes.db"), { timeout: 60_000 })
      store.exec("BEGIN IMMEDIATE")
      const sending = yield* Effect.forkChild(shop.send("idle", "while it is locked"), { startImmediately: true })
      yield* Effect.sleep("1 second")
      assert.isUndefined(sending.pollUnsafe(), "what is not durable is not acknowledged")
      store.exec("ROLLBACK")
      store.close()
      yield* Fiber.join(sending)
      yield* shop.answers("idle", 1)
      for (const agent of AGENTS) assert.strictEqual(yield* shop.runs(agent), 1)
      assert.deepStrictEqual(
        pidsOf(shop).map(({ length }) => length),
        [1, 1, 1]
      )
      const rows = (yield* shop.agents).map(({ state, totalErrors }) => [state, totalErrors])
      assert.isTrue(rows.every(([, errors]) => errors === 0))
    })
  )

  it.live("a disk that stays full ends the daemon, and no run: whoever waits hears why, and the next one goes on", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.keeping
      const disk = yield* small(stage.box.state)
      const shop = yield* atWork(stage)
      const before = pidsOf(shop)
      const store =
        disk === undefined ? new DatabaseSync(join(stage.box.state, "runes.db"), { timeout: 60_000 }) : undefined
      if (disk === undefined) store!.exec("BEGIN IMMEDIATE")
      else disk.full()
      const why = disk === undefined ? /another process holds the store's lock/ : /there is no space left/
      const waiting = [
        ...AGENTS.map((agent) => shop.cli("send", agent, "x".repeat(100_000))),
        shop.cli("send", "idle", "y".repeat(100_000)),
        shop.cli("project", "pause", "shop"),
        shop.cli("log", "-f", "-n", "0"),
        shop.cli("log", "idle", "-f", "-n", "0")
      ]
      const answers = yield* Effect.all(waiting, { concurrency: "unbounded" })
      for (const { code, stderr } of answers) {
        assert.match(stderr, why)
        assert.match(stderr, /agentd .*start/)
        assert.strictEqual(code, 74)
      }
      yield* stage.box.gone
      assert.match(stage.box.output, why)
      disk?.free()
      store?.close()
      yield* stage.up
      for (const agent of AGENTS) {
        yield* shop.row(agent, "works on", ({ state }) => state === "Running")
        assert.strictEqual(yield* shop.runs(agent), 1)
      }
      assert.deepStrictEqual(pidsOf(shop), before)
      yield* shop.send("idle", "after it")
      yield* shop.answers("idle", 1)
      const turns = Laws.turnsOf(yield* shop.log())
      assert.isTrue(turns.every(({ ends }) => ends.length <= 1))
    })
  )
})
