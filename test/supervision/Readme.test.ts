import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { steps } from "./example.ts"

const root = join(import.meta.dirname, "../..")
const readme = readFileSync(join(root, "src/supervision/README.md"), "utf8")

describe("the README of supervision", () => {
  it("opens with the example that is run here", () => {
    const [, shown] = /```ts\n([\s\S]*?)```/.exec(readme)!
    const [, run] = /^\/\*\*.*\*\/\n([\s\S]*)$/.exec(readFileSync(join(import.meta.dirname, "example.ts"), "utf8"))!
    assert.strictEqual(shown, run!.replaceAll("../../src/supervision/", "./"))
  })

  it.live("says what the example answers", () =>
    Effect.gen(function* () {
      const answer = JSON.stringify(yield* steps).replaceAll(",", ", ")
      assert.include(readme, `\`steps\` answers \`${answer}\``)
    })
  )
})
