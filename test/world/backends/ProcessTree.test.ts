import { assert, describe, it, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { spawn } from "node:child_process"
import { isAlive, type Process, type ProcessId } from "../../../src/runs/process/ProcessTable.ts"
import * as ProcessTable from "../../../src/runs/process/ProcessTable.ts"
import { environmentOf, membersOf, ProcessTree } from "../../../src/runs/process/ProcessTree.ts"
import * as Support from "../../support/backend-run.ts"

const proc = (pid: number, parent: number, group: number, session: number, start = pid): Process => ({
  pid,
  start,
  parent,
  group,
  session
})
const SELF = 50
/** init, a login shell, the daemon below it, and a bystander. */
const machine = [proc(1, 0, 1, 1), proc(40, 1, 40, 40), proc(SELF, 40, SELF, 40), proc(60, 1, 60, 60)]
const pidsOf = (...args: Parameters<typeof membersOf>) => membersOf(...args).members.map(({ pid }) => pid)

describe("membersOf", () => {
  it("children and their children belong", () => {
    const table = [...machine, proc(101, 100, 101, 101), proc(100, SELF, 100, 100), proc(102, 101, 102, 102)]
    assert.sameMembers(pidsOf(table, [100], SELF), [100, 101, 102])
  })

  it("the group and the session of a leader that has ended belong", () => {
    const table = [...machine, proc(101, 1, 100, 100), proc(102, 1, 102, 100), proc(103, 1, 103, 103)]
    assert.sameMembers(pidsOf(table, [], SELF, { pid: 100, start: 100 }), [101, 102])
  })

  it("a root whose pid names another process now is no reason to touch that one's group", () => {
    const table = [...machine, proc(100, 1, 100, 100, 999), proc(101, 1, 100, 100, 999)]
    assert.deepStrictEqual(pidsOf(table, [], SELF, { pid: 100, start: 100 }), [])
  })

  it("a member in a session that somebody else leads takes no one else of it along", () => {
    const table = [...machine, proc(61, 60, 61, 60), proc(62, 60, 62, 60)]
    assert.deepStrictEqual(pidsOf(table, [61], SELF), [61])
  })

  it("the daemon, its ancestors, and their groups and sessions are spared", () => {
    const nested = [...machine, proc(70, SELF, SELF, 40), proc(71, 1, 40, 40)]
    assert.deepStrictEqual(pidsOf(nested, [SELF, 40, 1, 70], SELF), [70])
  })

  it("a leaderless group of the daemon's own is spared", () => {
    const table = [proc(1, 0, 1, 1), proc(SELF, 1, 45, 44), proc(61, SELF, 45, 44), proc(62, 1, 45, 44)]
    const { members, groups } = membersOf(table, [61], SELF)
    assert.deepStrictEqual(
      members.map(({ pid }) => pid),
      [61]
    )
    assert.strictEqual(groups.size, 0)
  })
})

describe("a search", () => {
  it.effect("asks none whose session shows that it is another's", () =>
    Effect.gen(function* () {
      const KEEPER = 70
      const asked: Array<number> = []
      const tree = ProcessTree.over({
        self: SELF,
        snapshot: Effect.succeed([
          ...machine,
          proc(KEEPER, 1, KEEPER, KEEPER),
          // a younger one in an older one's session, programs of the keeper's and of the daemon's
          proc(110, 60, 110, 60),
          proc(120, KEEPER, 120, 120),
          proc(121, 1, 120, 120),
          proc(130, SELF, 130, 130),
          // begun in its own session by one that may have been the run's, and one whose leader has gone
          proc(140, 1, 140, 140),
          proc(141, 1, 140, 140),
          proc(151, 1, 151, 150)
        ]),
        environment: (pid) => Effect.sync(() => (asked.push(pid), [])),
        isAlive: () => true,
        signal: () => {}
      })
      yield* tree.find({ store: "s", runId: "r", root: { pid: 100, start: 100 }, starter: KEEPER })
      assert.sameMembers(asked, [140, 141, 151])
      asked.length = 0
      // that pid is another's by now, maybe one of the run's
      yield* tree.find({ store: "s", runId: "r", root: { pid: 100, start: 100 }, starter: 140 })
      assert.includeMembers(asked, [120, 121])
    })
  )
})

/** A machine on which a run's process starts one without mark, in a session of its own, whenever it is looked at. */
const bomb = () => {
  const table = new Map([...machine, proc(100, SELF, 100, 100)].map((one) => [one.pid, one]))
  let [next, isStopped] = [101, false]
  const tree = ProcessTree.over({
    self: SELF,
    snapshot: Effect.sync(() => {
      const seen = [...table.values()]
      if (table.has(100) && !isStopped) {
        table.set(next, proc(next, 100, next, next))
        next += 1
      }
      return seen
    }),
    environment: () => Effect.succeed([]),
    isAlive: ({ pid, start }) => table.get(pid)?.start === start,
    signal: (pid, signal) => {
      const leader = Math.abs(pid)
      if (signal === "SIGSTOP" && leader === 100) isStopped = true
      if (signal !== "SIGKILL" && signal !== "SIGTERM") return
      table.delete(leader)
      for (const [child, one] of table) if (one.parent === leader) table.set(child, { ...one, parent: 1 })
    }
  })
  const left = () => [...table.keys()].filter((pid) => pid >= 100)
  return { tree, left, quarry: { store: "s", runId: "r", root: { pid: 100, start: 100 } } }
}

describe("a process that starts others while it is ended", () => {
  it.effect("is terminated with those that it started between the search and the signal", () =>
    Effect.gen(function* () {
      const { left, quarry, tree } = bomb()
      yield* tree.terminate(quarry, 0)
      assert.deepStrictEqual(left(), [])
    })
  )

  it.effect("is asked to end with them, though the first that ends leaves what it has just started", () =>
    Effect.gen(function* () {
      const { left, quarry, tree } = bomb()
      yield* tree.terminate(quarry, "1 hour")
      assert.deepStrictEqual(left(), [])
    })
  )

  it.effect("is killed with them", () =>
    Effect.gen(function* () {
      const { left, quarry, tree } = bomb()
      yield* tree.kill(quarry)
      assert.deepStrictEqual(left(), [])
    })
  )
})

/** `sh -c` with the run's mark, in a session of its own; it notes pids in ./pids. */
const spawnMarked = (world: { store: string; folder: string }, script: string, runId = "run-1") =>
  Effect.callback<ProcessId>((resume) => {
    const child = spawn("/bin/sh", ["-c", script], {
      cwd: world.folder,
      detached: true,
      stdio: "ignore",
      env: { ...process.env, ...environmentOf({ store: world.store, runId }) }
    })
    child.once("spawn", () => resume(Effect.succeed(ProcessTable.identify(child.pid!))))
  })

const note = (command: string) => `${command} & echo $! >> pids`

layer(Support.layer, { excludeTestServices: true })("ProcessTree", (it) => {
  it.effect("orphans: whatever way they took out of the group, all are found and ended", () =>
    Effect.gen(function* () {
      const world = yield* Support.world
      const tree = yield* ProcessTree
      const root = yield* spawnMarked(
        world,
        [
          note("sleep 300"),
          note("setsid sleep 300"),
          // double fork: its parent is gone at once
          "(setsid sh -c 'sleep 300 & echo $! >> pids' &)",
          // without the mark, below a marked one in another session
          "setsid sh -c 'env -i sleep 300 & echo $! >> pids; wait' &",
          // without the mark, in the group of the root, and orphaned
          "(env -i sleep 300 & echo $! >> pids)",
          "echo $$ >> pids; wait"
        ].join("\n")
      )
      const known = yield* Support.pids(world.folder, 6)
      const found = yield* tree.find({ store: world.store, runId: "run-1", root })
      const foundPids = found.map(({ pid }) => pid)
      for (const { pid } of known) assert.include(foundPids, pid)
      assert.notInclude(foundPids, process.pid)

      yield* tree.terminate({ store: world.store, runId: "run-1", root }, "10 seconds")
      assert.deepStrictEqual(known.filter(isAlive), [])
    })
  )

  it.effect("alive but dead: 100 % CPU ignoring SIGTERM is ended by SIGKILL after the grace", () =>
    Effect.gen(function* () {
      const world = yield* Support.world
      const tree = yield* ProcessTree
      const root = yield* spawnMarked(world, "trap '' TERM; echo $$ >> pids; while :; do :; done")
      const known = yield* Support.pids(world.folder, 1)
      yield* tree.terminate({ store: world.store, runId: "run-1", root }, "300 millis")
      assert.deepStrictEqual(known.filter(isAlive), [])
    })
  )

  it.effect("a stopped process gets its SIGTERM and may end in order", () =>
    Effect.gen(function* () {
      const world = yield* Support.world
      const tree = yield* ProcessTree
      const root = yield* spawnMarked(
        world,
        "trap 'echo 0 >> orderly; exit' TERM; echo $$ >> pids; while :; do sleep 0.05; done"
      )
      yield* Support.pids(world.folder, 1)
      process.kill(root.pid, "SIGSTOP")
      yield* tree.terminate({ store: world.store, runId: "run-1", root }, "20 seconds")
      assert.isTrue(yield* Support.exists(world.folder, "orderly"))
    })
  )

  it.effect("what a process starts in order to end well is not asked to end itself", () =>
    Effect.gen(function* () {
      const world = yield* Support.world
      const tree = yield* ProcessTree
      const root = yield* spawnMarked(
        world,
        // longer than the time after which the tree is searched again
        "trap 'sleep 1.5 && echo 0 > orderly; exit' TERM; echo $$ >> pids; while :; do sleep 0.05; done"
      )
      yield* Support.pids(world.folder, 1)
      yield* tree.terminate({ store: world.store, runId: "run-1", root }, "20 seconds")
      assert.isTrue(yield* Support.exists(world.folder, "orderly"))
    })
  )

  it.effect("a run with the same id in another store is left alone, and so is another run of this store", () =>
    Effect.gen(function* () {
      const mine = yield* Support.world
      const other = yield* Support.world
      const tree = yield* ProcessTree
      yield* spawnMarked(mine, "echo $$ >> pids; exec sleep 300")
      yield* spawnMarked(mine, "echo $$ >> pids; exec sleep 300", "run-12")
      yield* spawnMarked(other, "echo $$ >> pids; exec sleep 300")
      const [here] = [yield* Support.pids(mine.folder, 2), yield* Support.pids(other.folder, 1)]
      yield* tree.terminate({ store: mine.store, runId: "run-1" }, "10 seconds")
      assert.strictEqual(here.filter(isAlive).length, 1)
      assert.strictEqual(Support.pidsIn(other.folder).filter(isAlive).length, 1)
    })
  )

  it.effect(
    "orphans: what is left of this store's dead runs is found by run; a live run and other stores are not",
    () =>
      Effect.gen(function* () {
        const world = yield* Support.world
        const other = yield* Support.world
        const tree = yield* ProcessTree
        yield* spawnMarked(world, "echo $$ >> pids; env -i sleep 300 & echo $! >> pids; wait", "dead")
        yield* spawnMarked(world, "echo $$ >> pids; exec sleep 300", "alive")
        yield* spawnMarked(other, "echo $$ >> pids; exec sleep 300", "dead")
        yield* Support.pids(world.folder, 3)
        yield* Support.pids(other.folder, 1)
        const orphans = yield* tree.orphans(world.store, new Set(["alive"]))
        assert.deepStrictEqual(
          orphans.map(({ runId, processes }) => [runId, processes.length]),
          [["dead", 2]]
        )
      })
  )

  it.effect("what was found by its parent alone is ended, although it outlives that one", () =>
    Effect.gen(function* () {
      const world = yield* Support.world
      const tree = yield* ProcessTree
      // no mark, no group and no session of the run's
      const deaf = `exec env -i setsid /bin/sh -c 'trap "" TERM; echo $$ >> pids; while :; do sleep 1; done'`
      const root = yield* spawnMarked(world, `(${deaf}) & sleep 300`)
      const [left] = yield* Support.pids(world.folder, 1)
      yield* tree.terminate({ store: world.store, runId: "run-1", root }, "200 millis")
      assert.isFalse(isAlive(left!))
    })
  )

  it.effect("a process that has taken over the pid of a dead one is not signalled", () =>
    Effect.gen(function* () {
      const world = yield* Support.world
      const tree = yield* ProcessTree
      const bystander = yield* Support.world
      const { pid, start } = yield* spawnMarked(bystander, "echo $$ >> pids; exec sleep 300", "unrelated")
      yield* tree.terminate({ store: world.store, runId: "run-1", root: { pid, start: start - 1 } }, 0)
      assert.isTrue(isAlive({ pid, start }))
    })
  )

  it.effect("terminate ends in a finalizer, where nothing can be interrupted", () =>
    Effect.gen(function* () {
      const world = yield* Support.world
      const tree = yield* ProcessTree
      const root = yield* spawnMarked(world, "trap '' TERM; echo $$ >> pids; while :; do sleep 0.05; done")
      const known = yield* Support.pids(world.folder, 1)
      const begun = yield* Deferred.make<void>()
      const fiber = yield* Effect.forkChild(
        Effect.andThen(Deferred.succeed(begun, undefined), Effect.never).pipe(
          Effect.ensuring(Effect.orDie(tree.terminate({ store: world.store, runId: "run-1", root }, "200 millis")))
        )
      )
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(known.filter(isAlive), [])
    })
  )
})
