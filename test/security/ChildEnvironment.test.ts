/**
 * A program is given what it needs of the daemon's environment: no other key, no door to what the user has unlocked.
 */
import { assert, describe, it } from "@effect/vitest"
import { given } from "../../src/backends/process/ChildEnvironment.ts"

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
const base = { PATH: "/bin", HOME: "/home/ada", LC_ALL: "C", https_proxy: "http://proxy:3128" }

describe("the environment of a program", () => {
  it("holds no key, no socket and no variable of systemd's where the config names none", () => {
    assert.deepStrictEqual(given(daemon), base)
    assert.deepStrictEqual(given(daemon, { program: "/bin/sh" }), base)
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
  })
})
