/** On another system than Linux the daemon says so in a sentence, and what needs none of it works. */
import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { join } from "node:path"
import { objectionTo } from "../../../src/cli/parse/PlatformCheck.ts"
import { PROGRAM } from "../../support/Program.ts"
import * as Scratch from "../../support/Scratch.ts"

const MAC = `data:text/javascript,Object.defineProperty(process,"platform",{value:"darwin"})`

it("is Linux", () => {
  assert.isUndefined(objectionTo("linux"))
  for (const one of ["darwin", "freebsd", "win32"] as const) assert.include(objectionTo(one)!.message, one)
})

it("is said where a daemon would start, which makes nothing; init, schema and help go on", () => {
  const home = Scratch.make("agentd-mac-")
  const state = join(home, "state")
  const agentd = (...args: ReadonlyArray<string>) =>
    spawnSync(process.execPath, ["--import", MAC, PROGRAM, "--state", state, ...args], {
      cwd: home,
      encoding: "utf8",
      env: { HOME: home, PATH: process.env["PATH"] ?? "" }
    })
  for (const verb of ["start", "up"]) {
    const { status, stderr } = agentd(verb)
    assert.strictEqual(status, 1, verb)
    assert.match(
      stderr,
      /^agentd: agentd's daemon runs only on Linux, not on darwin: .*\.\n {2}→ Run it in a virtual machine/
    )
    assert.isFalse(fs.existsSync(state))
  }
  for (const args of [["init"], ["schema"], ["--help"]]) assert.strictEqual(agentd(...args).status, 0, args.join(" "))
  fs.rmSync(home, { recursive: true })
})
