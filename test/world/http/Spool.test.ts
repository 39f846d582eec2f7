import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Spool from "../../../src/api/http/Spool.ts"
import { StorageError } from "../../../src/core/event-log/EventLog.ts"
import { Plates } from "../../../src/plates/Plates.ts"
import * as PlatesDouble from "./PlatesDouble.ts"

const eventually = (holds: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (holds() ? Effect.void : Effect.andThen(Effect.sleep(5), eventually(holds))))

const hook = { session_id: "s1", hook_event_name: "SessionStart", source: "startup", cwd: "/srv" }

/** A state folder, with a quote in its name, whose spool is prepared. */
const world = Effect.gen(function* () {
  const base = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "agentd-spool-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  const state = join(base, "it's here")
  const folders = yield* Effect.provide(Spool.prepare(state), NodeServices.layer)
  const board = PlatesDouble.makeBoard()
  const drop = (input: string, env: { readonly [name: string]: string } = {}) =>
    spawnSync(folders.script, { input, env: { PATH: process.env["PATH"] ?? "", ...env }, encoding: "utf8" })
  const entry = (name: string, text: string, at?: number) => {
    const path = join(folders.spool, name)
    writeFileSync(path, text)
    if (at !== undefined) utimesSync(path, at, at)
  }
  return {
    board,
    drop,
    entry,
    folders,
    drain: Spool.drain(folders).pipe(Effect.provide(Layer.merge(PlatesDouble.layer(board), NodeServices.layer))),
    watch: Layer.build(
      Spool.layer({ state }).pipe(Layer.provide(Layer.merge(PlatesDouble.layer(board), NodeServices.layer)))
    )
  }
})

describe("the hook's script", () => {
  it.live("drops what it is given, with the session's process and who started it; silent, 0, for its owner only", () =>
    Effect.gen(function* () {
      const { board, drain, drop, folders } = yield* world
      const env = { CLAUDE_PID: "4242", AGENTD_PLATE: "01plate", AGENTD_RUN: "r1" }
      const { status, stderr, stdout } = drop(JSON.stringify(hook), env)
      assert.deepStrictEqual([status, stdout, stderr], [0, "", ""])
      const [name] = readdirSync(folders.spool)
      assert.strictEqual(statSync(join(folders.spool, name!)).mode & 0o777, 0o600)
      yield* drain
      const [what, body, origin] = board.got[0]!
      assert.deepStrictEqual([what, body], ["hook", hook])
      assert.deepInclude(origin, { plate: "01plate", run: "r1", pid: 4242 })
      assert.isNumber(origin?.at)
      assert.isEmpty(readdirSync(folders.spool))
    })
  )

  it.live("cuts what is too long, and is silenced by nothing in the environment", () =>
    Effect.gen(function* () {
      const { board, drain, drop } = yield* world
      const env = { CLAUDE_PID: "../x", AGENTD_PLATE: "a\npid=9", AGENTD_RUN: "r\n\n{", TIME_STYLE: "no", IFS: "/" }
      drop(JSON.stringify({ ...hook, prompt: "ā\u0081\n".repeat(400_000) }), env)
      yield* drain
      const [, body, origin] = board.got[0]!
      assert.deepInclude(body as object, { ...hook, agentd_cut: true })
      assert.deepInclude(origin, { plate: "apid9", run: "r", pid: undefined })
    })
  )

  it.live("drops what is whole while its input stays open", () =>
    Effect.gen(function* () {
      const { board, drain, folders } = yield* world
      const child = spawn(folders.script, [], { stdio: ["pipe", "ignore", "ignore"] })
      const ended = once(child, "exit")
      const text = JSON.stringify({ ...hook, prompt: String.raw`a } " \ é {`, more: { x: [{}] } }, null, 2)
      child.stdin.write(text.slice(0, text.indexOf("é")))
      setImmediate(() => child.stdin.write(text.slice(text.indexOf("é"))))
      assert.deepStrictEqual((yield* Effect.promise(() => ended))[0], 0)
      yield* drain
      assert.deepStrictEqual(board.got[0]?.[1], JSON.parse(text))
    })
  )

  it.live("leaves out what the environment does not say", () =>
    Effect.gen(function* () {
      const { board, drain, drop } = yield* world
      drop(JSON.stringify(hook))
      yield* drain
      assert.deepInclude(board.got[0]?.[2], { plate: undefined, run: undefined, pid: undefined })
    })
  )

  it.live("says nothing and exits 0 also where its folder is gone", () =>
    Effect.gen(function* () {
      const { drop, folders } = yield* world
      rmSync(folders.spool, { recursive: true })
      const { status, stderr, stdout } = drop(JSON.stringify(hook))
      assert.deepStrictEqual([status, stdout, stderr], [0, "", ""])
    })
  )
})

describe("the spool", () => {
  it.live("is taken in oldest first, what was dropped while no daemon ran as what comes later", () =>
    Effect.gen(function* () {
      const { board, drop, entry, folders, watch } = yield* world
      const of = (session: string) => JSON.stringify({ ...hook, session_id: session })
      entry("b.hook", `pid=\nplate=\nrun=\n\n${of("first")}`, 1000)
      entry("a.hook", `pid=7\n\n${of("second")}`, 2000)
      entry("c.hook", Spool.entryOf({ event_type: "session_start", session_id: "third" }), 3000)
      yield* watch
      yield* eventually(() => board.got.length === 3)
      drop(of("fourth"))
      yield* eventually(() => board.got.length === 4)
      assert.deepStrictEqual(
        board.got.map(([what, body]) => [what, (body as { session_id: string }).session_id]),
        [
          ["hook", "first"],
          ["hook", "second"],
          ["event", "third"],
          ["hook", "fourth"]
        ]
      )
      assert.strictEqual(board.got[0]?.[2]?.at, 1_000_000)
      yield* eventually(() => readdirSync(folders.spool).length === 0)
    })
  )

  it.live.each([
    ["no form", "rubbish"],
    ["another field", "pid=1\nuid=0\n\n{}"],
    ["a pid that is none", "pid=-1\n\n{}"],
    ["broken JSON", "pid=1\n\n{"],
    ["a hook that is refused", "pid=1\n\n{}"],
    ["too many bytes", `pid=1\n\n${" ".repeat(2 * 1024 * 1024)}`]
  ] as const)("moves aside what is no hook, and goes on with the others: %s", ([, text]) =>
    Effect.gen(function* () {
      const { board, drain, entry, folders } = yield* world
      entry("a.hook", text, 1000)
      entry("b.hook", `pid=1\n\n${JSON.stringify(hook)}`, 2000)
      yield* drain
      assert.lengthOf(board.got, 1)
      assert.deepStrictEqual(readdirSync(folders.aside), ["a.hook"])
      assert.isEmpty(readdirSync(folders.spool))
    })
  )

  it.live("keeps a file until what it says is in the log", () =>
    Effect.gen(function* () {
      const { board, drain, drop, folders } = yield* world
      drop(JSON.stringify(hook))
      const full = new StorageError({ message: "The disk is full.", remedy: "Make room.", reason: "full" })
      const plates = Plates.of({ ...PlatesDouble.make(board), keep: () => Effect.fail(full) })
      yield* Effect.provide(Spool.drain(folders), [NodeServices.layer, Layer.succeed(Plates, plates)])
      assert.lengthOf(readdirSync(folders.spool), 1)
      assert.isEmpty(readdirSync(folders.aside))
      yield* drain
      assert.lengthOf(board.got, 1)
      assert.isEmpty(readdirSync(folders.spool))
    })
  )

  it.live("keeps no more than a hundred aside, the newest", () =>
    Effect.gen(function* () {
      const { drain, entry, folders } = yield* world
      for (let n = 0; n < 110; n++) entry(`${n}.hook`, "rubbish", n + 1)
      yield* drain
      assert.lengthOf(readdirSync(folders.aside), 100)
      assert.isFalse(existsSync(join(folders.aside, "9.hook")))
      assert.isTrue(existsSync(join(folders.aside, "109.hook")))
    })
  )

  it.live("leaves alone what is still being written, and what is no file; clears what never was finished", () =>
    Effect.gen(function* () {
      const { drain, entry, folders } = yield* world
      entry("now.part", "pid=1\n")
      entry("old.part", "pid=1\n", 1000)
      mkdirSync(join(folders.spool, "folder.hook"))
      yield* drain
      assert.sameMembers(readdirSync(folders.spool), ["now.part", "folder.hook"])
    })
  )
})
