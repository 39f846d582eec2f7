/** Output: every byte once, whatever waits for whatever: the bound, a daemon that is busy, a line of any length. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { LineSplitter } from "../../../src/config/LineSplitter.ts"
import * as Proof from "../../../src/runs/keeper/Proof.ts"
import * as Stand from "./Stand.ts"

const SMALL = { bound: 3_000_000, segment: 100_000 }
const numbers = (most: number) => Array.from({ length: most }, (_, n) => `${n + 1}\n`).join("")

/** Waits until a file does not grow any more: its writer waits. */
const stopped = (size: () => number) =>
  Effect.gen(function* () {
    for (let before = -1; before !== size() || before === 0;) {
      before = size()
      yield* Effect.sleep("400 millis")
    }
  })

describe("output", () => {
  it.live("a program that nobody reads stops at the bound, and goes on when it is read: every byte once", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder, SMALL)
      const held = yield* Stand.script(daemon, "flood", "seq 1000000; echo done >&2")
      yield* stopped(() => Stand.kept(folder, "flood", "out").size)
      const { size } = Stand.kept(folder, "flood", "out")
      assert.isAtLeast(size, SMALL.bound)
      assert.isBelow(size, 1.2 * SMALL.bound)
      assert.strictEqual(Stand.kept(folder, "flood", "err").size, 0)
      assert.isTrue((yield* Stand.whole(held)) === numbers(1_000_000))
      assert.strictEqual(yield* Stand.whole(held, "err"), "done\n")
    })
  )

  it.live("a mark lets it go on, and frees nothing", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder, SMALL)
      yield* Stand.script(daemon, "marked", "seq 900000")
      yield* daemon.vanish
      const other = yield* Stand.owner(folder)
      yield* stopped(() => Stand.kept(folder, "marked", "out").size)
      const { files, size } = Stand.kept(folder, "marked", "out")
      yield* other.ask({ op: "mark", run: "marked", out: 1_500_000, err: 0 })
      yield* Stand.until(() => Stand.kept(folder, "marked", "out").size > size)
      assert.isAtLeast(Stand.kept(folder, "marked", "out").files, files)
      yield* stopped(() => Stand.kept(folder, "marked", "out").size)
      yield* other.ask({ op: "mark", run: "marked", out: 3_000_000, err: 0 })
      yield* stopped(() => Stand.kept(folder, "marked", "out").size)
      assert.isAtLeast(Stand.kept(folder, "marked", "out").size, 2 * SMALL.bound)
    })
  )

  it.live("a keeper that has died when more than the bound was read lets the program go on", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder, { bound: 200_000, segment: 50_000 })
      const held = yield* Stand.script(daemon, "long", "seq 100000; read go; seq 100001 200000; echo done")
      assert.isTrue((yield* Stand.readUntil(held, "\n100000\n")) === numbers(100_000))
      yield* Stand.killKeeper(folder)
      yield* held.write("go\n", "")
      const rest = yield* Stand.readUntil(held, "done\n")
      assert.isTrue(`${numbers(100_000)}${rest}` === `${numbers(200_000)}done\n`)
    })
  )

  it.live("a line longer than a segment and than a read is one line", () =>
    Effect.gen(function* () {
      const daemon = yield* Stand.daemon(yield* Stand.stand, SMALL)
      const held = yield* Stand.script(daemon, "long", "head -c 500000 /dev/zero | tr '\\0' x; echo; echo short")
      const lines = new LineSplitter(1 << 20)
      const all: Array<number> = []
      for (let chunk = yield* held.read("out"); chunk !== undefined; chunk = yield* held.read("out"))
        for (const { text } of lines.push(chunk)) all.push(text.length)
      for (const { text } of lines.end()) all.push(text.length)
      assert.deepStrictEqual(all, [500_000, 5])
    })
  )

  it.live("20 that write at once are kept apart", () =>
    Effect.gen(function* () {
      const daemon = yield* Stand.daemon(yield* Stand.stand, { segment: 50_000 })
      const names = Array.from({ length: 20 }, (_, n) => `n${n}`)
      const texts = yield* Effect.forEach(
        names,
        (name) =>
          Effect.flatMap(Stand.script(daemon, name, `yes ${name} | head -n 40000`), (held) => Stand.whole(held)),
        { concurrency: "unbounded" }
      )
      for (const [n, text] of texts.entries()) assert.isTrue(text === `n${n}\n`.repeat(40_000), `n${n}: ${text.length}`)
    })
  )

  it.live("what is told while the daemon is busy is told once it listens, and takes no memory of the keeper", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const held = yield* Stand.script(
        daemon,
        "chatty",
        "read go; seq 300000 | while read n; do echo $n; done; sleep 300"
      )
      yield* daemon.vanish
      // a daemon that says hello and reads nothing more
      const hung = yield* Effect.acquireRelease(
        Effect.sync(() => {
          const words = `const s = require("node:net").connect(${JSON.stringify(join(Stand.homeOf(folder), "sock"))});
s.write('{"id":0,"op":"meet","nonce":""}\\n'); s.once("data", (data) => { s.pause(); const { nonce } = JSON.parse(String(data));
const proof = require("node:crypto").createHmac("sha256", ${JSON.stringify(Proof.secretOf(folder))}).update("daemon " + nonce + " 1000").digest("hex");
s.write(JSON.stringify({ id: 1, op: "hello", epoch: 1000, proof }) + '\\n{"id":2,"op":"write","run":"chatty","seq":1,"data":"go\\\\n"}\\n'); setInterval(() => {}, 1000) })`
          return spawn(process.execPath, ["-e", words], { stdio: "ignore" })
        }),
        (child) => Effect.sync(() => child.kill("SIGKILL"))
      )
      const memory = () => Number(/VmRSS:\s+(\d+)/.exec(Stand.textOf(`/proc/${Stand.pidOf(folder)}/status`))?.[1])
      yield* Stand.until(() => Stand.kept(folder, "chatty", "out").size > 10_000)
      const before = memory()
      yield* Stand.until(() => Stand.kept(folder, "chatty", "out").size === numbers(300_000).length)
      assert.isBelow(memory() - before, 25_000)
      hung.kill("SIGKILL")
      const next = yield* Stand.daemon(folder).pipe(Effect.retry({ times: 3 }))
      const again = (yield* next.keeper.take("chatty"))!
      assert.isTrue((yield* Stand.readUntil(again, "\n300000\n")) === numbers(300_000))
      assert.strictEqual(again.pid, held.pid)
    })
  )
})

describe("output that was told and is not there", () => {
  it.live("is read no more, and how its program ends is not known: nobody looks for it in a circle", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder, { segment: 1_000 })
      const held = yield* Stand.script(daemon, "torn", "head -c 5000 /dev/zero; read line; echo more; exec sleep 300")
      yield* Stand.until(() => Stand.kept(folder, "torn", "out").size === 5_000)
      rmSync(join(Stand.runFolder(folder, "torn"), "out.0"))
      yield* held.write("go\n", "")
      assert.strictEqual(yield* Stand.whole(held), "")
      assert.deepStrictEqual(yield* held.exited, { code: null, signal: null })
    })
  )
})

describe("a point", () => {
  const known = { words: "all that is to be known" }
  /** Numbers its inputs, each with 100 kB of output. */
  const TALKER =
    "n=0; while read line; do n=$((n + 1)); head -c 100000 /dev/zero | tr '\\0' x; echo; echo $n $line; done"

  it.live("from there the next daemon reads on, and what came before is gone; a keeper's death changes nothing", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const small = { bound: 200_000, segment: 50_000 }
      let daemon = yield* Stand.daemon(folder, small)
      let held = yield* Stand.script(daemon, "talker", TALKER)
      let out = 0
      let seq = 0
      for (let life = 0; life < 3; life++) {
        for (let n = 0; n < 5; n++) {
          yield* held.write(`${++seq}\n`, `note ${seq}`)
          out += (yield* Stand.readUntil(held, ` ${seq}\n`)).length
          assert.isTrue(held.isDue(out, 0))
          if (n < 4) yield* held.keep({ out, err: 0, seq, known })
          else assert.isAbove(out, Stand.kept(folder, "talker", "out").size)
        }
        yield* Stand.until(() => Stand.kept(folder, "talker", "out").size < 300_000)
        yield* daemon.vanish
        if (life > 0) yield* Stand.killKeeper(folder)
        daemon = yield* Stand.daemon(folder, small)
        held = (yield* daemon.keeper.take("talker"))!
        assert.deepStrictEqual(held.point?.known, known)
        assert.deepStrictEqual(held.inputs, [{ seq, note: `note ${seq}` }])
        const last = yield* Stand.readUntil(held, ` ${seq}\n`)
        assert.strictEqual(held.point!.out + last.length, out)
        assert.isTrue(last === `${"x".repeat(100_000)}\n${seq} ${seq}\n`)
      }
      assert.isBelow(Stand.textOf(join(Stand.runFolder(folder, "talker"), "notes")).split("\n").length, 5)
      yield* held.write(null, "")
      assert.strictEqual(yield* Stand.whole(held), "")
    })
  )

  it.live("never goes back: what came before it is gone", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const held = yield* Stand.script(daemon, "back", "echo one; echo two; exec sleep 300")
      yield* Stand.readUntil(held, "two\n")
      yield* held.keep({ out: 8, err: 0, seq: 0, known })
      yield* held.keep({ out: 4, err: 0, seq: 0, known: "older" })
      yield* daemon.vanish
      const next = yield* Stand.daemon(folder)
      const left = (yield* next.keeper.take("back"))!
      assert.deepInclude(left.point, { out: 8, known })
    })
  )

  it.live("one that cannot be read says so: nothing is made up", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      yield* Stand.script(daemon, "cut", "exec sleep 300")
      yield* daemon.vanish
      writeFileSync(join(Stand.runFolder(folder, "cut"), "point"), '{"format":7,"out":0,"err":0,"seq":0}')
      const next = yield* Stand.daemon(folder)
      assert.isTrue((yield* next.keeper.left)[0]?.isCut)
    })
  )
})
