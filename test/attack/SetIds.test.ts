/** The set-gid files of a run: swept, and nothing else is touched. */
import { assert, describe, it } from "@effect/vitest"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { sweep } from "../../src/runs/sandbox/SetIds.ts"
import * as Scratch from "../support/Scratch.ts"

const modeOf = (file: string) => fs.lstatSync(file).mode & 0o7777

describe("files that a confined run leaves", () => {
  it.live("lose set-gid; directories, links, and what was there before keep what they have", () =>
    Effect.gen(function* () {
      const folder = yield* Scratch.folder("agentd-bits-")
      const other = yield* Scratch.folder("agentd-bits-")
      const at = (name: string) => path.join(folder, name)
      const put = (file: string, mode: number) => {
        fs.writeFileSync(file, "")
        fs.chmodSync(file, mode)
      }
      put(at("old"), 0o2755)
      put(path.join(other, "elsewhere"), 0o2755)
      const changed = fs.lstatSync(at("old")).ctimeMs
      let began = changed
      while (began <= changed + 1) {
        fs.writeFileSync(at("clock"), String(began))
        began = fs.statSync(at("clock")).ctimeMs
      }
      fs.mkdirSync(at("shared/deep"), { recursive: true })
      fs.chmodSync(at("shared"), 0o2775)
      put(at("shared/deep/tool"), 0o2755)
      put(at("unreadable"), 0o2111)
      put(at("plain"), 0o644)
      fs.symlinkSync(path.join(other, "elsewhere"), at("link"))
      const swept = yield* sweep(folder, began)
      assert.deepStrictEqual([...swept].toSorted(), [at("shared/deep/tool"), at("unreadable")])
      assert.deepStrictEqual(
        ["old", "shared", "shared/deep/tool", "unreadable", "plain"].map((name) => modeOf(at(name))),
        [0o2755, 0o2775, 0o755, 0o111, 0o644]
      )
      assert.strictEqual(modeOf(path.join(other, "elsewhere")), 0o2755)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
