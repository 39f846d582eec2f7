import { execFileSync } from "node:child_process"
import { assert, describe, it } from "@effect/vitest"
import * as DaemonNode from "../../../src/systemd/DaemonNode.ts"

describe("DaemonNode", () => {
  it("a daemon's Node has flags before its script, and what was given to it alone is forgotten", () => {
    const [node, ...rest] = DaemonNode.commandOf(["/bin/node", "/a/agentd.mjs", "up"])
    assert.strictEqual(node, "/bin/node")
    assert.deepStrictEqual(rest.slice(-2), ["/a/agentd.mjs", "up"])
    assert.isTrue(rest.slice(0, -2).every((flag) => flag.startsWith("--")))
    for (const env of [{ PATH: "/bin" }, { PATH: "/bin", MALLOC_ARENA_MAX: "8" }]) {
      const daemon: Record<string, string | undefined> = { ...env, ...DaemonNode.variablesFor(env) }
      assert.isDefined(daemon["MALLOC_TRIM_THRESHOLD_"])
      DaemonNode.forget(daemon)
      assert.deepStrictEqual(daemon, env)
    }
  })

  it("a name that is none of these is not taken out", () => {
    const env: Record<string, string | undefined> = { PATH: "/bin", [DaemonNode.GIVEN]: "PATH MALLOC_ARENA_MAX" }
    DaemonNode.forget(env)
    assert.deepStrictEqual(env, { PATH: "/bin" })
  })

  it("its flags leave valid what Node brings compiled of its own modules", () => {
    const program = `const { internalBinding } = require("internal/test/binding")
      require("node:https")
      const { compiledWithCache, compiledWithoutCache } = internalBinding("builtins").getCacheUsage()
      console.log([...compiledWithoutCache].length, [...compiledWithCache].length > 0)`
    const said = (flags: ReadonlyArray<string>) =>
      execFileSync(process.execPath, ["--expose-internals", "--no-warnings", ...flags, "-e", program], {
        encoding: "utf8"
      }).trim()
    assert.strictEqual(said(DaemonNode.commandOf(["node"]).slice(1)), "0 true")
    assert.match(said(["--flush-baseline-code"]), /^[1-9]\d* false$/)
  })
})
