/**
 * Tests of the environment of a program: what it needs of the daemon's, no other key, no door to what the user has
 * unlocked. The folder of the user's sockets is named, since agentd's own lies there.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, readFileSync } from "node:fs"
import * as Sandbox from "../support/Sandbox.ts"
import { given, named } from "../../src/runs/process/ChildEnvironment.ts"

const daemon = {
  PATH: "/bin",
  HOME: "/home/ada",
  LC_ALL: "C",
  https_proxy: "http://proxy:3128",
  ANTHROPIC_API_KEY: "planted-anthropic",
  OPENAI_API_KEY: "planted-openai",
  GEMINI_API_KEY: "planted-gemini",
  DATABASE_URL: "postgres://ada:planted@db",
  GITHUB_TOKEN: "planted-github",
  SSH_AUTH_SOCK: "/run/ssh",
  DBUS_SESSION_BUS_ADDRESS: "unix:path=/run/bus",
  XDG_RUNTIME_DIR: "/run/user/1",
  NOTIFY_SOCKET: "/run/notify",
  LISTEN_FDS: "1",
  CREDENTIALS_DIRECTORY: "/run/credentials",
  CLAUDE_CODE_SESSION_ID: "outer",
  AGENTD_RUN: "outer"
}
const offline = { PATH: "/bin", HOME: "/home/ada", LC_ALL: "C", XDG_RUNTIME_DIR: "/run/user/1" }
const base = { ...offline, https_proxy: "http://proxy:3128" }

describe("the environment of a program", () => {
  it("holds no key, no socket and no variable of systemd's where the config names none", () => {
    assert.deepStrictEqual(given(daemon), base)
    assert.deepStrictEqual(given(daemon, { program: "/bin/sh" }), base)
    assert.deepStrictEqual(given(daemon, { offline: true }), offline)
  })

  it("holds of all keys that of the coding agent's own provider", () => {
    const keyOf = (program: string) => Object.keys(given(daemon, { program })).filter((name) => name.endsWith("_KEY"))
    assert.deepStrictEqual(keyOf("/opt/bin/claude"), ["ANTHROPIC_API_KEY"])
    assert.deepStrictEqual(keyOf("codex"), ["OPENAI_API_KEY"])
    assert.deepStrictEqual(keyOf("gemini"), ["GEMINI_API_KEY"])
    assert.deepStrictEqual(keyOf("opencode"), [])
  })

  it("holds no session of the Claude Code in which the daemon was started", () => {
    assert.isUndefined(given(daemon, { program: "claude" })["CLAUDE_CODE_SESSION_ID"])
  })

  it("holds what passEnv names, and never a variable of agentd's own", () => {
    const passEnv = ["GITHUB_TOKEN", "AGENTD_RUN"]
    assert.deepStrictEqual(given(daemon, { passEnv }), { ...base, GITHUB_TOKEN: "planted-github" })
    assert.deepStrictEqual(named(daemon, passEnv), { GITHUB_TOKEN: "planted-github" })
  })
})

it.live("an agent of a real daemon sees neither the daemon's keys nor the way to ssh-agent", () =>
  Effect.gen(function* () {
    const box = yield* Sandbox.make()
    Object.assign(box.environment, { PLANTED_TOKEN: "planted", SSH_AUTH_SOCK: "/run/ssh", HANDED: "over" })
    const shell = "cat > /dev/null; env > seen"
    box.configure({ agents: { a: { backend: { type: "command", shell, passEnv: ["HANDED"] } } } })
    yield* box.up()
    yield* box.untilAgent("a", "waits", ({ state }) => state === "BuildingPrompt")
    yield* box.cli("send", "a", "look")
    yield* box.until(
      "it has looked",
      Effect.sync(() => existsSync(box.file("seen"))),
      (seen) => seen
    )
    yield* box.until("its turn is over", box.runes("turn.completed"), (runes) => runes.length === 1)
    const seen = readFileSync(box.file("seen"), "utf8")
    assert.match(seen, /^HANDED=over$/m)
    assert.match(seen, /^PATH=/m)
    assert.notMatch(seen, /planted|SSH_AUTH_SOCK/)
  }).pipe(Effect.scoped)
)
