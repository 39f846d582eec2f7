/**
 * QuickSearch: the look at what has begun since a run's first process, beside the search of all processes there are: on
 * played machines whose pids go round, and on this one.
 */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { spawn } from "node:child_process"
import { once } from "node:events"
import * as fs from "node:fs"
import { Worker } from "node:worker_threads"
import * as ProcessTable from "../../../src/runs/process/ProcessTable.ts"
import type { Process, ProcessId } from "../../../src/runs/process/ProcessTable.ts"
import { environmentOf, type Machine, ProcessTree } from "../../../src/runs/process/ProcessTree.ts"
import * as Support from "../../support/backend-run.ts"

const MARK = { store: "s", runId: "r" }
const OTHER = { store: "s", runId: "other" }
const [INIT, SELF, KEEPER, SHELL] = [1, 5, 7, 9]
const LIMIT = 400

type Living = Process & { readonly environment: ReadonlyArray<string> }

const entriesOf = (mark: typeof MARK) => Object.entries(environmentOf(mark)).map(([name, value]) => `${name}=${value}`)

/** A machine that gives pids as the kernel does: one after the other, in a circle, none that names a living group. */
class Kernel {
  count = 1_000
  newest = 20
  table = new Map<number, Living>()
  private readonly random: () => number

  constructor(seed: number) {
    let state = seed * 2_654_435_761 + 1
    this.random = () => {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
      return state / 2_147_483_648
    }
    for (const [pid, parent] of [
      [INIT, 0],
      [SELF, INIT],
      [KEEPER, INIT],
      [SHELL, INIT]
    ] as const)
      this.table.set(pid, { pid, start: 0, parent, group: pid, session: pid, environment: [] })
    this.newest = 10 + this.below(LIMIT - 20)
  }

  below(most: number): number {
    return Math.floor(this.random() * most)
  }

  fork(parent: number): number {
    const of = this.table.get(parent)!
    const used = new Set([...this.table.values()].flatMap(({ group, pid, session }) => [group, pid, session]))
    do this.newest = this.newest + 1 >= LIMIT ? 10 : this.newest + 1
    while (used.has(this.newest))
    this.count += 1
    // a tick is long: many are begun within one
    this.table.set(this.newest, { ...of, pid: this.newest, parent, start: Math.floor(this.count / 8) })
    return this.newest
  }

  change(pid: number, change: Partial<Living>): void {
    const of = this.table.get(pid)
    if (of !== undefined) this.table.set(pid, { ...of, ...change })
  }

  exit(pid: number): void {
    this.table.delete(pid)
    for (const one of this.table.values()) if (one.parent === pid) this.change(one.pid, { parent: INIT })
  }

  /** A program of the keeper's: a shell that has forked its anchor. */
  program(mark: typeof MARK) {
    const births = this.count
    const pid = this.fork(KEEPER)
    this.change(pid, { group: pid, session: pid, environment: [] })
    const between = this.fork(pid)
    const anchor = this.idOf(this.fork(between))
    this.exit(between)
    const root = this.idOf(pid)
    this.change(pid, { environment: entriesOf(mark) })
    return { root, births, anchor }
  }

  idOf(pid: number): ProcessId {
    const { start } = this.table.get(pid)!
    return { pid, start }
  }

  /** Somebody does something. */
  act(): void {
    const all = [...this.table.keys()].filter((pid) => pid !== INIT)
    const pid = all[this.below(all.length)]!
    const what = this.below(10)
    if (all.length < 12 || (what < 4 && all.length < 40)) {
      if (pid !== KEEPER) return void this.fork(pid)
      this.program(OTHER)
    } else if (pid === SELF || pid === KEEPER || pid === SHELL) return
    else if (what === 4 && this.table.get(pid)!.group !== pid) this.change(pid, { group: pid, session: pid })
    else if (what === 5 && this.table.get(pid)!.session !== pid) this.change(pid, { group: pid })
    else if (what === 6) this.change(pid, { environment: [] })
    else if (what > 6) this.exit(pid)
  }

  copy(): Kernel {
    const other = new Kernel(0)
    Object.assign(other, { count: this.count, newest: this.newest, table: new Map(this.table) })
    return other
  }

  /** `looks`: of the search of all. */
  machine(isQuick: boolean, looks: { count: number }): Machine {
    const { table } = this
    const births = { count: this.count, newest: this.newest, limit: LIMIT }
    const machine: Machine = {
      self: SELF,
      snapshot: Effect.sync(() => ((looks.count += 1), [...table.values()])),
      environment: (pid) => Effect.succeed(table.get(pid)?.environment ?? []),
      isAlive: ({ pid, start }) => table.get(pid)?.start === start,
      signal: (pid, signal) => {
        if (signal !== "SIGKILL" && signal !== "SIGTERM") return
        for (const one of table.values()) if (one.pid === pid || one.group === -pid) this.exit(one.pid)
      }
    }
    if (!isQuick) return machine
    return {
      ...machine,
      process: (pid) => table.get(pid),
      since: ({ pid }, before) => {
        const pids = ProcessTable.givenSince([...table.keys()], pid, before, births)
        return pids?.map((one) => table.get(one)!)
      }
    }
  }
}

/** Ends a run on a played machine in both ways. */
const played = Effect.fnUntraced(function* (seed: number) {
  const kernel = new Kernel(seed)
  for (let left = kernel.below(60); left > 0; left--) kernel.act()
  const { anchor, births, root } = kernel.program(MARK)
  for (let left = kernel.below(seed % 8 === 0 ? 4_000 : seed % 3 === 0 ? 600 : 60); left > 0; left--) kernel.act()
  const isRound = kernel.newest < root.pid
  if (kernel.table.get(root.pid)?.start === root.start) kernel.exit(root.pid)
  if (seed % 2 === 0) {
    // nothing of it is left, but what has no more to do with it
    const { count } = { count: 0 }
    yield* ProcessTree.over(kernel.machine(false, { count })).terminate({ ...MARK, root, starter: KEEPER }, 0)
  }
  const ended = Effect.fnUntraced(function* (isQuick: boolean) {
    const [looks, own] = [{ count: 0 }, kernel.copy()]
    const quarry = { ...MARK, root, births, anchor, starter: KEEPER }
    yield* ProcessTree.over(own.machine(isQuick, looks)).terminate(quarry, 0)
    const left = [...own.table.values()].filter(({ pid, start }) => pid !== anchor.pid || start !== anchor.start)
    return { left: left.map(({ pid, start }) => `${pid}.${start}`).toSorted(), looks: looks.count }
  })
  const [whole, quick] = [yield* ended(false), yield* ended(true)]
  const was = kernel.table.size - (kernel.table.get(anchor.pid)?.start === anchor.start ? 1 : 0)
  return { whole, quick, isRound, hadLeft: whole.left.length < was, begun: kernel.count - births }
})

describe("a look at what has begun since", () => {
  it.effect("ends what the search of all ends, whatever has happened on the machine", () =>
    Effect.gen(function* () {
      const seen = { over: 0, overRound: 0, left: 0, leftRound: 0, unknown: 0 }
      for (let seed = 1; seed <= 600; seed++) {
        const { begun, hadLeft, isRound, quick, whole } = yield* played(seed)
        assert.deepStrictEqual(quick.left, whole.left, `seed ${seed}`)
        const isOver = quick.looks === 0
        if (begun >= LIMIT / 2) {
          assert.isFalse(isOver, `seed ${seed}: numbers may have gone round`)
          seen.unknown += 1
          continue
        }
        // where nothing is left, that is seen without the search of all
        assert.strictEqual(isOver, !hadLeft, `seed ${seed}`)
        if (isOver) seen[isRound ? "overRound" : "over"] += 1
        else seen[isRound ? "leftRound" : "left"] += 1
      }
      for (const [what, count] of Object.entries(seen)) assert.isAbove(count, 10, what)
    })
  )

  it("knows nothing where nobody counts, or numbers may have gone round", () => {
    const births = { count: 110, newest: 30, limit: 100 }
    assert.deepStrictEqual(ProcessTable.givenSince([5, 20, 25, 30, 31], 20, 100, births), [20, 25, 30])
    assert.deepStrictEqual(ProcessTable.givenSince([5, 30, 31, 80, 90], 80, 100, births), [5, 30, 80, 90])
    assert.isUndefined(ProcessTable.givenSince([5], 20, 110, births))
    assert.isUndefined(ProcessTable.givenSince([5], 20, 120, births))
    assert.isUndefined(ProcessTable.givenSince([5], 20, 60, births))
  })
})

describe("a look while nothing begins", () => {
  /** A machine whose only parent begins another in each of so many looks, between their list and what is read, and ends. */
  const forking = (times: number) => {
    let [count, parent, looks] = [7, 1, 0]
    const look = () => {
      looks++
      const pids = [parent]
      if (looks <= times) [count, parent] = [count + 1, parent + 1]
      return pids.filter((pid) => pid === parent)
    }
    return { seen: ProcessTable.whileStill(() => count, look), looks }
  }

  it("sees what a parent began that ended meanwhile, or says that it cannot", () => {
    assert.deepStrictEqual(forking(0), { seen: [1], looks: 1 })
    assert.deepStrictEqual(forking(1), { seen: [2], looks: 2 })
    assert.deepStrictEqual(forking(2), { seen: [3], looks: 3 })
    assert.deepStrictEqual(forking(3), { seen: undefined, looks: 3 })
  })
})

const birthsNow = () => Number(/^processes (\d+)$/m.exec(fs.readFileSync("/proc/stat", "utf8"))?.[1])

/** The machine as it is, and how often all of it was searched. */
const here = () => {
  const looks = { count: 0 }
  const tree = ProcessTree.over({
    self: process.pid,
    snapshot: Effect.andThen(
      Effect.sync(() => void (looks.count += 1)),
      ProcessTable.snapshot
    ),
    environment: ProcessTable.environment,
    isAlive: ProcessTable.isAlive,
    since: ({ pid }, births) => ProcessTable.since(pid, births),
    process: ProcessTable.find,
    signal: (pid, signal) => {
      try {
        process.kill(pid, signal)
      } catch {
        // it has ended
      }
    }
  })
  return { looks, tree }
}

/** A program that ends, and leaves something. */
const leaving = Effect.fnUntraced(function* (script: string) {
  const world = yield* Support.world
  const births = birthsNow()
  const child = spawn("/bin/sh", ["-c", script], {
    cwd: world.folder,
    detached: true,
    stdio: "ignore",
    env: { ...process.env, ...environmentOf({ store: world.store, runId: "run-1" }) }
  })
  const root = ProcessTable.identify(child.pid!)
  yield* Effect.promise(() => new Promise((resolve) => child.once("exit", resolve)))
  return { world, quarry: { store: world.store, runId: "run-1", root, births, seen: new Map<number, number>() } }
})

/** The fewest searches of the whole machine in some tries: where others begin without a pause, nothing is seen quickly. */
const fewest = Effect.fnUntraced(function* (
  script: string,
  beside: Effect.Effect<void, never, Scope.Scope> = Effect.void
) {
  let searches = Infinity
  for (let tries = 0; searches > 0 && tries < 10; tries++) {
    const { looks, tree } = here()
    const { quarry } = yield* leaving(script)
    yield* Effect.scoped(Effect.andThen(beside, tree.terminate(quarry, "10 seconds")))
    searches = Math.min(searches, looks.count)
  }
  return searches
})

layer(Support.layer, { excludeTestServices: true })("on this machine", (it) => {
  it.effect("a program that leaves nothing costs no search", () =>
    Effect.map(fewest("sleep 0; sleep 0 & wait"), (searches) => assert.strictEqual(searches, 0))
  )

  it.effect("threads that others begin meanwhile are none of it", () =>
    Effect.gen(function* () {
      const thread = Effect.promise(async () => {
        const thread = new Worker("setInterval(() => {}, 1000)", { eval: true })
        await once(thread, "online")
        return thread
      })
      const beside = Effect.acquireRelease(thread, (thread) => Effect.promise(() => thread.terminate()))
      assert.strictEqual(yield* fewest("sleep 0", Effect.asVoid(beside)), 0)
    })
  )

  for (const [how, script] of [
    ["in its group", "sleep 300 & echo $! >> pids"],
    ["in a session of its own", "setsid sh -c 'echo $$ >> pids; exec sleep 300' & until [ -s pids ]; do :; done"],
    ["forked twice", "(setsid sh -c 'sleep 300 & echo $! >> pids' &); until [ -s pids ]; do :; done"],
    ["without its environment", "(env -i sleep 300 & echo $! >> pids)"]
  ] as const)
    it.effect(`what it leaves ${how} is ended`, () =>
      Effect.gen(function* () {
        const { looks, tree } = here()
        const { quarry, world } = yield* leaving(script)
        const left = yield* Support.pids(world.folder, 1)
        assert.isTrue(left.every(ProcessTable.isAlive))
        yield* tree.terminate(quarry, "10 seconds")
        assert.isFalse(left.some(ProcessTable.isAlive))
        assert.isAbove(looks.count, 0)
      })
    )
})
