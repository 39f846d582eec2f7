/** Agents that share a login share its trouble; one with a home of its own has a login of its own. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { accountOf } from "../../../src/agents/run/AccountOf.ts"
import { AgentConfig } from "../../../src/config/AgentConfig.ts"

const of = (backend: object) => accountOf(Schema.decodeUnknownSync(AgentConfig)({ backend }).backend)

describe("accountOf", () => {
  const rows: ReadonlyArray<readonly [backend: object, account: string]> = [
    [{ type: "claude" }, "login"],
    [{ type: "claude", env: { HOME: "/one" } }, "/one"],
    [{ type: "claude", env: { HOME: "/one", CLAUDE_CONFIG_DIR: "/two" } }, "/two"],
    [{ type: "claude", provider: { api: "anthropic", keyEnv: "K" }, env: { HOME: "/one" } }, "K"],
    [{ type: "acp", argv: ["opencode", "acp"] }, "login"],
    [{ type: "acp", argv: ["opencode", "acp"], env: { HOME: "/one" } }, "/one"],
    [{ type: "exec", argv: ["codex"], env: { HOME: "/one" } }, "/one"]
  ]
  it.each(rows)("%j: %s", (backend, account) => assert.strictEqual(of(backend)?.account, account))
})
