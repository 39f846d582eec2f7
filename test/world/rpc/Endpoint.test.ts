import * as NodeServices from "@effect/platform-node/NodeServices"
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { spawnSync } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { claim, probe } from "../../../src/api/rpc/Endpoint.ts"
import { folder, layer, makeWorld, serve } from "./World.ts"

const claimed = (path: string) => Effect.provide(claim(path), NodeServices.layer)

/** A socket whose process is dead: what a kill -9 leaves behind. */
const leaveBehind = (path: string) =>
  spawnSync(process.execPath, [
    "-e",
    `require("net").createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, "SIGKILL"))`
  ])

it.live("the folder is made as 0700, with those above it", () =>
  Effect.gen(function* () {
    const base = yield* folder
    yield* claimed(`${base}/a/b/control.sock`)
    expect(statSync(`${base}/a/b`).mode & 0o777).toBe(0o700)
    expect(statSync(`${base}/a`).mode & 0o777).toBe(0o700)
  })
)

it.live.each([0o770, 0o707, 0o777, 0o1777])("a folder that others may write in is refused: mode %o", (mode) =>
  Effect.gen(function* () {
    const base = yield* folder
    mkdirSync(`${base}/open`)
    chmodSync(`${base}/open`, mode)
    const error = yield* Effect.flip(claimed(`${base}/open/control.sock`))
    expect(error).toMatchObject({ reason: "folder", remedy: `Run: chmod 700 '${base}/open'` })
  })
)

it.live("a folder of somebody else is refused", () =>
  Effect.gen(function* () {
    if (process.getuid?.() === 0) {
      const base = yield* folder
      mkdirSync(`${base}/theirs`, { mode: 0o700 })
      spawnSync("chown", ["65534", `${base}/theirs`])
      const error = yield* Effect.flip(claimed(`${base}/theirs/control.sock`))
      expect(error).toMatchObject({ reason: "folder", message: expect.stringContaining("belongs to user 65534") })
    } else {
      const error = yield* Effect.flip(claimed("/usr/control.sock"))
      expect(error).toMatchObject({ reason: "folder" })
    }
  })
)

it.live("a path that the kernel would cut is refused, with its length; the longest that fits works", () =>
  Effect.gen(function* () {
    const base = yield* folder
    const path = (length: number) => `${base}/${"x".repeat(length - base.length - 1)}`
    expect(yield* Effect.flip(claimed(path(108)))).toMatchObject({ reason: "long" })
    yield* claimed(path(107))
    yield* Layer.build(layer(makeWorld(), path(107)))
    expect(yield* probe(path(107))).toBe("live")
    // In bytes, not in characters.
    expect(yield* Effect.flip(claimed(`${path(100)}ééééé`))).toMatchObject({ reason: "long" })
  })
)

it.live("a live daemon's socket is left alone, and the second daemon is told so", () =>
  Effect.gen(function* () {
    const { socket } = yield* serve(makeWorld())
    expect(yield* Effect.flip(claimed(socket))).toMatchObject({ reason: "in-use" })
    expect(yield* probe(socket)).toBe("live")
  })
)

it.live("a dead daemon's socket is taken over", () =>
  Effect.gen(function* () {
    const socket = `${yield* folder}/control.sock`
    leaveBehind(socket)
    expect(yield* probe(socket)).toBe("stale")
    yield* Layer.build(layer(makeWorld(), socket))
    expect(yield* probe(socket)).toBe("live")
  })
)

it.live("what is no socket is left alone and named", () =>
  Effect.gen(function* () {
    const base = yield* folder
    writeFileSync(`${base}/control.sock`, "precious")
    expect(yield* Effect.flip(claimed(`${base}/control.sock`))).toMatchObject({ reason: "not-a-socket" })
    writeFileSync(`${base}/elsewhere`, "precious too")
    symlinkSync(`${base}/elsewhere`, `${base}/link.sock`)
    expect(yield* Effect.flip(claimed(`${base}/link.sock`))).toMatchObject({ reason: "not-a-socket" })
    expect(existsSync(`${base}/elsewhere`)).toBe(true)
  })
)

it.live("the socket is gone when the server is", () =>
  Effect.gen(function* () {
    const { socket } = yield* Effect.scoped(serve(makeWorld()))
    expect(yield* probe(socket)).toBe("absent")
  })
)
