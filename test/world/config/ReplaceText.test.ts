/** A config file whose text agentd replaces: completely or not at all, and only what was seen. */
import { assert, describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  chmodSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { replaceText } from "../../../src/config/OwnFile.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "agentd-replace-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

describe("a text that is replaced", () => {
  it.live("keeps its mode, and a link to it stays one", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const [file, link] = [join(path, "a.jsonc"), join(path, "link.jsonc")]
      writeFileSync(file, "before")
      chmodSync(file, 0o640)
      symlinkSync("a.jsonc", link)
      yield* replaceText(link, "before", "after")
      assert.strictEqual(readFileSync(file, "utf8"), "after")
      assert.strictEqual(statSync(file).mode & 0o777, 0o640)
      assert.isTrue(lstatSync(link).isSymbolicLink())
      assert.deepStrictEqual(readdirSync(path), ["a.jsonc", "link.jsonc"])
    }).pipe(Effect.scoped)
  )

  it.live("is created for its owner alone, with its folder", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const file = join(path, "new", "a.jsonc")
      yield* replaceText(file, undefined, "text")
      assert.deepStrictEqual([statSync(join(path, "new")).mode & 0o777, statSync(file).mode & 0o777], [0o700, 0o600])
    }).pipe(Effect.scoped)
  )

  it.live("stays as it is if it is not the text that was seen, or others can write to it", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const file = join(path, "a.jsonc")
      writeFileSync(file, "now")
      for (const seen of ["before", "no", undefined]) {
        const refused = yield* Effect.flip(replaceText(file, seen, "after"))
        assert.strictEqual(refused.reason, "changed")
      }
      assert.strictEqual((yield* Effect.flip(replaceText(join(path, "b"), "now", "after"))).reason, "unreadable")
      chmodSync(file, 0o666)
      expect((yield* Effect.flip(replaceText(file, "now", "after"))).message).toContain("others can write")
      assert.strictEqual(readFileSync(file, "utf8"), "now")
      assert.deepStrictEqual(readdirSync(path), ["a.jsonc"])
    }).pipe(Effect.scoped)
  )
})
