/** The one-time link of `agentd open`: other users read every process's arguments, and it must be in none. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { spawn, spawnSync } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { call } from "../../src/api/rpc/ControlClient.ts"
import { PROGRAM } from "../support/Program.ts"
import * as Sandbox from "../support/Sandbox.ts"

const isThere = spawnSync("script", ["--version"]).status === 0
const onTerminal = isThere ? it.live : it.live.skip
if (!isThere) console.warn("SKIPPED: a terminal for agentd open needs script (util-linux)")

/** Arguments of all processes of this machine. */
const lines = (): ReadonlyArray<string> =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        return [readFileSync(`/proc/${pid}/cmdline`, "utf8")]
      } catch {
        return []
      }
    })

/** A desktop's opener, which keeps what it is given and what a browser would find there, and then does as it is told. */
const opener = (box: Sandbox.Sandbox, does: string): string => {
  const bin = join(box.folder, "bin")
  mkdirSync(bin)
  writeFileSync(
    join(bin, "xdg-open"),
    `#!/bin/sh
printf '%s\\n' "$@" > "${box.folder}/given"
stat -c %a "$1" "$(dirname "$1")" > "${box.folder}/modes"
cat "$1" > "${box.folder}/found.new" && mv "${box.folder}/found.new" "${box.folder}/found"
${does}
`
  )
  chmodSync(join(bin, "xdg-open"), 0o755)
  return bin
}

/** Types `agentd open` on a terminal of a desktop; answers what it printed. */
const opened = (box: Sandbox.Sandbox, bin: string) =>
  Effect.callback<string>((resume) => {
    const command = `"${process.execPath}" "${PROGRAM}" --state "${box.state}" open`
    const child = spawn("script", ["-qec", command, "/dev/null"], {
      cwd: box.project,
      env: { ...process.env, PATH: `${bin}:${process.env["PATH"]}`, DISPLAY: ":99", NO_COLOR: "1" },
      stdio: ["pipe", "pipe", "inherit"]
    })
    let said = ""
    child.stdout.on("data", (chunk) => (said += chunk))
    child.on("close", () => resume(Effect.succeed(said)))
  })

const begun = Effect.gen(function* () {
  const box = yield* Sandbox.make()
  box.configure({ agents: {} })
  yield* box.up()
  return box
})

const left = (box: Sandbox.Sandbox) => readdirSync(box.state).filter((name) => name.startsWith("open-"))

describe("the link of agentd open", () => {
  onTerminal(
    "is in no process's arguments, and in a file that only its person reads, which is gone once it is used",
    () =>
      Effect.gen(function* () {
        const box = yield* begun
        const bin = opener(box, "sleep 1")
        const seen: Array<string> = []
        const watch = setInterval(() => seen.push(...lines()), 20)
        const opening = yield* Effect.forkChild(opened(box, bin))
        yield* box.until(
          "the browser has its file",
          Effect.sync(() => existsSync(join(box.folder, "found"))),
          Boolean
        )
        seen.push(...lines())
        const found = readFileSync(join(box.folder, "found"), "utf8")
        const code = /#open=([\w.-]+)/.exec(found)?.[1] ?? ""
        assert.isAbove(code.length, 40, found)
        // as the page does that claims it
        yield* call(join(box.state, "control.sock"), (client) =>
          client.Grant({ right: "act", label: "page", caller: { by: "ada", config: null } })
        )
        const said = yield* Fiber.join(opening)
        clearInterval(watch)
        assert.include(said, "Opened in your browser")
        assert.notInclude(readFileSync(join(box.folder, "given"), "utf8"), code)
        assert.deepStrictEqual(
          seen.filter((line) => line.includes(code)),
          []
        )
        assert.strictEqual(readFileSync(join(box.folder, "modes"), "utf8"), "600\n700\n")
        assert.deepStrictEqual(left(box), [])
      })
  )

  onTerminal("is told on the terminal where the desktop has no browser, and nothing is left", () =>
    Effect.gen(function* () {
      const box = yield* begun
      const said = yield* opened(box, opener(box, "exit 3"))
      assert.include(said, "The link works once, and expires after two minutes")
      assert.match(said, /#open=[\w.-]{40,}/)
      assert.deepStrictEqual(left(box), [])
    })
  )
})
