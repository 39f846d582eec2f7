/** The bundle holds the code of the log's threads: a daemon of it writes, and a store is verified, without a file of src. */
import { assert, describe, it } from "@effect/vitest"
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"

const root = join(import.meta.dirname, "../../..")
const run = promisify(execFile)

describe("the bundle", () => {
  it("writes on the log's thread and verifies on another, far from src and node_modules", async () => {
    const folder = mkdtempSync(join(tmpdir(), "agentd-bundle-"))
    const bin = join(folder, "dist", "agentd.mjs")
    const agentd = (...args: ReadonlyArray<string>) =>
      run(process.execPath, [bin, "--state", join(folder, "state"), ...args], { cwd: folder })
    await run(process.execPath, [join(root, "scripts", "bundle.ts"), join(folder, "dist")], { cwd: root })
    const daemon = spawn(process.execPath, [bin, "--state", join(folder, "state"), "up"], { cwd: folder })
    const ended = once(daemon, "exit")
    try {
      // the verb waits for no daemon: it is asked until there is one
      const said = async (): Promise<string> => agentd("log").then(({ stdout }) => stdout, said)
      assert.include(await said(), "daemon.started")
    } finally {
      daemon.kill("SIGTERM")
      await ended
    }
    const { stdout } = await agentd("verify")
    assert.include(stdout, "No problems")
    assert.match(stdout, /2 runes in 1 stream/, "the start and the end")
    rmSync(folder, { recursive: true, force: true })
  })
})
