/** Tests of the reasons for which a store cannot be used: files met for real. */
import { assert, describe, it } from "@effect/vitest"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { storageError } from "../../../src/core/event-log/StorageFailure.ts"

const thrownBy = (use: (folder: string) => void): unknown => {
  const folder = mkdtempSync(join(tmpdir(), "agentd-store-"))
  try {
    use(folder)
  } catch (error) {
    return error
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  throw new Error("nothing was thrown")
}

describe("a file system that refuses", () => {
  it("a full disk is a full disk, whether SQLite or the file system says so", () => {
    const full = storageError(
      "runes.db",
      thrownBy(() => writeFileSync("/dev/full", "x"))
    )
    assert.deepStrictEqual([full.reason, full.message.includes("there is no space left")], ["full", true])
  })

  it("a state folder below a file cannot be opened, which is no bug of ours", () => {
    const error = storageError(
      "lock.db",
      thrownBy((folder) => {
        writeFileSync(join(folder, "file"), "")
        mkdirSync(join(folder, "file", "below"), { recursive: true })
      })
    )
    assert.strictEqual(error.reason, "cannot-open")
    assert.notInclude(error.remedy, "bug")
  })

  it("what nobody knows is reported", () => {
    assert.include(storageError("runes.db", new Error("odd")).remedy, "bug in agentd")
  })
})
