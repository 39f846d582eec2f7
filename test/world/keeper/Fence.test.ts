/**
 * Keeper: who may own it. A word or a file of anybody else's takes it from nobody; one that is lost is replaced, its
 * programs go on, and until then it says what is wrong.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import * as net from "node:net"
import { join } from "node:path"
import * as Stand from "./Stand.ts"

const LARGEST = Number.MAX_SAFE_INTEGER

/** The first answer to a line of anybody's. */
const said = (folder: string, line: string): Effect.Effect<string> =>
  Effect.callback((resume) => {
    const socket = net.connect(join(Stand.homeOf(folder), "sock"))
    const end = (heard: string) => (socket.destroy(), resume(Effect.succeed(heard)))
    socket.on("error", () => end(""))
    socket.on("close", () => end(""))
    socket.once("data", (data) => end(String(data)))
    socket.write(`${line}\n`)
  })

const goesOn = Effect.fnUntraced(function* (daemon: Stand.Daemon, name: string) {
  const held = yield* Stand.script(daemon, name, "echo up; exec sleep 300")
  yield* Stand.readUntil(held, "up")
})

/** A program that a daemon leaves. */
const leaves = Effect.fnUntraced(function* (folder: string) {
  const daemon = yield* Stand.daemon(folder)
  const held = yield* Stand.script(daemon, "long", "echo up; exec sleep 300")
  yield* Stand.readUntil(held, "up")
  yield* daemon.vanish
  return held.pid
})

const taken = Effect.fnUntraced(function* (folder: string, pid: number) {
  const next = yield* Stand.daemon(folder)
  assert.strictEqual((yield* next.keeper.take("long"))?.pid, pid)
  assert.isTrue(Stand.lives(pid))
  yield* goesOn(next, "another")
})

describe("a hello of anybody else's", () => {
  for (const epoch of [LARGEST, LARGEST + 1, 2, 1000, -1, 0]) {
    it.live(`${epoch}: fences no daemon, neither the one that is there nor the next`, () =>
      Effect.gen(function* () {
        const folder = yield* Stand.stand
        const daemon = yield* Stand.daemon(folder)
        const held = yield* Stand.script(daemon, "long", "echo up; exec sleep 300")
        yield* Stand.readUntil(held, "up")
        const keeper = Stand.pidOf(folder)
        for (const more of ["", `,"proof":"${"0".repeat(64)}"`, `,"proof":7`, `,"proof":null`])
          assert.include(yield* said(folder, `{"id":1,"op":"hello","epoch":${epoch}${more}}`), "error")
        yield* goesOn(daemon, "beside")
        yield* daemon.vanish
        assert.include(yield* said(folder, `{"id":1,"op":"hello","epoch":${epoch}}`), "error")
        yield* taken(folder, held.pid)
        assert.strictEqual(Stand.pidOf(folder), keeper)
      })
    )
  }
})

describe("a damaged epoch", () => {
  for (const text of [String(LARGEST), "1e308", "Infinity", "-5", "not a number", "", "\0".repeat(64)]) {
    it.live(`${JSON.stringify(text).slice(0, 20)}: whoever holds programs is had by the next daemon`, () =>
      Effect.gen(function* () {
        const folder = yield* Stand.stand
        const pid = yield* leaves(folder)
        writeFileSync(join(Stand.homeOf(folder), "epoch"), text)
        yield* Effect.scoped(taken(folder, pid))
        // so it is by a keeper that reads it at its start
        writeFileSync(join(Stand.homeOf(folder), "epoch"), text)
        yield* Stand.killKeeper(folder)
        yield* Effect.scoped(
          Effect.gen(function* () {
            const next = yield* Stand.daemon(folder)
            yield* goesOn(next, "third")
          })
        )
      })
    )
  }

  it.live("a folder of that name: the same", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const pid = yield* leaves(folder)
      rmSync(join(Stand.homeOf(folder), "epoch"), { force: true })
      mkdirSync(join(Stand.homeOf(folder), "epoch"))
      yield* taken(folder, pid)
    })
  )
})

describe("a keeper of an earlier version, which knows no proof", () => {
  /** In that folder, with a program. */
  const older = Effect.fnUntraced(function* (folder: string) {
    const home = Stand.homeOf(folder)
    mkdirSync(home, { recursive: true, mode: 0o700 })
    cpSync(new URL("../../fixtures/keeper/2", import.meta.url), home, { recursive: true })
    const log = openSync(join(home, "log"), "a")
    const words = [join(home, "keeper.mjs"), home, '{"lease":300000}']
    const child = spawn(process.execPath, words, { cwd: "/", env: { PATH: Stand.PATH }, stdio: ["ignore", log, log] })
    yield* Effect.addFinalizer(() => Effect.sync(() => child.kill("SIGKILL")))
    yield* Stand.until(() => existsSync(join(home, "sock")))
    const link = yield* Stand.link(folder)
    assert.isUndefined((yield* link.ask({ op: "hello", epoch: 1 } as never)).error)
    const { pid = 0 } = yield* link.ask({ op: "spawn", run: "long", script: "exec sleep 300 </dev/null\n" }, null)
    yield* Stand.until(() => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("sleep"))
    link.close()
    return pid
  })

  it.live("is taken up, keeps what it has, and takes no more", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const pid = yield* older(folder)
      const keeper = Stand.pidOf(folder)
      yield* taken(folder, pid)
      assert.strictEqual(Stand.pidOf(folder), keeper)
      assert.isTrue(existsSync(Stand.runFolder(folder, "another", 2)))
    })
  )

  it.live("that somebody has fenced is replaced, and its program goes on", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const pid = yield* older(folder)
      const keeper = Stand.pidOf(folder)
      assert.notInclude(yield* said(folder, `{"id":1,"op":"hello","epoch":${LARGEST}}`), "error")
      yield* taken(folder, pid)
      assert.isFalse(Stand.lives(keeper))
    })
  )
})

describe("a keeper that cannot be had", () => {
  /** Listens under the keeper's name. */
  const impostor = (folder: string, answers: (line: string) => string) =>
    Effect.acquireRelease(
      Effect.callback<net.Server>((resume) => {
        const file = join(Stand.homeOf(folder), "sock")
        rmSync(file, { force: true })
        const server = net.createServer((socket) => {
          socket.on("error", () => {})
          socket.on("data", (data) => void socket.write(answers(String(data))))
        })
        server.listen(file, () => resume(Effect.succeed(server)))
      }),
      (server) => Effect.sync(() => server.close())
    )
  const flattering = (line: string) => {
    const { id } = JSON.parse(line.split("\n")[0]!)
    return `${JSON.stringify({ re: id, epoch: 1, nonce: "0".repeat(32), proof: "0".repeat(64), pid: 1, version: 3, runs: [] })}\n`
  }

  it.live("since somebody else answers in its place: another one takes its place, and its program goes on", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const pid = yield* leaves(folder)
      yield* impostor(folder, flattering)
      yield* taken(folder, pid)
    })
  )

  it.live("says so, and since when, and no more once it is had", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      assert.isUndefined(daemon.keeper.trouble())
      yield* goesOn(daemon, "first")
      yield* impostor(folder, () => "")
      Stand.kill(Stand.pidOf(folder))
      yield* Stand.until(() => daemon.keeper.trouble() !== undefined)
      assert.strictEqual(daemon.keeper.trouble()!.message, "it does not answer")
      assert.isAbove(daemon.keeper.trouble()!.since, 0)
      yield* Stand.until(() => daemon.keeper.trouble() === undefined)
      yield* goesOn(daemon, "second")
    })
  )

  it.live(
    "since its folder is no folder: says so, tells the end of what ended meanwhile, and goes on once it can",
    () =>
      Effect.gen(function* () {
        const folder = yield* Stand.stand
        const daemon = yield* Stand.daemon(folder)
        const held = yield* Stand.script(daemon, "long", "echo up; exec sleep 300")
        const other = yield* Stand.script(daemon, "other", "echo up; exec sleep 300")
        yield* Stand.readUntil(held, "up")
        const home = Stand.homeOf(folder)
        const keeper = Stand.pidOf(folder)
        renameSync(home, `${home}.aside`)
        writeFileSync(home, "")
        Stand.kill(keeper)
        yield* Stand.until(() => daemon.keeper.trouble()?.message.startsWith("EEXIST") === true)
        process.kill(-held.pid, "SIGKILL")
        assert.deepStrictEqual(yield* held.exited, { code: null, signal: null })
        assert.isFalse(other.isWhole)
        rmSync(home)
        renameSync(`${home}.aside`, home)
        yield* Stand.until(() => daemon.keeper.trouble() === undefined)
        yield* goesOn(daemon, "next")
        assert.isFalse(other.isWhole)
      })
  )

  it.live("since it hangs while it is asked for a program: it is replaced soon, and the program begins", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const daemon = yield* Stand.daemon(folder)
      yield* goesOn(daemon, "first")
      Stand.kill(Stand.pidOf(folder), "SIGSTOP")
      // whoever asked may ask again: the one that hung has started nothing
      const asked = yield* Effect.flip(Stand.script(daemon, "second", "exit 0"))
      assert.strictEqual(asked.code, "keeper")
      yield* goesOn(daemon, "third")
    })
  )
})

describe("the secret", () => {
  it.live("is for its owner alone, is made anew where it is damaged, and no program is lost by that", () =>
    Effect.gen(function* () {
      const folder = yield* Stand.stand
      const file = join(folder, "secret")
      const pid = yield* leaves(folder)
      assert.strictEqual(statSync(file).mode & 0o777, 0o600)
      const first = readFileSync(file, "utf8")
      assert.notInclude(readFileSync(join(Stand.homeOf(folder), "epoch"), "utf8"), first.trim())
      writeFileSync(file, "short")
      yield* taken(folder, pid)
      assert.notStrictEqual(readFileSync(file, "utf8"), "short")
    })
  )
})
