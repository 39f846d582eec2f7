/** Generated documents: each is what the code says; `npm run docs` writes them. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { current, documents } from "../../../scripts/docs/main.ts"

describe("npm run docs", () => {
  it.live("has nothing to write", () =>
    Effect.gen(function* () {
      const all = yield* documents
      assert.isAbove(all.size, 3)
      for (const [path, text] of all) assert.strictEqual(current(path), text, `${path}: run \`npm run docs\``)
    })
  )

  it("has a picture of the board: `npm run docs -- --picture` draws it", () => {
    const picture = current("docs/board.svg")
    assert.isBelow(picture.length, 20_000)
    const words = picture.replaceAll("\u00a0", " ")
    for (const shown of ["1 needs you", "1 failed", "retrying", "waits for a message", "quit"]) {
      assert.include(words, shown)
    }
    assert.notMatch(words, /agentd-docs-|\/dev\/shm/)
  })

  it("names each verb, each backend and each field that must be given", () => {
    const commands = current("docs/reference/commands.md")
    for (const verb of ["up", "goal show", "channel post", "completions"]) {
      assert.match(commands, new RegExp(`^#+ agentd ${verb}$`, "m"))
    }
    const config = current("docs/reference/config.md")
    for (const type of ["command", "claude", "codex", "acp", "model"]) assert.include(config, `### backend: ${type}\n`)
    assert.include(config, "| `agents` | object by name | must be given |")
    assert.notInclude(config, "### backend: exec\n")
    assert.notInclude(config, "fallback[].")
  })
})
