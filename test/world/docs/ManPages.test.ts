/** The man pages: every verb and setting is in them, and no text of ours is taken for a request of roff. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Commands from "../../../scripts/docs/Commands.ts"
import { commands, config, roff } from "../../../scripts/docs/ManPages.ts"
import * as Scratch from "../../support/Scratch.ts"

const REQUESTS = /^\.(TH|SH|SS|TP|PP|B|BR|I)\b/

/** A reader of man pages that tells what is wrong with one. */
const readers = [
  { program: "man", args: (file: string) => ["--warnings", "-l", file] },
  { program: "mandoc", args: (file: string) => ["-Tlint", "-W", "error", file] }
].filter(({ program }) => spawnSync(program, ["-h"]).error === undefined)

describe("man pages", () => {
  it.live("name every verb and every setting", () =>
    Effect.gen(function* () {
      const page = yield* commands
      for (const { path } of (yield* Commands.all).slice(1)) {
        assert.include(page, `.SS "${roff(path.join(" "))}"`)
      }
      assert.include(config(), `\\fB${roff("maxConsecutiveErrors")}\\fR`)
    })
  )

  it.live("have no request but those that are meant, and are read without a complaint", () =>
    Effect.gen(function* () {
      const folder = yield* Scratch.folder("agentd-man-")
      if (readers.length === 0) console.warn("There is neither man nor mandoc on this machine: the pages are not read.")
      for (const [name, text] of [
        ["agentd.1", yield* commands],
        ["agentd.jsonc.5", config()]
      ] as const) {
        for (const line of text.split("\n").filter((line) => /^[.']/.test(line))) assert.match(line, REQUESTS)
        writeFileSync(join(folder, name), text)
        for (const { args, program } of readers) {
          const { status, stderr, stdout } = spawnSync(program, args(join(folder, name)), {
            encoding: "utf8",
            env: { PATH: process.env["PATH"], MANPAGER: "cat", LANG: "C.UTF-8" }
          })
          assert.strictEqual(status, 0, `${program}: ${stderr}`)
          assert.strictEqual(stderr, "", program)
          if (program === "man") assert.match(stdout, /^NAME/m)
        }
      }
    }).pipe(Effect.scoped)
  )

  it("a text is no request", () => {
    assert.strictEqual(roff(".so /etc/passwd\n'x\\y -z"), "\\&.so /etc/passwd\n\\&'x\\ey \\-z")
  })
})
