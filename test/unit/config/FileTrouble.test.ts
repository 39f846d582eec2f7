/** Tests of the words for a file system's refusals: each met for real. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, PlatformError } from "effect"
import { remedyOf, troubleOf } from "../../../src/config/FileTrouble.ts"

const met = <A>(use: (fs: FileSystem.FileSystem, folder: string) => Effect.Effect<A, PlatformError.PlatformError>) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const folder = yield* fs.makeTempDirectoryScoped({ prefix: "agentd-" })
    yield* fs.writeFileString(`${folder}/file`, "x")
    const error = yield* Effect.flip(use(fs, folder))
    return { says: troubleOf(error), remedy: remedyOf(error, "the caller's") }
  }).pipe(Effect.scoped, Effect.provide(NodeFileSystem.layer))

describe("a file that cannot be used", () => {
  it.live("a disk that is full is called full, and room is what helps", () =>
    Effect.gen(function* () {
      const { remedy, says } = yield* met((fs) => fs.writeFileString("/dev/full", "x"))
      assert.strictEqual(says, "no space is left on its disk")
      assert.match(remedy, /Free space/)
    })
  )

  it.live("what is no file, no folder, not there, or there already is told as that", () =>
    Effect.gen(function* () {
      const told = yield* Effect.all([
        met((fs, folder) => fs.readFileString(folder)),
        met((fs, folder) => fs.readFileString(`${folder}/file/below`)),
        met((fs, folder) => fs.readFileString(`${folder}/none`)),
        met((fs, folder) => fs.writeFileString(`${folder}/file`, "x", { flag: "wx" }))
      ])
      assert.deepStrictEqual(
        told.map(({ says }) => says),
        [
          "it is a folder",
          "a part of its path is not a folder",
          "there is no such file or folder",
          "something with that name already exists"
        ]
      )
      assert.deepStrictEqual([...new Set(told.map(({ remedy }) => remedy))], ["the caller's"])
    })
  )

  it("what has no code keeps the words that it came with", () => {
    const error = PlatformError.badArgument({ module: "FileSystem", method: "open", description: "no path" })
    assert.include(troubleOf(error), "no path")
  })
})
