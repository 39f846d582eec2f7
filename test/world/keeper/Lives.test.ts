/** Lives: who dies when, and what lives on: the daemon, the keeper, both, the machine, the folder, a version. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Schedule } from "effect"
import { spawnSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as ProcessTable from "../../../src/runs/process/ProcessTable.ts"
import * as Stand from "./Stand.ts"

const STUBBORN = "trap '' TERM; echo up; while :; do sleep 0.1; done"
const lease = (millis: number) => ({ lease: Duration.millis(millis) })

describe("the end of a program", () => {
  it.live("is SIGTERM, the grace, SIGKILL", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const held = yield* Stand.script(daemon, "stubborn", STUBBORN)
      yield* Stand.readUntil(held, "up")
      const gentle = yield* Stand.script(
        daemon,
        "gentle",
        "trap 'echo bye; exit 9' TERM; echo up; while :; do sleep 0.1; done"
      )
      yield* Stand.readUntil(gentle, "up")
      yield* daemon.vanish
      const told: Array<{ readonly tell: string }> = []
      yield* Stand.owner(folder, told as never)
      Stand.kill(Stand.pidOf(folder), "SIGTERM")
      const ended = () => told.filter(({ tell }) => tell === "ended") as ReadonlyArray<object>
      yield* Stand.until(() => ended().length === 2)
      // who is ended so has not failed
      assert.deepInclude(ended()[0], { run: "gentle", code: null, signal: null, out: "up\nbye\n".length })
      assert.deepInclude(ended()[1], { run: "stubborn", code: null, signal: null })
      const ofOne = told.filter((tale) => "run" in tale && tale.run === "gentle").map(({ tell }) => tell)
      // its output may be told before its exit or after
      assert.deepStrictEqual(
        ofOne.filter((tell) => tell !== "output").slice(-3),
        ["exited", "whole", "ended"],
        "its exit is durable last"
      )
    })
  )

  it.live("leaves its anchor not behind", () =>
    Effect.gen(function* () {
      const daemon = yield* Stand.daemon(yield* Stand.stand)
      const held = yield* Stand.script(daemon, "short", "exit 0")
      yield* Stand.whole(held)
      yield* Stand.until(() => Stand.session(held.pid).length === 0)
    })
  )

  it.live(
    "is found quickly: the keeper names the anchor, and how many processes there were before, as the next keeper does",
    () =>
      Effect.gen(function* () {
        const folder = yield* Stand.stand
        const daemon = yield* Stand.daemon(folder)
        const held = yield* Stand.script(daemon, "named", "echo $$; env; read line")
        const said = yield* Stand.readUntil(held, "PATH=")
        assert.notMatch(said, /^anchor=/m)
        const anchor = held.anchor!
        assert.isTrue(Stand.session(held.pid).includes(anchor.pid))
        assert.isTrue(ProcessTable.isAlive(anchor))
        const begun = ProcessTable.since(held.pid, held.births!)!.map(({ pid }) => pid)
        assert.includeMembers([...begun], [held.pid, anchor.pid])
        assert.notInclude(begun, Stand.pidOf(folder))
        yield* daemon.vanish
        yield* Stand.killKeeper(folder)
        const next = yield* Stand.daemon(folder)
        const again = (yield* next.keeper.take("named"))!
        assert.deepStrictEqual([again.anchor, again.births], [anchor, held.births])
        Stand.kill(held.pid)
        yield* again.exited
        yield* Stand.until(() => !ProcessTable.isAlive(anchor))
      })
  )

  it.live("a grandchild that holds a pipe open delays it, not for ever", () =>
    Effect.gen(function* () {
      const daemon = yield* Stand.daemon(yield* Stand.stand)
      const held = yield* Stand.script(daemon, "holder", "sleep 300 & echo $!")
      const pid = Number(yield* Stand.whole(held))
      assert.isTrue(Stand.lives(pid))
      assert.deepStrictEqual(yield* held.exited, { code: 0, signal: null })
      Stand.kill(pid)
    })
  )
})

describe("the daemon", () => {
  it.live("that asks for a program's end goes on with the grace that an earlier one had begun", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const held = yield* Stand.script(daemon, "stubborn", STUBBORN)
      const never = 1e9
      assert.strictEqual(yield* held.graceLeft(never), never)
      yield* daemon.vanish
      const next = yield* Stand.daemon(folder)
      const [left] = yield* next.keeper.left
      assert.isBelow(yield* left!.graceLeft(never), never)
      assert.strictEqual(yield* left!.graceLeft(0), 0)
      // of another start of the machine
      writeFileSync(join(Stand.runFolder(folder, "stubborn"), "asked"), "1e15")
      assert.strictEqual(yield* left!.graceLeft(never), never)
      assert.isBelow(yield* Effect.delay(left!.graceLeft(never), "5 millis"), never)
    })
  )

  it.live("of one that was overtaken, no program begins that the newer one was not told of", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      yield* Stand.script(daemon, "first", "exec sleep 300")
      yield* daemon.vanish
      const spawn = (run: string) => ({ op: "spawn", run, script: "exec sleep 300" }) as const
      const older = yield* Stand.owner(folder)
      // more than shells wait
      const late = () => Array.from({ length: 24 }, (_, n) => older.tell(spawn(`late${n}`)))
      const newer = yield* Stand.owner(folder, [], late)
      const told = newer.runs.map(({ run }) => run)
      assert.include(told, "first")
      assert.isBelow(told.length, 25)
      for (const run of ["one", "two", "three"]) assert.isUndefined((yield* newer.ask(spawn(run), null)).error)
      const there = readdirSync(join(Stand.homeOf(folder), "runs")).filter((name) => !name.startsWith("slot-"))
      assert.sameMembers(there, [...told, "one", "two", "three"])
    })
  )

  it.live("of two that chose the same epoch the one that is there stays, and the other has it once that is gone", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      yield* Stand.script(daemon, "run", "exec sleep 300")
      yield* daemon.vanish
      const first = yield* Stand.owner(folder)
      const epoch = Stand.epochOf(folder)
      const other = yield* Stand.link(folder)
      assert.strictEqual((yield* Stand.hello(folder, other, epoch)).error, "fenced")
      // on its own connection it may say it again
      assert.isUndefined((yield* Stand.hello(folder, first, epoch)).error)
      assert.isUndefined((yield* first.ask({ op: "mark", run: "run", out: 0, err: 0 })).error)
      first.close()
      const hello = Effect.map(Stand.hello(folder, other, epoch), ({ error }) => error)
      yield* Effect.repeat(hello, { until: (error) => error === undefined, schedule: Schedule.spaced("10 millis") })
    })
  )

  it.live("an older one is refused, and what it sends on its old connection, too", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      yield* Stand.script(daemon, "run", "exec sleep 300")
      yield* daemon.vanish
      const first = yield* Stand.owner(folder)
      const second = yield* Stand.owner(folder)
      const old = yield* Stand.link(folder)
      assert.strictEqual((yield* Stand.hello(folder, old, 1)).error, "fenced")
      assert.strictEqual((yield* old.ask({ op: "mark", run: "run", out: 0, err: 0 })).error, "hello first")
      assert.strictEqual((yield* first.ask({ op: "mark", run: "run", out: 0, err: 0 })).error, "gone")
      assert.isUndefined((yield* second.ask({ op: "mark", run: "run", out: 0, err: 0 })).error)
    })
  )

  it.live("one that was overtaken does not take the keeper back", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      yield* Stand.daemon(folder)
      const newer = yield* Stand.owner(folder)
      // time enough for ten tries
      yield* Effect.sleep("1 second")
      assert.strictEqual((yield* newer.ask({ op: "mark", run: "", out: 0, err: 0 })).error, "unknown")
    })
  )

  it.live("is waited for while it is away; once it is back in time, no lease ends anything", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder, lease(1500))
      const held = yield* Stand.script(daemon, "lone", STUBBORN)
      yield* Stand.readUntil(held, "up")
      yield* daemon.vanish
      yield* Effect.sleep("500 millis")
      const next = yield* Stand.daemon(folder, lease(1500))
      yield* Effect.sleep("2 seconds")
      assert.isTrue(Stand.lives(held.pid))
      assert.strictEqual((yield* next.keeper.left)[0]?.pid, held.pid)
    })
  )

  it.live("after the lease its programs are ended and the keeper leaves; the next daemon learns it", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder, lease(500))
      const held = yield* Stand.script(daemon, "lone", "echo said; exec sleep 300")
      yield* Stand.readUntil(held, "said")
      const keeper = Stand.pidOf(folder)
      yield* daemon.vanish
      yield* Stand.until(() => !Stand.lives(held.pid) && !Stand.lives(keeper))
      const next = yield* Stand.daemon(folder)
      const again = (yield* next.keeper.take("lone"))!
      assert.deepStrictEqual(yield* again.exited, { code: null, signal: null })
      assert.strictEqual(yield* Stand.whole(again), "said\n")
    })
  )

  it.live("after the lease a program that has ended at the bound holds the keeper up no more", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder, { ...lease(1000), bound: 100_000 })
      const held = yield* Stand.script(daemon, "full", "head -c 100001 /dev/zero; head -c 50000 /dev/zero")
      yield* held.exited
      const keeper = Stand.pidOf(folder)
      yield* daemon.vanish
      yield* Stand.until(() => !Stand.lives(keeper))
      const next = yield* Stand.daemon(folder)
      const again = (yield* next.keeper.take("full"))!
      assert.strictEqual((yield* Stand.whole(again)).length, 150_001)
    })
  )

  it.live("one that ends and does not leave asks for nothing again: all is forgotten, and the keeper goes", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const held = yield* Stand.script(daemon, "short", "exec true")
      yield* Stand.whole(held)
      const keeper = Stand.pidOf(folder)
      yield* daemon.close
      yield* Stand.until(() => !Stand.lives(keeper))
      assert.isFalse(existsSync(Stand.runFolder(folder, "short")))
      assert.deepStrictEqual(Stand.namedIn(folder), [])
    })
  )

  it.live("one that leaves finds what has ended meanwhile, with its exit and its output", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const held = yield* Stand.script(daemon, "meanwhile", "read go; echo said; exit 5")
      yield* held.write("go\n", "note")
      yield* daemon.vanish
      yield* Stand.until(() => existsSync(join(Stand.runFolder(folder, "meanwhile"), "exit")))
      const next = yield* Stand.daemon(folder)
      const again = (yield* next.keeper.take("meanwhile"))!
      assert.deepStrictEqual(yield* again.exited, { code: 5, signal: null })
      assert.strictEqual(yield* Stand.whole(again), "said\n")
      assert.deepStrictEqual(again.inputs, [{ seq: 1, note: "note" }])
      yield* next.keeper.forget((name) => name === "meanwhile")
      yield* Stand.until(() => !existsSync(Stand.runFolder(folder, "meanwhile")))
    })
  )
})

describe("the keeper", () => {
  it.live("its death ends no program; the next one takes it over, and its anchor stands down", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      // a machine that is busy takes its time to start a keeper
      const daemon = yield* Stand.daemon(folder, lease(6000))
      const held = yield* Stand.script(
        daemon,
        "kept",
        "trap 'echo bye; exit 0' TERM; echo before; while :; do sleep 0.1; done"
      )
      yield* Stand.readUntil(held, "before")
      const before = yield* Stand.killKeeper(folder)
      yield* Stand.until(() => Stand.pidOf(folder) !== before)
      yield* Effect.sleep("7 seconds")
      assert.isTrue(Stand.lives(held.pid))
      Stand.kill(held.pid, "SIGTERM")
      assert.strictEqual(yield* Stand.readUntil(held, "bye"), "bye\n")
      assert.deepStrictEqual(yield* held.exited, { code: null, signal: null })
    })
  )

  it.live("its death with nobody back after the lease: the anchor ends the program and all of its group", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder, lease(700))
      const held = yield* Stand.script(daemon, "orphan", "sleep 300 & echo up; wait")
      yield* Stand.readUntil(held, "up")
      yield* daemon.vanish
      yield* Stand.killKeeper(folder)
      assert.isTrue(Stand.lives(held.pid))
      yield* Stand.until(() => !Stand.lives(held.pid) && Stand.session(held.pid).length === 0)
      const next = yield* Stand.daemon(folder)
      const again = (yield* next.keeper.take("orphan"))!
      assert.deepStrictEqual(yield* again.exited, { code: null, signal: null })
      assert.strictEqual(yield* Stand.whole(again), "up\n")
    })
  )

  it.live("the death of both at once is the same", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const held = yield* Stand.script(daemon, "both", "read a; echo $a; read b; echo $b; exit 4")
      yield* held.write("one\n", "1")
      yield* Stand.readUntil(held, "one")
      const pid = Stand.pidOf(folder)
      yield* daemon.vanish
      Stand.kill(pid)
      const next = yield* Stand.daemon(folder)
      const again = (yield* next.keeper.take("both"))!
      assert.strictEqual(again.pid, held.pid)
      yield* again.write("two\n", "2")
      assert.strictEqual(yield* Stand.whole(again), "one\ntwo\n")
    })
  )

  it.live("one that hangs and does not say hello is replaced, and no program ends", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const held = yield* Stand.script(daemon, "long", "echo up; exec sleep 300")
      // before that it is a shell that a next keeper ends
      yield* Stand.readUntil(held, "up")
      const pid = Stand.pidOf(folder)
      yield* daemon.vanish
      Stand.kill(pid, "SIGSTOP")
      const next = yield* Stand.daemon(folder)
      assert.strictEqual((yield* next.keeper.take("long"))?.pid, held.pid)
      assert.isTrue(Stand.lives(held.pid))
      assert.isFalse(Stand.lives(pid))
    })
  )

  it.live("one that is told to stop ends its programs in order and leaves", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const held = yield* Stand.script(
        daemon,
        "run",
        "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.1; done"
      )
      yield* Stand.readUntil(held, "up")
      const pid = Stand.pidOf(folder)
      Stand.kill(pid, "SIGTERM")
      assert.deepStrictEqual(yield* held.exited, { code: null, signal: null })
      yield* Stand.until(() => !Stand.lives(pid))
      assert.strictEqual(yield* Stand.whole(held), "bye\n")
    })
  )

  it.live("two at once in one folder: the second one leaves it alone", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const held = yield* Stand.script(daemon, "run", "exec cat")
      const pid = Stand.pidOf(folder)
      const home = Stand.homeOf(folder)
      const second = spawnSync(process.execPath, [join(home, "keeper.mjs"), home], {
        env: { PATH: Stand.PATH },
        timeout: 60_000
      })
      assert.strictEqual(second.status, 0)
      assert.strictEqual(Stand.pidOf(folder), pid)
      yield* held.write("still\n", "")
      yield* held.write(null, "")
      assert.strictEqual(yield* Stand.whole(held), "still\n")
    })
  )

  it.live("its folder is removed: its programs end, it leaves, and the next daemon begins anew", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const held = yield* Stand.script(daemon, "run", "exec sleep 300")
      const pid = Stand.pidOf(folder)
      yield* daemon.vanish
      rmSync(Stand.homeOf(folder), { recursive: true })
      const next = yield* Stand.daemon(folder)
      const other = yield* Stand.script(next, "run", "echo new")
      assert.strictEqual(yield* Stand.whole(other), "new\n")
      yield* Stand.until(() => !Stand.lives(held.pid) && !Stand.lives(pid))
    })
  )
})

describe("an upgrade", () => {
  const aged = (folder: string) => {
    const file = join(Stand.homeOf(folder), "keeper.mjs")
    writeFileSync(file, `${readFileSync(file, "utf8")}\n// of another version\n`)
  }

  it.live(
    "the old keeper keeps its programs and takes none, the new one takes the next beside it, and the old leaves with its last",
    () =>
      Effect.gen(function* () {
        const folder = yield* Stand.stand
        const daemon = yield* Stand.daemon(folder)
        const old = yield* Stand.script(daemon, "old", "read go; echo $go; exit 3")
        const pid = Stand.pidOf(folder)
        yield* daemon.vanish
        aged(folder)
        const next = yield* Stand.daemon(folder)
        const held = yield* Stand.script(next, "new", "echo new")
        assert.strictEqual(yield* Stand.whole(held), "new\n")
        assert.isTrue(existsSync(Stand.runFolder(folder, "new", 2)))
        const again = (yield* next.keeper.take("old"))!
        assert.strictEqual(again.pid, old.pid)
        yield* again.write("go\n", "")
        assert.strictEqual(yield* Stand.whole(again), "go\n")
        assert.deepStrictEqual(yield* again.exited, { code: 3, signal: null })
        yield* Stand.until(() => !Stand.lives(pid))
        yield* next.keeper.forget((name) => name === "old")
        yield* Stand.until(() => !existsSync(Stand.homeOf(folder)))
      })
  )

  it.live("an old keeper that holds nothing but what has ended is not started again and again", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const old = yield* Stand.script(daemon, "old", "echo said; exit 3")
      yield* Stand.whole(old)
      yield* daemon.vanish
      aged(folder)
      yield* Stand.killKeeper(folder)
      const next = yield* Stand.daemon(folder)
      const again = (yield* next.keeper.take("old"))!
      const pids = new Set<number>()
      for (let n = 0; n < 30; n++) {
        pids.add(Stand.pidOf(folder))
        yield* Effect.sleep("50 millis")
      }
      pids.delete(0)
      assert.isAtMost(pids.size, 1)
      assert.strictEqual(yield* Stand.whole(again), "said\n")
      yield* next.keeper.forget((name) => name === "old")
      yield* Stand.until(() => !existsSync(Stand.homeOf(folder)))
    })
  )
})

describe("the machine", () => {
  it.live("after a reboot a program has ended with nothing known, and a process with its number is left alone", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const held = yield* Stand.script(daemon, "rebooted", "echo before; exec sleep 300")
      yield* Stand.readUntil(held, "before")
      yield* daemon.vanish
      yield* Stand.killKeeper(folder)
      const meta = join(Stand.runFolder(folder, "rebooted"), "meta")
      writeFileSync(meta, JSON.stringify({ ...JSON.parse(readFileSync(meta, "utf8")), boot: "another" }))
      const next = yield* Stand.daemon(folder)
      const again = (yield* next.keeper.take("rebooted"))!
      assert.deepStrictEqual(yield* again.exited, { code: null, signal: null })
      assert.strictEqual(yield* Stand.whole(again), "before\n")
      assert.isTrue(Stand.lives(held.pid))
      Stand.kill(held.pid)
    })
  )

  for (const [code, known] of [
    [0, { code: 0, signal: null }],
    [143, { code: null, signal: null }]
  ] as const) {
    it.live(
      `after a reboot ${code === 0 ? "a success is one" : "a failure counts for nothing: the shutdown may have made it"}`,
      () =>
        Effect.gen(function* () {
          const folder = yield* Stand.stand
          const daemon = yield* Stand.daemon(folder)
          const held = yield* Stand.script(daemon, "over", `read go; exit ${code}`)
          yield* held.write("go\n", "note")
          yield* daemon.vanish
          const exit = join(Stand.runFolder(folder, "over"), "exit")
          yield* Stand.until(() => existsSync(exit))
          yield* Stand.killKeeper(folder)
          const meta = join(Stand.runFolder(folder, "over"), "meta")
          writeFileSync(meta, JSON.stringify({ ...JSON.parse(readFileSync(meta, "utf8")), boot: "another" }))
          const next = yield* Stand.daemon(folder)
          assert.deepStrictEqual(yield* (yield* next.keeper.take("over"))!.exited, known)
        })
    )
  }

  it.live("a process that has a program's number by now is left alone", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const held = yield* Stand.script(daemon, "reused", "exec sleep 300")
      yield* daemon.vanish
      yield* Stand.killKeeper(folder)
      const meta = join(Stand.runFolder(folder, "reused"), "meta")
      writeFileSync(meta, JSON.stringify({ ...JSON.parse(readFileSync(meta, "utf8")), start: "1" }))
      const other = yield* Effect.andThen(Stand.daemon(folder), (next) =>
        Effect.andThen(next.vanish, Stand.owner(folder))
      )
      yield* other.ask({ op: "mark", run: "reused", out: 0, err: 0 })
      yield* Stand.until(() => existsSync(join(Stand.runFolder(folder, "reused"), "exit")))
      assert.isTrue(Stand.lives(held.pid))
      Stand.kill(held.pid)
    })
  )
})
