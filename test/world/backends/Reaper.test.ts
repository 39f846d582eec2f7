import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Layer, Scope } from "effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { identify, isAlive, type ProcessId } from "../../../src/runs/process/ProcessTable.ts"
import { environmentOf } from "../../../src/runs/process/ProcessTree.ts"
import { Reaper } from "../../../src/runs/process/Reaper.ts"
import * as Support from "../../support/backend-run.ts"

interface World {
  readonly store: string
  readonly folder: string
}

const DAEMON = fileURLToPath(new URL("../../support/backend-daemon.ts", import.meta.url))

/** A daemon with one run of the shell line; killed with SIGKILL at the test's end at the latest. */
const daemon = Effect.fnUntraced(function* ({ store, folder }: World, grace: number, shell: string) {
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, [DAEMON, store, "run-1", folder, String(grace), shell], { stdio: "ignore" })
    ),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )
  const file = path.join(folder, "reaper")
  yield* Support.until(() => fs.existsSync(file) && fs.readFileSync(file, "utf8") !== "")
  return { child, reaper: identify(Number(fs.readFileSync(file, "utf8"))) }
})

/** A process with the run's mark in a session of its own. */
const marked = (world: World, runId: string) =>
  Effect.acquireRelease(
    Effect.callback<ProcessId>((resume) => {
      const child = spawn("sleep", ["300"], {
        detached: true,
        stdio: "ignore",
        env: { ...process.env, ...environmentOf({ store: world.store, runId }) }
      })
      child.once("spawn", () => resume(Effect.succeed(identify(child.pid!))))
    }),
    (id) =>
      Effect.sync(() => {
        if (isAlive(id)) process.kill(id.pid, "SIGKILL")
      })
  )

/** A reaper for the world's store in a scope that the test closes. */
const reaping = Effect.fnUntraced(function* ({ store }: World) {
  const scope = yield* Scope.fork(yield* Effect.scope)
  const context = yield* Layer.buildWithScope(Reaper.layer({ store, grace: "1 second" }), scope)
  const reaper = yield* Effect.provideContext(Reaper, context)
  const shell = Effect.map(reaper.pid, (pid) => identify(pid ?? 0))
  return { reaper, shell, close: Scope.close(scope, Exit.void) }
})

layer(Support.layer, { excludeTestServices: true })("Reaper", (it) => {
  it.effect("orphans: kill -9 of the daemon leaves none, and no reaper either", () =>
    Effect.gen(function* () {
      const world = yield* Support.world
      const script = [
        "sleep 300 & echo $! >> pids",
        "setsid sleep 300 & echo $! >> pids",
        "(setsid sh -c 'sleep 300 & echo $! >> pids' &)",
        "setsid sh -c 'env -i sleep 300 & echo $! >> pids; wait' &",
        "(env -i sleep 300 & echo $! >> pids)",
        "echo $$ >> pids; wait"
      ].join("\n")
      const { child, reaper } = yield* daemon(world, 5000, script)
      const known = yield* Support.pids(world.folder, 6)
      const bystander = yield* marked({ ...world, store: `${world.store}-other` }, "run-1")
      assert.strictEqual([...known, reaper].filter(isAlive).length, 7)
      child.kill("SIGKILL")
      yield* Support.until(() => !known.some(isAlive) && !isAlive(reaper))
      assert.isTrue(isAlive(bystander))
    })
  )

  it.effect("alive but dead: 100 % CPU ignoring SIGTERM does not outlive the daemon either", () =>
    Effect.gen(function* () {
      const world = yield* Support.world
      const { child, reaper } = yield* daemon(world, 200, "trap '' TERM; echo $$ >> pids; while :; do :; done")
      const known = yield* Support.pids(world.folder, 1)
      child.kill("SIGKILL")
      yield* Support.until(() => !known.some(isAlive) && !isAlive(reaper))
    })
  )

  it.effect("a daemon that stops in order ends its run, and the reaper goes by itself", () =>
    Effect.gen(function* () {
      const world = yield* Support.world
      const { child, reaper } = yield* daemon(world, 5000, "echo $$ >> pids; sleep 300")
      const known = yield* Support.pids(world.folder, 1)
      child.kill("SIGTERM")
      yield* Support.until(() => !known.some(isAlive) && !isAlive(reaper))
    })
  )

  it.effect("only runs that were added and not removed are ended", () =>
    Effect.gen(function* () {
      const world = yield* Support.world
      const { reaper, shell, close } = yield* reaping(world)
      const [lost, done, successor] = [
        yield* marked(world, "run-1"),
        yield* marked(world, "run-2"),
        yield* marked(world, "run-11")
      ]
      yield* reaper.add("run-1")
      yield* reaper.add("run-2")
      yield* reaper.remove("run-2")
      const pid = yield* shell
      yield* close
      yield* Support.until(() => !isAlive(pid))
      assert.deepStrictEqual([lost, done, successor].map(isAlive), [false, true, true])
    })
  )

  it.effect("runs that come together are all known when it is there", () =>
    Effect.gen(function* () {
      const world = yield* Support.world
      const { close, reaper, shell } = yield* reaping(world)
      const ids = ["run-1", "run-2", "run-3"]
      const lost = yield* Effect.forEach(ids, (id) => marked(world, id))
      yield* Effect.forEach(ids, (id) => reaper.add(id), { concurrency: "unbounded" })
      const pid = yield* shell
      assert.isTrue(isAlive(pid))
      yield* close
      yield* Support.until(() => !isAlive(pid) && !lost.some(isAlive))
    })
  )

  it.effect("without runs there is none; when it has none any more it goes with the daemon, and touches nothing", () =>
    Effect.gen(function* () {
      const world = yield* Support.world
      const { close, reaper, shell } = yield* reaping(world)
      assert.isUndefined(yield* reaper.pid)
      yield* reaper.add("run-1")
      yield* reaper.remove("run-1")
      const [pid, other] = [yield* shell, yield* marked(world, "run-1")]
      assert.isTrue(isAlive(pid))
      yield* close
      yield* Support.until(() => !isAlive(pid))
      assert.isTrue(isAlive(other))
    })
  )

  it.effect("a reaper that is killed is replaced, and the next one knows the runs", () =>
    Effect.gen(function* () {
      const world = yield* Support.world
      const { reaper, shell, close } = yield* reaping(world)
      const lost = yield* marked(world, "run-1")
      yield* reaper.add("run-1")
      const first = yield* shell
      process.kill(first.pid, "SIGKILL")
      yield* Support.until(() => !isAlive(first))
      let second = first
      yield* Effect.repeat(
        Effect.andThen(
          Effect.sleep("20 millis"),
          Effect.map(shell, (id) => (second = id))
        ),
        { until: (id) => id.start > 0 && id.pid !== first.pid }
      )
      yield* close
      yield* Support.until(() => !isAlive(second) && !isAlive(lost))
    })
  )
})
