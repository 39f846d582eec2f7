import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { decide, keyOf } from "../../../src/agents/actors/Approval.ts"
import { ApprovalPolicy } from "../../../src/config/AgentConfig.ts"

const policy = Schema.decodeUnknownSync(ApprovalPolicy)
const verdict = (settings: object, tool: string, readOnly = false) => decide(policy(settings), { tool, readOnly })._tag

describe("Approval", () => {
  it("mode × side effects", () => {
    const row = (mode: string) => [verdict({ mode }, "Read", true), verdict({ mode }, "Write")]
    assert.deepStrictEqual(row("read_only"), ["Run", "Deny"])
    assert.deepStrictEqual(row("auto"), ["Run", "Ask"])
    assert.deepStrictEqual(row("full_access"), ["Run", "Run"])
    assert.strictEqual(verdict({}, "Write"), "Ask", "auto is the default")
  })

  it("a tool's own always or never wins over the mode, and always over never", () => {
    assert.strictEqual(verdict({ mode: "full_access", always: ["Bash"] }, "Bash"), "Ask")
    assert.strictEqual(verdict({ mode: "read_only", never: ["Bash"] }, "Bash"), "Run")
    assert.strictEqual(verdict({ always: ["Bash"], never: ["*"] }, "Bash"), "Ask")
    assert.strictEqual(verdict({ always: ["Read"] }, "Read", true), "Ask")
  })

  it("a question to a person is put to one in every mode, unless never names its tool", () => {
    const choice = (settings: object) =>
      decide(policy(settings), { tool: "Choose", readOnly: true, asksToChoose: true })._tag
    assert.deepStrictEqual(
      ["read_only", "auto", "full_access"].map((mode) => choice({ mode })),
      ["Ask", "Ask", "Ask"]
    )
    assert.strictEqual(choice({ never: ["Choose"] }), "Run")
  })

  it("a star stands for any text, and for nothing else", () => {
    const named = (pattern: string, tool: string) => verdict({ never: [pattern] }, tool) === "Run"
    assert.isTrue(named("mcp__*", "mcp__shop__buy"))
    assert.isTrue(named("*__buy", "mcp__shop__buy"))
    assert.isTrue(named("mcp__*__buy", "mcp__shop__buy"))
    assert.isTrue(named("a*b*c", "axxbxxc"))
    assert.isFalse(named("a*b*c", "axxcxxb"))
    assert.isFalse(named("ab*ba", "aba"))
    assert.isFalse(named("B.sh", "Bash"))
    assert.isFalse(named("bash", "Bash"))
    const hostile = "a".repeat(10_000)
    assert.isFalse(named(`${"*a".repeat(500)}*b`, hostile))
  })

  it("agentd's own voice asks nobody, and a name alone makes no tool its own", () => {
    const voice = (tool: string) => decide(policy({ mode: "read_only" }), { tool, readOnly: false, voice: true })._tag
    assert.strictEqual(voice("mcp__agentd__report"), "Run")
    assert.strictEqual(verdict({ mode: "read_only" }, "mcp__agentd__report"), "Deny")
    assert.strictEqual(verdict({}, "agentd__inbox"), "Ask")
  })

  it("what nothing holds in its workspace asks, whatever the config says", () => {
    const asks = (settings: object) =>
      decide(policy(settings), { tool: "shell", readOnly: false, asksAlways: true })._tag
    assert.deepStrictEqual([asks({ mode: "full_access" }), asks({ never: ["shell"] })], ["Ask", "Ask"])
  })

  it("calls are the same by tool and arguments", () => {
    assert.strictEqual(keyOf("a", { b: 1 }), keyOf("a", { b: 1 }))
    assert.notStrictEqual(keyOf("a", { b: 1 }), keyOf("a", { b: 2 }))
    assert.notStrictEqual(keyOf("a", null), keyOf("b", null))
  })
})
