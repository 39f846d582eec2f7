/** `agentd hooks install` at a terminal asks before it changes Claude Code's settings; a script is not asked. */
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
  assert.include(refused.shown, "hooks are added to")
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
