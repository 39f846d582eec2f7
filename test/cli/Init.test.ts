/** The sample that `agentd init` writes. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { SAMPLE } from "../../src/cli/Init.ts"
import { parse } from "../../src/config/ConfigFile.ts"

const PATH = "/home/ada/shop/agentd.jsonc"

/** With all that stands there as an example taken in: lines of JSON, not of prose. */
const uncommented = SAMPLE.replaceAll(/^( *)\/\/ (?=,"| +"| *\})/gm, "$1")

it.effect("the sample is valid as it is written", () =>
  Effect.gen(function* () {
    const { agents } = yield* parse(SAMPLE, PATH)
    assert.deepStrictEqual(Object.keys(agents), ["builder"])
    assert.strictEqual(agents["builder"]!.backend.type, "claude")
  })
)

it.effect("each example in it is valid, too", () =>
  Effect.gen(function* () {
    const { agents, channels, goals, mail } = yield* parse(uncommented, PATH)
    assert.deepStrictEqual(
      Object.values(agents).map(({ backend }) => backend.type),
      ["claude", "command", "model", "acp"]
    )
    assert.deepStrictEqual([Object.keys(channels), goals.critic, mail?.to], [["review"], "critic", "ada@example.org"])
  })
)
