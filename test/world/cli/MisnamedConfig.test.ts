/** A config of a name that is not read: it is told, with the command that puts it right, which does. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { absence, nearIn } from "../../../src/cli/parse/MisnamedConfig.ts"
import type { Check } from "../../../src/board/DaemonMessages.ts"
import { folder } from "../rpc/World.ts"
import { agentd } from "./Child.ts"

describe("a name near the config's", () => {
  it("is JSON of any spelling first, then another language's; nothing else is meant", () => {
    assert.strictEqual(nearIn(["agentd.yaml", "agentd.json", "package.json"]), "agentd.json")
    for (const name of [
      "Agentd.jsonc",
      "agentd.JSON",
      ".agentd.jsonc",
      "agentd.config.json",
      "agentd.yml",
      "agentd.toml"
    ])
      assert.strictEqual(nearIn(["a.json", name]), name)
    assert.isUndefined(nearIn(["agentd.json.bak", "myagentd.json", "agentd", "agentd.md", "agentd.mjs"]))
  })

  it("is told with a command that a shell takes as it stands; what is no JSON is not renamed", () => {
    const config = "/home/ada/a b/agentd.jsonc"
    assert.include(
      absence({ path: "/home/ada/a b/agentd.json", config }).remedy,
      "mv -n '/home/ada/a b/agentd.json' '/home/ada/a b/agentd.jsonc'"
    )
    const yaml = absence({ path: "/p/agentd.yaml", config: "/p/agentd.jsonc" })
    assert.include(yaml.message, "does not read /p/agentd.yaml: it is not JSON")
    assert.notInclude(yaml.remedy, "mv ")
    assert.notInclude(absence().message, "does not read")
  })
})

it.live(
  "start, start --name and doctor name the file that was meant, from a folder below, too; what they say helps",
  () =>
    Effect.gen(function* () {
      const base = yield* folder
      const [near, config] = [`${base}/a b/agentd.json`, `${base}/a b/agentd.jsonc`]
      mkdirSync(`${base}/a b/src`, { recursive: true })
      writeFileSync(near, '{ "agents": { "calm": { "backend": { "type": "command", "shell": "exit 0" } } } }')
      const run = (...verb: ReadonlyArray<string>) =>
        agentd(["--state", `${base}/s`, ...verb], { cwd: `${base}/a b/src`, env: { PATH: "/usr/bin:/bin" } })
      yield* Effect.addFinalizer(() => run("stop", "--daemon"))
      const named = yield* run("start", "--name", "shop")
      assert.strictEqual(named.code, 1)
      const said = `here is no agentd.jsonc in this folder or above it, and agentd does not read ${near}`
      assert.include(named.err, said)
      const command = /mv .*$/m.exec(named.err)![0]
      const checks = JSON.parse((yield* run("doctor", "--json")).out) as ReadonlyArray<Check>
      const { detail, remedy } = checks.find(({ name }) => name === "config")!
      assert.deepStrictEqual([detail, remedy], [`t${said}`, `Rename it: ${command}`])
      const started = yield* run("start")
      assert.strictEqual(started.code, 0)
      assert.include(started.out, `T${said}. No project was registered. Rename it: ${command}`)
      execFileSync("sh", ["-c", command])
      assert.isFalse(existsSync(near))
      assert.include(readFileSync(config, "utf8"), "calm")
      assert.include((yield* run("start")).out, "calm. See them")
    }).pipe(Effect.scoped)
)
