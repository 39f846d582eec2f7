/** Where a program lies says how it was installed. */
import { assert, it } from "@effect/vitest"
import { installationOf } from "../../../src/cli/setup/Installed.ts"

it("an installation is npm's in a prefix, a clone, or somebody else's", () => {
  const of = (script: string, hasSources = false) => installationOf(script, () => hasSources)
  const home = "/opt/lib/node_modules/agentd"
  assert.deepStrictEqual(of(`${home}/dist/agentd.mjs`), { _tag: "Npm", root: home, prefix: "/opt" })
  assert.strictEqual(of("/home/ada/agentd/dist/agentd.mjs", true)._tag, "Clone")
  assert.strictEqual(of("/home/ada/agentd/src/main.ts", true)._tag, "Clone")
  assert.strictEqual(of("/home/ada/app/node_modules/agentd/dist/agentd.mjs")._tag, "Other")
  assert.strictEqual(of("/nix/store/x-agentd/lib/agentd/dist/agentd.mjs")._tag, "Other")
})
