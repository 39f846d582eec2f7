/** CurrentUnit: whose main process this is; and what outlives a unit, under a real systemd of the user's where there is one. */
import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Option } from "effect"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { describe } from "vitest"
import { ownUnit, scopeOf } from "../../../src/systemd/CurrentUnit.ts"
import * as Unit from "../../../src/systemd/Unit.ts"
import * as Stage from "../../support/Stage.ts"
import { hasUserManager } from "./Manager.ts"

const USER = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/agentd.service\n"
const SYSTEM = "12:memory:/x\n0::/system.slice/agentd.service\n"
const given = { INVOCATION_ID: "abc", SYSTEMD_EXEC_PID: "7", NOTIFY_SOCKET: "/run/n" }

describe("ownUnit", () => {
  it("names the unit and the manager that started this very process", () => {
    assert.deepStrictEqual(ownUnit(given, USER, 7), { unit: "agentd.service", manager: "user" })
    assert.deepStrictEqual(ownUnit(given, SYSTEM, 7), { unit: "agentd.service", manager: "system" })
  })

  it("is none of a shell's that inherited a service's variables, nor of a process in a scope or in nothing", () => {
    assert.isUndefined(ownUnit({ ...given, SYSTEMD_EXEC_PID: "6" }, SYSTEM, 7))
    assert.isUndefined(ownUnit({ INVOCATION_ID: "abc" }, SYSTEM, 7))
    assert.isUndefined(ownUnit({}, SYSTEM, 7))
    assert.isUndefined(ownUnit(given, "0::/user.slice/user-1000.slice/session-3.scope\n", 7))
    assert.isUndefined(ownUnit(given, "", 7))
  })

  it("goes by the notify socket where systemd is too old to say whom it started", () => {
    assert.isDefined(ownUnit({ INVOCATION_ID: "abc", NOTIFY_SOCKET: "/run/n" }, SYSTEM, 7))
  })
})

describe("scopeOf", () => {
  const user = { unit: "agentd-1234abcd.service", manager: "user" } as const
  const environment = { XDG_RUNTIME_DIR: "/run/user/1000", SECRET: "s" }

  it("is a delegated scope of the same manager, named after the unit and what it holds", () => {
    const { argv } = scopeOf(user, environment, "keeper-1-77-1")
    assert.includeMembers(
      [...argv],
      ["--user", "--scope", "--unit=agentd-1234abcd-keeper-1-77-1", "--property=Delegate=yes"]
    )
    assert.include(scopeOf({ ...user, manager: "system" }, {}, "keeper-1").argv, "--system")
  })

  it("needs the manager's variables, takes no other, and hands none on", () => {
    const { argv, env } = scopeOf(user, environment, "keeper-1")
    assert.deepStrictEqual(env, { XDG_RUNTIME_DIR: "/run/user/1000" })
    assert.includeMembers(argv.slice(argv.indexOf("--")), ["env", "--unset=XDG_RUNTIME_DIR"])
  })
})

const missing = !hasUserManager
if (missing) console.warn("SKIPPED: what outlives a unit (this machine has no systemd for the user)")

const groupOf = (pid: string): string => readFileSync(`/proc/${pid}/cgroup`, "utf8").trim()

describe.skipIf(missing)("under the user's systemd", () => {
  it.live(
    "a run outlives restart, stop and start, and kill -9 of the daemon's unit, and of the keeper; agentd stop ends it",
    () =>
      Effect.gen(function* () {
        const stage = yield* Stage.keeping
        const { box } = stage
        const shell = `echo $$ > pid; while [ ! -e go ]; do sleep 0.05; done; echo done; cat > /dev/null`
        const shop = stage.home({
          agents: { counter: { backend: { type: "command", shell, promptBy: "stdin", readyAfter: "100ms" } } }
        })
        const unit = Unit.unitName(box.state, "")
        const systemctl = (...args: ReadonlyArray<string>) =>
          Effect.sync(() => spawnSync("systemctl", ["--user", ...args], { encoding: "utf8" }))
        yield* Effect.addFinalizer(() => Effect.ignore(systemctl("stop", unit, `${unit}-*`)))
        const up = shop.until(
          "the daemon is up",
          stage.rpc((client) => client.Agents()).pipe(Effect.option),
          Option.isSome
        )
        const started = yield* box.cli("start")
        assert.strictEqual(started.code, 0, started.stderr)
        yield* up
        yield* shop.register
        yield* shop.send("counter", "count")
        const file = join(shop.root, "counter", "pid")
        yield* shop.until(
          "it runs",
          Effect.sync(() => existsSync(file) && readFileSync(file, "utf8") !== ""),
          Boolean
        )
        const pid = readFileSync(file, "utf8").trim()
        assert.match(groupOf(pid), new RegExp(`/${unit}-keeper-1-\\d+-1\\.scope/`))
        yield* systemctl("restart", unit)
        yield* up
        assert.isTrue(existsSync(`/proc/${pid}`), "after restart")
        yield* systemctl("kill", "--signal=SIGKILL", "--kill-who=main", unit)
        yield* shop.until(
          "systemd has started it again",
          Effect.provide(Unit.status(unit), NodeServices.layer),
          (status) => Option.isSome(status) && status.value.restarts === 1 && status.value.state === "active"
        )
        yield* up
        assert.isTrue(existsSync(`/proc/${pid}`), "after kill -9 of the daemon")
        const keeper = readFileSync(join(box.state, "keeper", "1", "pid"), "utf8").trim()
        process.kill(Number(keeper), "SIGKILL")
        yield* shop.until(
          "another keeper is there",
          Effect.sync(() => readFileSync(join(box.state, "keeper", "1", "pid"), "utf8").trim()),
          (now) => now !== keeper && now !== ""
        )
        assert.isTrue(existsSync(`/proc/${pid}`), "after kill -9 of the keeper")
        yield* systemctl("stop", unit)
        assert.isTrue(existsSync(`/proc/${pid}`), "after stop")
        assert.strictEqual((yield* box.cli("start")).code, 0)
        yield* up
        assert.isTrue(existsSync(`/proc/${pid}`), "after start")
        assert.lengthOf(yield* shop.log("turn.started"), 1)
        const stopped = yield* box.cli("stop", "--yes")
        assert.strictEqual(stopped.code, 0, stopped.stderr)
        assert.isFalse(existsSync(`/proc/${pid}`), "after agentd stop")
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
    60_000
  )
})
