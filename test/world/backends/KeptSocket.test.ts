/** KeptSocket: a socket's name that is taken away, alone or with its folder, by real files and a clock that is turned. */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, FileSystem } from "effect"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { TestClock } from "effect/testing"
import { existsSync, mkdirSync, renameSync, rmSync, statSync, unlinkSync, writeFileSync } from "node:fs"
import { connect, createServer, type Server, type Socket } from "node:net"
import { dirname, join } from "node:path"
import * as KeptSocket from "../../../src/runs/KeptSocket.ts"
import { claim } from "../../../src/api/rpc/Endpoint.ts"
import * as Scratch from "../../support/Scratch.ts"

const listening = (path: string, take: (conn: Socket) => void) =>
  Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
      const server = createServer(take).listen(path, () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => void server.close())
  )

/** The word that whoever listens there says. */
const heard = (path: string) =>
  Effect.callback<string>((resume) => {
    const conn = connect(path)
    conn.on("error", (error) => resume(Effect.succeed(String(error))))
    conn.on("data", (bytes) => {
      conn.destroy()
      resume(Effect.succeed(String(bytes)))
    })
  })

const says = (word: string) => (conn: Socket) => void conn.on("error", () => {}).end(word)

const kept = (path: string) =>
  Effect.flatMap(Effect.context<FileSystem.FileSystem>(), (context) =>
    KeptSocket.keep({ path, claim: Effect.provideContext(claim(path), context), take: says("again") })
  )

const modeOf = (path: string) => (statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o777

/** The next look, which is over when its files are as they are to be. */
const looked = (holds: () => boolean) =>
  Effect.gen(function* () {
    yield* TestClock.adjust("10 seconds")
    while (!holds()) yield* Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))
  })

it.effect("what is taken away is there again with the next look: the name, then the folder, again and again", () =>
  Effect.gen(function* () {
    const folder = yield* Scratch.folder("agentd-kept-")
    const path = join(folder, "run", "control.sock")
    yield* listening(path, says("first"))
    yield* kept(path)
    assert.strictEqual(yield* heard(path), "first")
    for (const gone of [path, dirname(path), path, path]) {
      rmSync(gone, { recursive: true })
      yield* looked(() => modeOf(path) === 0o600)
      assert.strictEqual(yield* heard(path), "again")
      assert.strictEqual(statSync(dirname(path)).mode & 0o777, 0o700)
    }
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)

it.effect("where another listens by now, or something lies that is no socket, it is left alone until it is gone", () =>
  Effect.gen(function* () {
    const folder = yield* Scratch.folder("agentd-kept-")
    const path = join(folder, "control.sock")
    yield* listening(path, says("first"))
    yield* kept(path)
    unlinkSync(path)
    writeFileSync(path, "mine")
    yield* TestClock.adjust("10 seconds")
    assert.isTrue(statSync(path).isFile())
    unlinkSync(path)
    const other = yield* Effect.forkChild(Effect.scoped(Effect.andThen(listening(path, says("other")), Effect.never)))
    while (!existsSync(path)) yield* Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))
    yield* TestClock.adjust("10 seconds")
    assert.strictEqual(yield* heard(path), "other")
    // as a kill leaves it
    renameSync(path, `${path}.left`)
    yield* Fiber.interrupt(other)
    renameSync(`${path}.left`, path)
    yield* looked(() => modeOf(path) === 0o600)
    assert.strictEqual(yield* heard(path), "again")
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)

it.effect("its end takes the name away", () =>
  Effect.gen(function* () {
    const folder = yield* Scratch.folder("agentd-kept-")
    const path = join(folder, "control.sock")
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* listening(path, says("first"))
        yield* kept(path)
        unlinkSync(path)
        yield* looked(() => existsSync(path))
      })
    )
    assert.isFalse(existsSync(path))
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)
