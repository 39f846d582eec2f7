/** The calls that no rule sees are named, for each backend, and only where a rule denies or asks. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { Rule, RuleEffect } from "../../../src/approvals/Rule.ts"
import { BackendConfig } from "../../../src/config/BackendConfig.ts"
import { unseenBy } from "../../../src/agents/run/Unseen.ts"
import { askingEnvironment } from "../../../src/runs/AcpProgram.ts"

const decode = Schema.decodeUnknownSync(BackendConfig)
const rule = (effect: RuleEffect): Rule => ({
  effect,
  subject: { command: "git push **" },
  place: { scope: "project", at: "agentd.jsonc:3" }
})
const DENY = [rule("allow"), rule("deny")]

const unseen = (backend: object, rules: ReadonlyArray<Rule> = DENY, fallback: ReadonlyArray<object> = []) =>
  unseenBy({ backend: decode(backend), fallback: fallback.map((one) => decode(one)) }, rules)
const words = (backend: object) => unseen(backend).join("\n")
const acp = (argv: ReadonlyArray<string>, more = {}) => words({ type: "acp", argv, ...more })

describe("the calls that no rule sees", () => {
  it("are named only where a rule denies or asks", () => {
    const command = { type: "command", shell: "make" }
    assert.deepStrictEqual(unseen(command, []), [])
    assert.deepStrictEqual(unseen(command, [rule("allow")]), [])
    assert.deepStrictEqual(unseen(command, [rule("ask")]), ["No rule sees any call: its program tells agentd none."])
  })

  it("of Claude Code: what its hooks allow; more if the config names a mode or other settings", () => {
    const [hook, ...more] = unseen({ type: "claude" })
    assert.include(hook, "PermissionRequest hook")
    assert.deepStrictEqual(more, [])
    assert.include(words({ type: "claude", permissionMode: "bypassPermissions" }), "any call of Claude Code")
    const edits = words({ type: "claude", permissionMode: "acceptEdits" })
    assert.include(edits, "edits of files")
    assert.include(edits, "its permissionMode is acceptEdits")
    assert.include(words({ type: "claude", permissionMode: "plan" }), "git status")
    for (const args of [["--settings", "mine.json"], ["--settings=mine.json"]])
      assert.include(words({ type: "claude", args }), "its args have --settings")
  })

  it("of Codex: what its own rules allow; more if the config names a policy", () => {
    assert.include(words({ type: "codex" }), "rules/*.rules")
    assert.notInclude(words({ type: "codex", approvalPolicy: "untrusted" }), "approvalPolicy")
    const never = words({ type: "codex", approvalPolicy: "never", sandboxMode: "workspace-write" })
    assert.include(never, "permits (workspace-write)")
    assert.include(never, "its approvalPolicy is never")
  })

  it("of an ACP agent: by its program, however it is started, and its mode", () => {
    assert.include(acp(["gemini", "--acp"]), "find")
    assert.include(acp(["npx", "-y", "@google/gemini-cli@0.61.0", "--acp"]), "what its settings allow")
    assert.include(acp(["node", "/opt/qwen/qwen.js", "--acp"]), "sort")
    assert.include(acp(["copilot", "--acp"]), "outside the work tree")
    assert.include(acp(["claude-agent-acp"]), "Claude Code")
    assert.include(acp(["codex-acp"]), "sandbox")
    assert.include(acp(["opencode", "acp"]), 'agents ("agent")')
    assert.include(acp(["my-agent"]), "agentd does not know which")
    assert.include(acp(["qwen", "--acp"], { mode: "auto-edit" }), 'the mode "auto-edit"')
    assert.include(acp(["opencode", "acp"], { env: { OPENCODE_PERMISSION: "{}" } }), "its env sets OPENCODE_PERMISSION")
  })

  it("of a model agent are none, and those of fallbacks count, each once", () => {
    const model = { type: "model", provider: "openai", model: "m" }
    assert.deepStrictEqual(unseen(model), [])
    assert.deepStrictEqual(unseen(model, DENY, [{ type: "codex" }, { type: "codex" }]), unseen({ type: "codex" }))
  })
})

describe("the variables with which an ACP agent asks about every call", () => {
  it("are those of opencode, which has no mode that asks, and whose sub-agents ask nobody", () => {
    const { OPENCODE_PERMISSION = "{}" } = askingEnvironment({ argv: ["npx", "opencode-ai@1.18.33", "acp"] })
    const permission = JSON.parse(OPENCODE_PERMISSION)
    assert.strictEqual(permission.task, "deny")
    for (const kind of ["*", "bash", "edit", "read", "webfetch", "external_directory"])
      assert.strictEqual(permission[kind], "ask", kind)
    assert.deepStrictEqual(askingEnvironment({ argv: ["gemini", "--acp"] }), {})
  })
})
