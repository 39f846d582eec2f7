/**
 * Booted: the tests of this folder under a real systemd: a throwaway copy of this machine, booted, with a user manager
 * and a system one. ALL=1, root and systemd-nspawn are needed; every write of it is discarded.
 */
import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { dirname, resolve } from "node:path"
import { describe } from "vitest"
import { isAll } from "../../support/Long.ts"

const isAble = process.getuid?.() === 0 && spawnSync("systemd-nspawn", ["--version"]).status === 0
if (isAll && !isAble) console.warn("SKIPPED: a booted systemd (needs root, systemd-container, dbus-user-session)")

const ROOT = resolve(import.meta.dirname, "../../..")
const VITEST = resolve(ROOT, "node_modules/.bin/vitest")
const SCRIPT = `loginctl enable-linger root
for i in $(seq 50); do [ -S /run/user/0/bus ] && break; sleep 0.1; done
export XDG_RUNTIME_DIR=/run/user/0 THROWAWAY_MACHINE=1
exec "${VITEST}" run test/world/systemd --exclude test/world/systemd/Booted.test.ts --reporter=agent`

describe.skipIf(!isAll || !isAble)("booted", () => {
  it("the tests that need a systemd of the user's", () => {
    const { error, status, stderr, stdout } = spawnSync(
      "bash",
      [resolve(import.meta.dirname, "../../support/withSystemd.sh"), "--", "sh", "-c", SCRIPT],
      {
        cwd: ROOT,
        encoding: "utf8",
        timeout: 480_000,
        env: { ...process.env, ALL: "0", PATH: `${dirname(process.execPath)}:${process.env["PATH"]}` }
      }
    )
    assert.isUndefined(error)
    assert.strictEqual(status, 0, `${stdout}\n${stderr}`)
    assert.notInclude(stdout, "SKIPPED")
  }, 490_000)
})
