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

const EVENTS = readFileSync(join(import.meta.dirname, "../../fixtures/hooks/opencode-events.jsonl"), "utf8")
  .trim()
  .split("\n")

/** A program that loads the plugin as opencode does, and passes it the events from its input. */
const opencode = (file: string, home: string, words: ReadonlyArray<string> = []) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const program = `import(${JSON.stringify(file)}).then(async ({ Agentd }) => {
        const hooks = await Agentd({})
        for await (const line of require("node:readline").createInterface({ input: process.stdin })) {
          await hooks.event({ event: JSON.parse(line) })
        }
      })`
      const child = spawn(process.execPath, ["-e", program, "opencode", ...words], {
        env: { PATH: process.env["PATH"], HOME: home },
        stdio: ["pipe", "ignore", "ignore"]
      })
      return { child, send: (events: ReadonlyArray<string>) => child.stdin.write(`${events.join("\n")}\n`) }
    }),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  )

/** The events with other ids: those of another session. */
const renamed = (events: ReadonlyArray<string>) => events.map((line) => line.replaceAll("ses_", "ses_2"))

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

  it.live("the plugin of opencode reports while its program runs, also what the daemon was not there to hear", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.environment["HOME"] = box.folder
      box.environment["XDG_CONFIG_HOME"] = join(box.folder, "config")
      box.configure({ agents: { builder: { autostart: false, backend: { type: "command", shell: "cat" } } } })
      assert.strictEqual((yield* box.cli("hooks", "install", "--agent", "opencode", "--yes")).code, 0)
      const file = join(box.folder, "config", "opencode", "plugin", "agentd.js")
      const first = yield* opencode(file, box.folder)
      // of another version: nothing of this can be read
      first.send(['{"type":"message.part.updated","properties":{}}', '{"type":"permission.asked","properties":{}}'])
      first.send(EVENTS.slice(0, 3))
      yield* box.up()
      const plates = Effect.map(
        box.cli("ps", "--plates", "--all", "--json"),
        ({ stdout }) => (JSON.parse(stdout).plates ?? JSON.parse(stdout)) as ReadonlyArray<Plate>
      )
      const told = (says: string) =>
        box.until(says, plates, (rows) => rows.some(({ detail }) => detail === `opencode: ${says}`))
      const [row] = yield* told("runs bash")
      assert.deepStrictEqual([row!.status, row!.pid], ["Running", first.child.pid])
      first.send(EVENTS.slice(3, 8))
      yield* told("asks to use bash, and 1 more")
      first.send(EVENTS.slice(8, 11))
      yield* told("asks to use bash")
      // another one in the same folder
      const second = yield* opencode(file, box.folder)
      yield* told("waits for a prompt")
      second.send(renamed(EVENTS.slice(0, 3)))
      yield* told("runs bash")
      assert.lengthOf(yield* plates, 2)
      first.child.kill("SIGKILL")
      const rows = yield* box.until("its end is noticed", plates, (all) => all.some((one) => one.status === "Closed"))
      assert.deepStrictEqual(
        rows.map(({ status }) => status),
        ["Running", "Closed"]
      )
      second.send(renamed(EVENTS.slice(8)))
      yield* told("waits for a prompt")
    })
  )

  it.live("the sessions of a server of opencode have a row each", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      box.environment["HOME"] = box.folder
      box.environment["XDG_CONFIG_HOME"] = join(box.folder, "config")
      box.configure({ agents: { builder: { autostart: false, backend: { type: "command", shell: "cat" } } } })
      yield* box.up()
      assert.strictEqual((yield* box.cli("hooks", "install", "--agent", "opencode", "--yes")).code, 0)
      const file = join(box.folder, "config", "opencode", "plugin", "agentd.js")
      const { child, send } = yield* opencode(file, box.folder, ["serve"])
      send(EVENTS)
      send(renamed(EVENTS.slice(0, 4)))
      const plates = Effect.map(
        box.cli("ps", "--plates", "--all", "--json"),
        ({ stdout }) => (JSON.parse(stdout).plates ?? JSON.parse(stdout)) as ReadonlyArray<Plate>
      )
      const rows = yield* box.until("both are known", plates, (all) =>
        ["AwaitingApproval", "Idle"].every((status) => all.some((one) => one.status === status))
      )
      assert.isTrue(rows.every(({ pid }) => pid === child.pid))
    })
  )
})
