/** Programs: what one that the keeper starts is given, what comes of it, and what is refused. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import type { Wanted } from "../../../src/runs/keeper/Keeper.ts"
import * as Stand from "./Stand.ts"

const refused = (daemon: Stand.Daemon, wanted: Wanted) =>
  Effect.map(Effect.result(daemon.keeper.spawn(wanted)), (result) =>
    Result.isFailure(result) ? result.failure.code : `started ${result.success.pid}`
  )

describe("a program", () => {
  it.live("its exit code, its output and its errors come whole, and then it is on the disk", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const held = yield* Stand.script(daemon, "code", "echo out; echo err >&2; exit 7")
      assert.deepStrictEqual(yield* held.exited, { code: 7, signal: null })
      assert.strictEqual(yield* Stand.whole(held), "out\n")
      assert.strictEqual(yield* Stand.whole(held, "err"), "err\n")
      const file = join(Stand.runFolder(folder, "code"), "exit")
      yield* Stand.until(() => existsSync(file))
      const record = JSON.parse(readFileSync(file, "utf8"))
      assert.deepInclude(record, { code: 7, signal: null, out: 4, err: 4 })
    })
  )

  it.live("a signal that ends it is told as a signal", () =>
    Effect.gen(function* () {
      const daemon = yield* Stand.daemon(yield* Stand.stand)
      const held = yield* Stand.script(daemon, "signal", "kill -SEGV $$")
      assert.deepStrictEqual(yield* held.exited, { code: null, signal: "SIGSEGV" })
    })
  )

  it.live("it opens /dev/stderr and /dev/stdout anew, and truncates nothing", () =>
    Effect.gen(function* () {
      const daemon = yield* Stand.daemon(yield* Stand.stand)
      const text = "echo one >&2; echo two >/dev/stderr; echo three >&2; echo four >/dev/stdout"
      const held = yield* Stand.script(daemon, "reopen", text)
      assert.strictEqual(yield* Stand.whole(held, "err"), "one\ntwo\nthree\n")
      assert.strictEqual(yield* Stand.whole(held), "four\n")
    })
  )

  it.live(
    "quotes, newlines and UTF-8 in its environment and arguments, and names that no shell exports, come as they are",
    () =>
      Effect.gen(function* () {
        const daemon = yield* Stand.daemon(yield* Stand.stand)
        const odd = `it's "odd" $HOME \`id\` \\ \n\ttab é\u{1f600}`
        const env = { PATH: Stand.PATH, ODD: odd, "an.odd-name": odd, "1st": "one", EMPTY: "" }
        const argv = [
          process.execPath,
          "-e",
          "console.log(JSON.stringify([process.env, process.argv.slice(1)]))",
          odd,
          ""
        ]
        const held = yield* daemon.keeper.spawn(Stand.wanted("odd", argv, { env }))
        const [seen, words] = JSON.parse(yield* Stand.whole(held))
        delete seen.PWD
        assert.deepStrictEqual(seen, env)
        assert.deepStrictEqual(words, [odd, ""])
      })
  )

  it.live("240 kB of environment and arguments come whole; a word that the system would refuse is refused", () =>
    Effect.gen(function* () {
      const daemon = yield* Stand.daemon(yield* Stand.stand)
      const big = "y".repeat(120_000)
      const env = { PATH: Stand.PATH, BIG: big }
      const argv = ["sh", "-c", "echo ${#BIG} ${#1}", "sh", big]
      const held = yield* daemon.keeper.spawn(Stand.wanted("big", argv, { env }))
      assert.strictEqual(yield* Stand.whole(held), "120000 120000\n")
      const word = "x".repeat(128 * 1024)
      assert.strictEqual(yield* refused(daemon, Stand.wanted("word", ["true", word])), "E2BIG")
      const many = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`V${n}`, "x".repeat(100_000)]))
      assert.strictEqual(yield* refused(daemon, Stand.wanted("many", ["true"], { env: many })), "E2BIG")
    })
  )

  it.live("it leads a session and a group of its own, with the daemon's umask, folder and PATH", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const held = yield* Stand.script(daemon, "session", "ps -o pgid=,sid= -p $$; echo $$; umask; pwd", {
        cwd: folder
      })
      const words = (yield* Stand.whole(held)).trim().split(/\s+/)
      const pid = `${held.pid}`
      const umask = process.umask().toString(8).padStart(4, "0")
      assert.deepStrictEqual(words, [pid, pid, pid, umask, folder])
    })
  )

  it.live("a deaf one reads the end of its input at once", () =>
    Effect.gen(function* () {
      const daemon = yield* Stand.daemon(yield* Stand.stand)
      const held = yield* Stand.script(daemon, "deaf", "wc -c", { isDeaf: true })
      assert.strictEqual((yield* Stand.whole(held)).trim(), "0")
    })
  )

  it.live("descriptors are handed to it, binary and to their end, and no file of them is left", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const bytes = Uint8Array.from({ length: 200_000 }, (_, n) => (n * 7919) % 256)
      const text = "cat <&3 | sha256sum; cat <&4"
      const handed = [bytes, Buffer.from("second")]
      const held = yield* Stand.script(daemon, "handed", text, { handed })
      const sum = createHash("sha256").update(bytes).digest("hex")
      assert.strictEqual(yield* Stand.whole(held), `${sum}  -\nsecond`)
      assert.deepStrictEqual(
        readdirSync(Stand.runFolder(folder, "handed")).filter((name) => name.startsWith("handed")),
        []
      )
      const eight = Array.from({ length: 8 }, () => bytes)
      assert.strictEqual(yield* refused(daemon, Stand.wanted("eight", ["true"], { handed: eight })), "EINVAL")
    })
  )

  it.live("20 that are asked for at once all start, and all end", () =>
    Effect.gen(function* () {
      const daemon = yield* Stand.daemon(yield* Stand.stand)
      const numbers = Array.from({ length: 20 }, (_, n) => n)
      const texts = yield* Effect.forEach(
        numbers,
        (n) => Effect.flatMap(Stand.script(daemon, `burst${n}`, `echo ${n}`), (held) => Stand.whole(held)),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        texts,
        numbers.map((n) => `${n}\n`)
      )
    })
  )
})

describe("what cannot be started is refused with the system's code", () => {
  const cases: ReadonlyArray<readonly [string, Wanted]> = [
    ["ENOENT", Stand.wanted("none", ["no-such-program"])],
    ["ENOENT", Stand.wanted("none", ["true"], { cwd: "/no-such" })],
    ["EACCES", Stand.wanted("none", ["/etc/passwd"])],
    ["EACCES", Stand.wanted("none", ["/etc"])],
    ["ENOTDIR", Stand.wanted("none", ["true"], { cwd: "/etc/passwd" })],
    ["ENOTDIR", Stand.wanted("none", ["/etc/passwd/x"])],
    ["EINVAL", Stand.wanted("none", ["true", "a\0b"])],
    ["EINVAL", Stand.wanted("none", ["true"], { env: { A: "a\0b" } })],
    ["EINVAL", Stand.wanted("a name", ["true"])],
    ["EINVAL", Stand.wanted("../none", ["true"])],
    ["EINVAL", Stand.wanted("..", ["true"])],
    ["EINVAL", Stand.wanted("slot-1-1", ["true"])]
  ]
  it.live("ENOENT, EACCES, ENOTDIR, EINVAL; and nothing is left of it", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const codes = yield* Effect.forEach(cases, ([, wanted]) => refused(daemon, wanted))
      assert.deepStrictEqual(
        codes,
        cases.map(([code]) => code)
      )
      const left = readdirSync(join(Stand.homeOf(folder), "runs")).filter((name) => !name.startsWith("slot-"))
      assert.deepStrictEqual(left, [])
    })
  )

  it.live("a name is used once, also when it is asked for twice at once", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      yield* Stand.script(daemon, "once", "exec sleep 300")
      assert.strictEqual(yield* refused(daemon, Stand.wanted("once", ["true"])), "EEXIST")
      yield* daemon.vanish
      const other = yield* Stand.owner(folder)
      const order = { op: "spawn", script: "exec sleep 300 >out 2>err" } as const
      // more than there are slots: they wait at once
      const names = ["a", "b", "c", "twice", "twice"]
      const replies = yield* Effect.forEach(names, (run) => other.ask({ ...order, run }, null), {
        concurrency: "unbounded"
      })
      const said = replies.map(({ error }) => error)
      assert.deepStrictEqual(said.slice(0, 3), [undefined, undefined, undefined])
      // whichever of the two has a slot first
      assert.sameMembers(said.slice(3), [undefined, "EEXIST"])
    })
  )
})

describe("nobody else sees it", () => {
  it.live("environment, arguments and inputs are in no file; the folders are 0700 and the files 0600", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      const secret = "s3cret-that-no-disk-sees"
      const env = { PATH: Stand.PATH, TOKEN: secret }
      const argv = ["/bin/sh", "-c", "read line; echo heard; exec sleep 300", secret]
      const held = yield* daemon.keeper.spawn(Stand.wanted("secret", argv, { env }))
      yield* held.write(`${secret}\n`, "a note")
      yield* Stand.readUntil(held, "heard")
      assert.strictEqual(spawnSync("grep", ["-rl", "-D", "skip", secret, folder]).stdout.toString(), "")
      const home = Stand.homeOf(folder)
      const all = readdirSync(home, { recursive: true, encoding: "utf8" }).map((name) => join(home, name))
      const modes = [home, ...all].map((file) => [file, (statSync(file).mode & 0o777).toString(8)] as const)
      for (const [file, mode] of modes) {
        const isFolder = statSync(file).isDirectory() || statSync(file).isSocket()
        assert.strictEqual(mode, isFolder ? "700" : "600", file)
      }
    })
  )
})
