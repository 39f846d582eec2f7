/** A session of another coding CLI, reported by the hooks as they were installed, under a real daemon. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as Sandbox from "../../support/Sandbox.ts"

interface Plate {
  readonly status: string
  readonly pid: number | null
  readonly detail: string
}

describe("hooks of another CLI, as installed", () => {
  it.live("its process is known by them, and its end is noticed though no hook tells it", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.environment["HOME"] = box.folder
      mkdirSync(join(box.folder, ".gemini"))
      box.configure({ agents: { builder: { autostart: false, backend: { type: "command", shell: "cat" } } } })
      yield* box.up()
      assert.strictEqual((yield* box.cli("hooks", "install", "--agent", "gemini", "--yes")).code, 0)
      const { hooks } = JSON.parse(readFileSync(join(box.folder, ".gemini", "settings.json"), "utf8"))
      const command: string = hooks.BeforeAgent[0].hooks[0].command
      const body = { session_id: "s1", cwd: box.project, hook_event_name: "BeforeAgent", prompt: "go" }
      // a CLI starts the shell of its hook, waits for it, and lives on
      const cli = yield* Effect.acquireRelease(
        Effect.sync(() =>
          spawn("sh", ["-c", 'printf %s "$BODY" | sh -c "$HOOK"; sleep 307; :'], {
            env: { PATH: process.env["PATH"], HOME: box.folder, BODY: JSON.stringify(body), HOOK: command },
            stdio: "ignore"
          })
        ),
        (child) => Effect.sync(() => child.kill("SIGKILL"))
      )
      const plates = Effect.map(
        box.cli("ps", "--plates", "--all", "--json"),
        ({ stdout }) => (JSON.parse(stdout).plates ?? JSON.parse(stdout)) as ReadonlyArray<Plate>
      )
      const [plate] = yield* box.until("it works", plates, ([one]) => one?.status === "Running")
      assert.deepStrictEqual([plate!.pid, plate!.detail], [cli.pid, "Gemini CLI: works"])
      cli.kill("SIGKILL")
      yield* box.until("its end is noticed", plates, ([one]) => one?.status === "Closed")
    })
  )
})
