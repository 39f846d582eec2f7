/** Tests of the lock: a store has one daemon. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Schedule, Scope } from "effect"
import { spawn } from "node:child_process"
import { existsSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as StoreLock from "../../../src/core/event-log/StoreLock.ts"
import { folder as tempFolder } from "./Disk.ts"

const holder = fileURLToPath(new URL("../../support/lockHolder.ts", import.meta.url))

const take = (folder: string) => Effect.scoped(StoreLock.acquire({ folder, socket: "/run/second.sock" }))

/** A process that holds the lock, and is killed with the scope at the latest. */
const heldByAnother = (folder: string) =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof spawn>>((resume) => {
      const child = spawn(process.execPath, [holder, folder, "/run/first.sock"], {
        stdio: ["ignore", "pipe", "inherit"]
      })
      child.stdout.once("data", () => resume(Effect.succeed(child)))
    }),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )

describe("StoreLock", () => {
  it.live("two supervisors: the second is refused, and told who holds the store", () =>
    Effect.gen(function* () {
      const folder = yield* tempFolder
      const child = yield* heldByAnother(folder)
      const error = yield* Effect.flip(take(folder))
      expect(error).toMatchObject({ _tag: "StoreInUse", pid: child.pid, socket: "/run/first.sock", folder })
      expect(error.message).toContain(String(child.pid))
      expect(error.remedy).toContain("agentd stop")
    })
  )

  it.live("after kill -9 of the holder the store is free, with no stale lock to clean up", () =>
    Effect.gen(function* () {
      const folder = yield* tempFolder
      const child = yield* heldByAnother(folder)
      child.kill("SIGKILL")
      yield* Effect.retry(take(folder), Schedule.spaced("20 millis").pipe(Schedule.upTo({ duration: "10 seconds" })))
    })
  )

  it.live("it is held until the scope closes, and again by the next", () =>
    Effect.gen(function* () {
      const folder = join(yield* tempFolder, "made", "by", "it")
      const scope = yield* Scope.make()
      yield* Scope.provide(StoreLock.acquire({ folder, socket: null }), scope)
      expect(yield* Effect.flip(take(folder))).toMatchObject({ _tag: "StoreInUse", pid: process.pid, socket: null })
      expect(statSync(folder).mode & 0o777).toBe(0o700)
      yield* Scope.close(scope, Exit.void)
      yield* take(folder)
      expect(existsSync(join(folder, "lock.json"))).toBe(false)
    })
  )

  it.live("a holder's note that cannot be read leaves the holder unnamed", () =>
    Effect.gen(function* () {
      const folder = yield* tempFolder
      yield* heldByAnother(folder)
      writeFileSync(join(folder, "lock.json"), "{")
      expect(yield* Effect.flip(take(folder))).toMatchObject({ _tag: "StoreInUse", pid: null, socket: null })
    })
  )

  it.live("a folder that cannot be made is a storage error, not a rival", () =>
    Effect.gen(function* () {
      const file = join(yield* tempFolder, "file")
      writeFileSync(file, "")
      expect(yield* Effect.flip(take(join(file, "state")))).toMatchObject({ _tag: "StorageError" })
    })
  )
})
