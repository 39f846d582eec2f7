/** The branch that a plate shows, in repositories that real git has made. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Branch from "../../../src/plates/Branch.ts"

const git = (folder: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.org", ...args], {
    cwd: folder,
    encoding: "utf8"
  }).trim()

describe("the branch of a folder", () => {
  it.live("is that of the checkout around it: also of a linked work tree, with a slash, and without a commit", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const base = yield* fs.makeTempDirectoryScoped()
      const top = join(base, "shop")
      mkdirSync(join(top, "packages/app"), { recursive: true })
      assert.isUndefined(yield* Branch.of(fs, top))
      git(top, "init", "-q", "-b", "main")
      assert.strictEqual(yield* Branch.of(fs, top), "main")
      git(top, "commit", "-qm", "begin", "--allow-empty")
      git(top, "worktree", "add", "-q", "-b", "feature/one", join(base, "linked"))
      assert.strictEqual(yield* Branch.of(fs, join(top, "packages/app")), "main")
      assert.strictEqual(yield* Branch.of(fs, join(base, "linked")), "feature/one")
      git(top, "checkout", "-q", "--detach")
      assert.strictEqual(yield* Branch.of(fs, top), git(top, "rev-parse", "HEAD").slice(0, 8))
      assert.isUndefined(yield* Branch.of(fs, join(base, "gone")))
    }).pipe(Effect.scoped, Effect.provide(NodeFileSystem.layer))
  )

  it.live("is not read from a file that a planted `.git` names", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const base = yield* fs.makeTempDirectoryScoped()
      writeFileSync(join(base, ".git"), `gitdir: ${join(base, "other")}\n`)
      assert.isUndefined(yield* Branch.of(fs, base))
      mkdirSync(join(base, "other"))
      writeFileSync(join(base, "other/HEAD"), `ref: refs/heads/${"x".repeat(10_000)}\n`)
      assert.isUndefined(yield* Branch.of(fs, base))
    }).pipe(Effect.scoped, Effect.provide(NodeFileSystem.layer))
  )
})
