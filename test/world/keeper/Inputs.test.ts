/** Inputs: each is given once, in order, whoever dies; and what was given is known to the next daemon, with its note. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Stand from "./Stand.ts"

const LONG = `${"z".repeat(300_000)}\n`

describe("inputs", () => {
  it.live(
    "one with a known number is taken once, one with a gap is refused, and the close is the end of the input",
    () =>
      Effect.gen(function* () {
        const folder = yield* Stand.stand
        const daemon = yield* Stand.daemon(folder)
        yield* Stand.script(daemon, "cat", "cat; echo closed")
        yield* daemon.vanish
        const other = yield* Stand.owner(folder)
        const write = (seq: number, data: string | null) => other.ask({ op: "write", run: "cat", seq, data })
        assert.strictEqual((yield* write(1, "a\n")).seq, 1)
        assert.strictEqual((yield* write(1, "a\n")).seq, 1)
        assert.deepInclude(yield* write(3, "c\n"), { error: "gap", seq: 1 })
        assert.strictEqual((yield* write(2, "b\n")).seq, 2)
        assert.strictEqual((yield* write(3, null)).seq, 3)
        other.close()
        const next = yield* Stand.daemon(folder)
        const held = yield* next.keeper.take("cat")
        assert.strictEqual(yield* Stand.whole(held!), "a\nb\nclosed\n")
      })
  )

  it.live("400 kB for a program that does not read yet come whole, and the writer waits", () =>
    Effect.gen(function* () {
      const daemon = yield* Stand.daemon(yield* Stand.stand)
      const held = yield* Stand.script(daemon, "slow", "read go; sleep 0.5; exec wc -c")
      yield* held.write("go\n", "")
      for (let n = 0; n < 40; n++) yield* held.write(`${"z".repeat(9_999)}\n`, "")
      yield* held.write(null, "")
      assert.strictEqual((yield* Stand.whole(held)).trim(), "400000")
    })
  )

  it.live(
    "what a program that does not read has not taken is waited for as long as it lives, and is not given up after seconds",
    () =>
      Effect.gen(function* () {
        const daemon = yield* Stand.daemon(yield* Stand.stand)
        const held = yield* Stand.script(daemon, "late", "sleep 6; exec wc -c")
        const first = yield* Effect.forkChild(held.write(LONG, ""), { startImmediately: true })
        yield* Effect.sleep("5500 millis")
        assert.isUndefined(first.pollUnsafe())
        yield* held.write(LONG, "")
        yield* held.write(null, "")
        assert.strictEqual((yield* Stand.whole(held)).trim(), `${2 * LONG.length}`)
      })
  )

  it.live("one that is given all its input, and the end of it, before its shell comes to begin it, has all of it", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const leaders = () => Stand.namedIn(folder).filter((pid) => Stand.session(pid).includes(pid))
      const shells = () => leaders().filter((pid) => Stand.textOf(`/proc/${pid}/cmdline`).includes("slot.sh"))
      // started with the first program
      yield* Stand.script(daemon, "first", "exec sleep 100")
      yield* Stand.until(() => shells().length > 0)
      yield* Effect.sleep("200 millis")
      const busy = shells()
      busy.forEach((pid) => Stand.kill(pid, "SIGSTOP"))
      const held = yield* Stand.script(daemon, "late", "cat; echo end")
      yield* held.write("x\n", "")
      yield* held.write(null, "")
      yield* Effect.sleep("100 millis")
      busy.forEach((pid) => Stand.kill(pid, "SIGCONT"))
      assert.strictEqual(yield* Stand.whole(held), "x\nend\n")
    })
  )

  it.live("writing to one that has ended waits for nothing", () =>
    Effect.gen(function* () {
      const daemon = yield* Stand.daemon(yield* Stand.stand)
      const held = yield* Stand.script(daemon, "gone", "exec true")
      yield* held.exited
      yield* held.write(LONG, "late")
      yield* held.write(null, "")
      assert.strictEqual(yield* Stand.whole(held), "")
    })
  )

  it.live("a writer that is interrupted while no keeper is there leaves no gap: what comes after it is given", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const held = yield* Stand.script(daemon, "cat", "exec cat")
      yield* held.write("one\n", "")
      yield* Stand.readUntil(held, "one\n")
      yield* Stand.killKeeper(folder)
      yield* Effect.yieldNow
      const writing = yield* Effect.forkChild(held.write("never\n", ""), { startImmediately: true })
      yield* Fiber.interrupt(writing)
      yield* held.write("two\n", "")
      yield* held.write(null, "")
      assert.include(yield* Stand.whole(held), "two\n")
    })
  )
})

describe("the next daemon", () => {
  it.live("knows what was given, with its note, once and in order", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const held = yield* Stand.script(daemon, "cat", "exec cat")
      yield* held.write("one\n", "first note")
      yield* held.write("two\n", "")
      yield* held.write("three\n", "third\nnote")
      yield* Stand.readUntil(held, "three\n")
      yield* daemon.vanish
      const next = yield* Stand.daemon(folder)
      const again = (yield* next.keeper.take("cat"))!
      assert.deepStrictEqual(again.inputs, [
        { seq: 1, note: "first note" },
        { seq: 2, note: "" },
        { seq: 3, note: "third note" }
      ])
      assert.isUndefined(yield* next.keeper.take("cat"))
      yield* again.write("four\n", "fourth")
      yield* again.write(null, "")
      assert.strictEqual(yield* Stand.whole(again), "one\ntwo\nthree\nfour\n")
    })
  )

  it.live("knows also what is in flight: the pipe does not have all of it yet", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const text = "read line; echo $line; while [ ! -e go ]; do sleep 0.05; done; read more; exec wc -c"
      const held = yield* Stand.script(daemon, "stuck", text, { cwd: folder })
      yield* held.write("one\n", "one")
      yield* Stand.readUntil(held, "one\n")
      const writing = yield* Effect.forkChild(held.write(LONG, "long"), { startImmediately: true })
      yield* Effect.sleep("500 millis")
      yield* daemon.vanish
      yield* Fiber.interrupt(writing)
      const next = yield* Stand.daemon(folder)
      const again = (yield* next.keeper.take("stuck"))!
      assert.deepStrictEqual(again.inputs, [
        { seq: 1, note: "one" },
        { seq: 2, note: "long" }
      ])
      writeFileSync(join(folder, "go"), "")
      yield* again.write("end\n", "end")
      yield* again.write(null, "")
      assert.strictEqual((yield* Stand.whole(again)).replace(/\s+/g, " "), "one 4 ")
    })
  )

  it.live("and so does the next keeper: what it had taken is not taken again", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const held = yield* Stand.script(daemon, "cat", "exec cat")
      yield* held.write("one\n", "first")
      yield* daemon.vanish
      yield* Stand.killKeeper(folder)
      const next = yield* Stand.daemon(folder)
      const again = (yield* next.keeper.take("cat"))!
      assert.deepStrictEqual(again.inputs, [{ seq: 1, note: "first" }])
      yield* again.write("two\n", "second")
      yield* again.write(null, "")
      assert.strictEqual(yield* Stand.whole(again), "one\ntwo\n")
      // its exit code went with the keeper that it was a child of
      assert.deepStrictEqual(yield* again.exited, { code: null, signal: null })
    })
  )

  it.live("a program whose input was closed before the keeper died stays closed", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const held = yield* Stand.script(
        daemon,
        "closed",
        "cat; echo closed; trap 'exit 0' TERM; while :; do sleep 0.1; done"
      )
      yield* held.write(null, "")
      yield* Stand.readUntil(held, "closed\n")
      yield* Stand.killKeeper(folder)
      yield* Stand.until(() => Stand.lives(Stand.pidOf(folder)))
      yield* held.write("more\n", "")
      Stand.kill(held.pid, "SIGTERM")
      assert.strictEqual(yield* Stand.whole(held), "")
    })
  )
})
