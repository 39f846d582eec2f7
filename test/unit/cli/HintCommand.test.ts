/** Tests of the commands in hints. */
import { assert, describe, it } from "@effect/vitest"
import { inWorld } from "../../../src/cli/parse/HintCommand.ts"

describe("a command in a hint", () => {
  it("names the state directory, unless it is the default one", () => {
    const text = "Start it: agentd start. Its folder: /var/lib/agentd start"
    assert.strictEqual(inWorld(text, "/tmp/try"), text.replace("agentd start.", "agentd --state /tmp/try start."))
    assert.strictEqual(inWorld(text, null), text)
  })

  it("names it with an old name of a verb, too, which an older daemon prints", () => {
    assert.strictEqual(inWorld("agentd resume shop", "/s"), "agentd --state /s resume shop")
    assert.strictEqual(inWorld("agentd conversation new", "/s"), "agentd --state /s conversation new")
  })
})
