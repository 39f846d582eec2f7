/** The repository of a folder, found as git finds it. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Repository from "../../../src/runs/git/Repository.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => realpathSync(mkdtempSync(join(tmpdir(), "agentd-repository-")))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

describe("the repository of a folder", () => {
  it.effect("is the one above an empty folder .git, and there is none with such a folder alone", () =>
    Effect.gen(function* () {
      const top = yield* folder
      const inner = join(top, "inner")
      mkdirSync(join(inner, ".git"), { recursive: true })
      assert.isUndefined(yield* Repository.find(inner))
      execFileSync("git", ["init", "-q", top])
      const found = yield* Repository.find(inner)
      assert.deepInclude(found, { top, prefix: "inner", gitDir: join(top, ".git") })
      const told = execFileSync("git", ["-C", inner, "rev-parse", "--show-toplevel"], { encoding: "utf8" })
      assert.strictEqual(told.trim(), top)
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
