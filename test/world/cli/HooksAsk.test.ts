/** `agentd hooks install` at a terminal shows how it would change Claude Code's settings, and asks; a script needs --yes. */
import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { PROGRAM } from "../../support/Program.ts"

const hasTerminals = spawnSync("script", ["--version"]).status === 0

/** Types an answer at a terminal; returns what was shown, and whether the settings exist afterwards. */
const typed = (answer: string, ...words: ReadonlyArray<string>) => {
  const home = mkdtempSync(join(tmpdir(), "agentd-hooks-"))
  try {
    const command = [process.execPath, PROGRAM, "hooks", "install", ...words].join(" ")
    const { stdout } = spawnSync("script", ["-qec", command, "/dev/null"], {
      cwd: home,
      env: { PATH: process.env["PATH"], HOME: home, TERM: "xterm" },
      input: answer,
      encoding: "utf8"
    })
    return { shown: stdout, isThere: existsSync(join(home, ".claude/settings.json")) }
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

it.skipIf(!hasTerminals)("changes nothing after no, and adds the hooks after yes", () => {
  const refused = typed("n\r")
  assert.match(refused.shown, /settings\.json:[^]*\+ +"SessionStart"[^]*hooks are added to/)
  assert.include(refused.shown, "Nothing was done.")
  assert.isFalse(refused.isThere)
  const agreed = typed("y\r")
  assert.include(agreed.shown, "Add the hooks?")
  assert.isTrue(agreed.isThere)
})

it.skipIf(!hasTerminals)("does not ask with --yes", () => {
  const { isThere, shown } = typed("", "--yes")
  assert.notInclude(shown, "Add the hooks?")
  assert.isTrue(isThere)
})

it("in a script changes nothing without --yes, and says so", () => {
  const home = mkdtempSync(join(tmpdir(), "agentd-hooks-"))
  try {
    const install = (...words: ReadonlyArray<string>) =>
      spawnSync(process.execPath, [PROGRAM, "hooks", "install", ...words], {
        cwd: home,
        env: { PATH: process.env["PATH"], HOME: home },
        encoding: "utf8"
      })
    const refused = install()
    assert.strictEqual(refused.status, 2)
    assert.match(refused.stdout, /\+ +"SessionStart"/)
    assert.match(refused.stderr, /nothing was done\.\n {2}→ Pass --yes/)
    assert.isFalse(existsSync(join(home, ".claude/settings.json")))
    assert.strictEqual(install("--yes").status, 0)
    assert.strictEqual(install().status, 0, "nothing changes, so nothing is asked")
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})
