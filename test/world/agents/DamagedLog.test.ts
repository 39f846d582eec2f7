/** A log that opens, and whose own stream of the daemon does not fold: the daemon must not stay up without agents. */
import { assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { Effect } from "effect"
import * as Sandbox from "../../support/Sandbox.ts"
import { PATIENCE } from "../../support/Patience.ts"

const MAIN = join(import.meta.dirname, "../../../src/main.ts")

describe("a daemon that cannot recover its log", () => {
  it.live("exits 74 with the remedy, though nobody registers a project", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.configure({ agents: { a: { backend: { type: "command", shell: "cat" } } } })
      yield* box.up()
      yield* box.untilAgent("a", "waits", ({ state }) => state === "BuildingPrompt")
      yield* box.terminate
      const store = new DatabaseSync(join(box.state, "runes.db"))
      store.exec("DROP TRIGGER runes_are_immutable; UPDATE runes SET payload = '{' WHERE kind = 'daemon.started'")
      store.close()
      const ended = yield* Effect.callback<{ readonly code: number | null; readonly said: string }>((resume) => {
        const daemon = spawn(process.execPath, [MAIN, "--state", box.state, "up"], {
          cwd: box.folder,
          env: { ...process.env, SANDBOX: box.folder, XDG_CONFIG_HOME: join(box.folder, "config") },
          stdio: ["ignore", "ignore", "pipe"]
        })
        let said = ""
        daemon.stderr.on("data", (chunk) => (said += chunk))
        daemon.on("close", (code) => resume(Effect.succeed({ code, said })))
        return Effect.sync(() => void daemon.kill("SIGKILL"))
      }).pipe(Effect.timeout(PATIENCE))
      assert.strictEqual(ended.code, 74, ended.said)
      assert.match(ended.said, /payload of rune \d+[^]*agentd .*verify/)
    })
  )
})
