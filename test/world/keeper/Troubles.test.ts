/** Troubles: a full disk, no more descriptors, a keeper that hangs, a peer that sends anything: no program is harmed. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Result } from "effect"
import { spawnSync } from "node:child_process"
import { readdirSync } from "node:fs"
import * as net from "node:net"
import { join } from "node:path"
import * as Stand from "./Stand.ts"

const numbers = (most: number) => Array.from({ length: most }, (_, n) => `${n + 1}\n`).join("")

/** True where the machine does it; else says so, for a person who counts the tests. */
const does = (what: string, ...argv: ReadonlyArray<string>): boolean => {
  const [program = "", ...args] = argv
  const { error, status, stderr } = spawnSync(program, args)
  if (status === 0) return true
  console.warn(`SKIPPED: ${what}: ${argv.join(" ")}: ${error?.message ?? stderr}`)
  return false
}

const mounted = (folder: string, size: string) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      does("a full disk", "mount", "-t", "tmpfs", "-o", `size=${size},mode=700`, "agentd-test", folder)
    ),
    (isMounted) =>
      Effect.sync(() => {
        if (isMounted) spawnSync("umount", ["-l", folder])
      })
  )

const memoryOf = (pid: number) => Number(/VmRSS:\s+(\d+)/.exec(Stand.textOf(`/proc/${pid}/status`))?.[1])

/** Echoes each line. */
const echo = Effect.fnUntraced(function* (daemon: Stand.Daemon, name: string) {
  const held = yield* Stand.script(daemon, name, "exec cat")
  let count = 0
  return Effect.gen(function* () {
    const line = `line ${++count}\n`
    yield* held.write(line, "")
    assert.strictEqual(yield* Stand.readUntil(held, line), line)
  })
})

describe("a full disk", () => {
  it.live("the program waits, every byte comes once there is room, and so does its exit", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      if (!(yield* mounted(folder, "2m"))) return
      const daemon = yield* Stand.daemon(folder, { segment: 100_000 })
      const held = yield* Stand.script(daemon, "flood", "read go; seq 500000; echo done >&2; exit 3")
      yield* held.write("go\n", "")
      const kept = () => Stand.kept(folder, "flood", "out").size
      const free = () => Number(spawnSync("df", ["--output=avail", folder]).stdout.toString().split("\n")[1])
      yield* Stand.until(() => free() === 0)
      yield* Effect.sleep("1500 millis")
      const full = kept()
      assert.isBelow(full, 2_100_000)
      assert.isTrue(Stand.lives(held.pid))
      assert.isTrue(does("room", "mount", "-o", "remount,size=20m", folder))
      assert.isTrue((yield* Stand.whole(held)) === numbers(500_000))
      assert.strictEqual(yield* Stand.whole(held, "err"), "done\n")
      assert.deepStrictEqual(yield* held.exited, { code: 3, signal: null })
    })
  )
})

describe("no more descriptors", () => {
  it.live("a program is refused by that name, the others go on, and once there are some again it starts", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const echoes = yield* echo(daemon, "other")
      yield* echoes
      const pid = Stand.pidOf(folder)
      // all slots are there
      yield* Stand.until(() => readdirSync(join(Stand.homeOf(folder), "runs")).length >= 3)
      yield* Effect.sleep("300 millis")
      const limited = (most: string) => does("no descriptors", "prlimit", "--pid", `${pid}`, `--nofile=${most}`)
      const open = new Set(readdirSync(`/proc/${pid}/fd`).map(Number))
      let lowest = 0
      while (open.has(lowest)) lowest++
      if (!limited(`${lowest + 2}:`)) return
      const codes: Array<string> = []
      for (let n = 0; n < 6; n++) {
        const result = yield* Effect.result(Stand.script(daemon, `more${n}`, "exec sleep 300"))
        codes.push(Result.isFailure(result) ? result.failure.code : "started")
        yield* echoes
      }
      assert.include(codes, "EMFILE")
      assert.deepStrictEqual(
        codes.filter((code) => code !== "started" && code !== "EMFILE"),
        []
      )
      limited("1024:")
      const held = yield* Stand.script(daemon, "later", "echo up; exec sleep 300")
      yield* Stand.readUntil(held, "up")
      yield* echoes
    })
  )
})

describe("a keeper that hangs", () => {
  it.live("in the midst of output, with its daemon there: it is noticed and replaced, and every byte comes once", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder, { look: Duration.millis(200) })
      const text =
        "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo $i; [ $((i % 100)) -gt 0 ] || sleep 0.02; done; read end"
      const held = yield* Stand.script(daemon, "busy", text)
      yield* Stand.readUntil(held, "\n500\n")
      const pid = Stand.pidOf(folder)
      Stand.kill(pid, "SIGSTOP")
      const rest = yield* Stand.readUntil(held, "\n3000\n")
      assert.isTrue(numbers(3000).endsWith(rest))
      assert.isFalse(Stand.lives(pid))
      assert.notStrictEqual(Stand.pidOf(folder), pid)
      assert.isTrue(Stand.lives(held.pid))
      yield* held.write("end\n", "")
      assert.strictEqual(yield* Stand.whole(held), "")
    })
  )
})

/** A connection by nobody: sends, and goes once it has so many answers, or is cut off. */
const sends = (folder: string, answers: number, ...pieces: ReadonlyArray<string | Uint8Array>) =>
  Effect.callback<string>((resume) => {
    const socket = net.connect(join(Stand.homeOf(folder), "sock"))
    let heard = ""
    socket.on("error", () => {})
    socket.on("data", (chunk) => {
      heard += chunk
      if (heard.split("\n").length > answers) socket.end()
    })
    socket.on("close", () => resume(Effect.succeed(heard)))
    for (const piece of pieces) socket.write(piece)
    if (answers === 0) socket.end()
  })

describe("a peer that sends anything", () => {
  it.live("is refused, takes no memory, and harms no program", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const echoes = yield* echo(daemon, "other")
      yield* echoes
      const before = memoryOf(Stand.pidOf(folder))
      const binary = Uint8Array.from({ length: 3_000 }, (_, n) => (n * 7919) % 256)
      const deep = `${"[".repeat(2_000)}${"]".repeat(2_000)}\n`
      assert.strictEqual(yield* sends(folder, 0, "x".repeat(30_000_000)), "")
      assert.strictEqual(yield* sends(folder, 0, '{"op":"hello"'), "")
      yield* sends(folder, 1, binary, "\n")
      for (const line of ["null\n", "5\n", '"x"\n', "{}\n", deep, '{"id":1,"op":"constructor"}\n', '{"op":"spawn"}\n'])
        assert.include(yield* sends(folder, 1, line), "error", line)
      for (const epoch of ['"1"', "1.5", "null", "1e400", "{}"])
        assert.include(yield* sends(folder, 1, `{"id":1,"op":"hello","epoch":${epoch}}\n`), "EINVAL", epoch)
      const many = yield* sends(folder, 10_000, '{"op":"mark"}\n'.repeat(10_000))
      assert.strictEqual(many.split("\n").length, 10_001)
      assert.isBelow(memoryOf(Stand.pidOf(folder)) - before, 60_000)
      yield* echoes
    })
  )

  it.live("that is its owner: each order is refused that is none, and the next one is heard", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      yield* Stand.script(daemon, "other", "exec cat")
      yield* daemon.vanish
      const other = yield* Stand.owner(folder)
      const ask = (order: object) => Effect.map(other.ask(order as never), ({ error }) => error)
      const spawns = [
        {},
        { run: 5 },
        { run: ["a"], script: "x" },
        { run: "a", script: 5 },
        { run: "a", script: "x", handed: "x" }
      ]
      for (const more of [...spawns, { run: "a", script: "x", handed: [5] }, { run: "../a", script: "x" }])
        assert.isString(yield* ask({ op: "spawn", ...more }), JSON.stringify(more))
      for (const more of [{}, { seq: "1" }, { seq: 1.5, data: "" }, { seq: 1, data: 5 }, { seq: 1, data: {} }])
        assert.strictEqual(yield* ask({ op: "write", run: "other", ...more }), "EINVAL", JSON.stringify(more))
      for (const run of [undefined, null, 5, {}, "__proto__", "none"])
        assert.strictEqual(yield* ask({ op: "write", run, seq: 1, data: "" }), "unknown", String(run))
      assert.strictEqual(yield* ask({ op: "toString", run: "other" }), "no such op")
      assert.isUndefined(yield* ask({ op: "mark", run: "other", out: "x", err: { a: 1 } }))
      other.close()
      const next = yield* Stand.daemon(folder)
      const held = (yield* next.keeper.take("other"))!
      yield* held.write("still\n", "")
      yield* held.write(null, "")
      assert.strictEqual(yield* Stand.whole(held), "still\n")
    })
  )
})

describe("a program that does not read", () => {
  it.live("8 MB wait for it; what comes then is told that it is busy, and is taken once it reads", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      yield* Stand.script(daemon, "deaf", "while [ ! -e go ]; do sleep 0.05; done; exec wc -c", { cwd: folder })
      yield* daemon.vanish
      const other = yield* Stand.owner(folder)
      const write = (seq: number, data: string | null) => other.ask({ op: "write", run: "deaf", seq, data }, null)
      const size = 9 << 20
      const first = yield* Effect.forkChild(write(1, "x".repeat(size)), { startImmediately: true })
      yield* Effect.sleep("100 millis")
      assert.strictEqual((yield* write(2, "y")).error, "busy")
      spawnSync("touch", [join(folder, "go")])
      assert.strictEqual((yield* Fiber.join(first)).seq, 1)
      assert.strictEqual((yield* write(2, "y")).seq, 2)
      assert.strictEqual((yield* write(3, null)).seq, 3)
      other.close()
      const next = yield* Stand.daemon(folder)
      const held = (yield* next.keeper.take("deaf"))!
      assert.strictEqual((yield* Stand.whole(held)).trim(), `${size + 1}`)
    })
  )
})
