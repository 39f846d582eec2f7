/** Unit: names, arguments and answers as pure functions; and one real service where a user's systemd is there. */
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { describe } from "vitest"
import { launch } from "../../../src/systemd/DaemonLauncher.ts"
import * as Unit from "../../../src/systemd/Unit.ts"
import { hasUserManager } from "./Manager.ts"

describe("unitName", () => {
  it("is agentd for the default state folder, and another name for every other", () => {
    assert.strictEqual(Unit.unitName("/home/a/.local/state/agentd", "/home/a/.local/state/agentd"), "agentd")
    assert.match(Unit.unitName("/tmp/one", "/x"), /^agentd-[0-9a-f]{8}$/)
    assert.notStrictEqual(Unit.unitName("/tmp/one", "/x"), Unit.unitName("/tmp/two", "/x"))
  })
})

describe("passedOn", () => {
  it("passes the environment on, without what describes the shell and what systemd refuses", () => {
    const env = {
      PATH: "/bin",
      API_KEY: "k",
      MULTI: "a\n\tb",
      PWD: "/",
      NOTIFY_SOCKET: "/run/x",
      "BASH_FUNC_f%%": "() { :; }",
      ESCAPES: "\u001b[1m"
    }
    assert.deepStrictEqual(Unit.passedOn(env), ["API_KEY", "MULTI", "PATH"])
  })
})

describe("systemdRunArguments", () => {
  const args = Unit.systemdRunArguments({
    unit: "agentd-1234abcd",
    command: ["/opt/agentd", "up", "--state", "/s"],
    cwd: "/project",
    env: { API_KEY: "secret" }
  })

  it("ends with the command, after a double dash", () => {
    assert.deepStrictEqual(args.slice(-5), ["--", "/opt/agentd", "up", "--state", "/s"])
  })

  it("names the unit, its folder and every setting", () => {
    assert.includeMembers(
      [...args],
      [
        "--user",
        "--unit=agentd-1234abcd",
        "--working-directory=/project",
        "--property=Type=notify",
        "--property=NotifyAccess=all",
        "--property=RestartPreventExitStatus=78",
        "--property=KillMode=mixed",
        "--property=OOMPolicy=continue",
        "--property=StartLimitBurst=10"
      ]
    )
  })

  it("holds no variable's value", () => {
    assert.include(args, "--setenv=API_KEY")
    assert.notInclude(args.join(" "), "secret")
  })
})

describe("parseStatus", () => {
  it("reads a transient unit that systemd gave up on", () => {
    const text =
      "Result=exit-code\nNRestarts=3\nMainPID=0\nExecMainStatus=78\nLoadState=loaded\nActiveState=failed\nFragmentPath=/run/a=b\nTransient=yes\n"
    assert.deepStrictEqual(Option.getOrThrow(Unit.parseStatus("agentd", text)), {
      unit: "agentd",
      installed: false,
      state: "failed",
      result: "exit-code",
      exitCode: 78,
      pid: undefined,
      restarts: 3
    })
  })

  it("answers none for a unit that systemd does not know", () => {
    assert.isTrue(Option.isNone(Unit.parseStatus("agentd", "LoadState=not-found\nActiveState=inactive\n")))
  })
})

if (!hasUserManager) console.warn("SKIPPED: a real service (this machine has no systemd for the user)")

describe.skipIf(!hasUserManager)("under the user's systemd", () => {
  const service = (script: string) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        // Not below /tmp: what systemd runs may have one of its own.
        const folder = mkdtempSync(join(process.env["XDG_RUNTIME_DIR"] ?? tmpdir(), "agentd-unit-"))
        const program = join(folder, "daemon")
        writeFileSync(program, script)
        const env = Object.fromEntries(
          Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
        )
        return {
          unit: Unit.unitName(folder, ""),
          command: ["/bin/sh", program],
          cwd: folder,
          env,
          log: join(folder, "log"),
          folder
        }
      }),
      ({ folder, unit }) =>
        Effect.sync(() => {
          spawnSync("systemctl", ["--user", "stop", unit])
          spawnSync("systemctl", ["--user", "reset-failed", unit])
          rmSync(folder, { recursive: true })
        })
    )

  it.live("launch returns when the service said it is ready; a second one leaves it alone", () =>
    Effect.gen(function* () {
      const options = yield* service("systemd-notify READY=1\nexec sleep 1000\n")
      assert.deepStrictEqual(yield* launch(options), { _tag: "Systemd", unit: options.unit })
      const first = Option.getOrThrow(yield* Unit.status(options.unit))
      assert.strictEqual(first.state, "active")
      yield* launch(options)
      assert.deepStrictEqual(Option.getOrThrow(yield* Unit.status(options.unit)), first)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.live("a configuration error is told once, and the next launch is not refused for it", () =>
    Effect.gen(function* () {
      const options = yield* service("exit 78\n")
      const error = yield* Effect.flip(launch(options))
      assert.include(error.message, "exit code 78")
      assert.strictEqual(Option.getOrThrow(yield* Unit.status(options.unit)).restarts, 0)
      writeFileSync(options.command[1] ?? "", "systemd-notify READY=1\nexec sleep 1000\n")
      yield* launch(options)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
