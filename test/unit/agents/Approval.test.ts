import { assert, describe, it } from "@effect/vitest"
import { type Call, decide, keyOf } from "../../../src/agents/actors/Approval.ts"
import type { Rule } from "../../../src/approvals/Rule.ts"

interface Settings {
  readonly mode?: "read_only" | "auto" | "full_access"
  readonly always?: ReadonlyArray<string>
  readonly never?: ReadonlyArray<string>
}

const named = (effect: "allow" | "ask", tools: ReadonlyArray<string> = []): ReadonlyArray<Rule> =>
  tools.map((tool) => ({ effect, subject: { tool }, place: { scope: "agent", at: null } }))

/** The verdict about a call by the mode, and by rules as `always` and `never` are. */
const verdict = ({ always, mode = "auto", never }: Settings, tool: string, call: Partial<Call> = {}) => {
  const config = { approvals: { mode, inside: "ask" }, backend: { type: "scripted" }, fallback: [] } as never
  const rules = [...named("ask", always), ...named("allow", never)]
  return decide(config, rules, { tool, arguments: {}, readOnly: false, folder: "/home/ann/shop", ...call }).verdict
}

describe("Approval", () => {
  it("mode × side effects", () => {
    const row = (mode: "read_only" | "auto" | "full_access") => [
      verdict({ mode }, "Look", { readOnly: true }),
      verdict({ mode }, "Write")
    ]
    assert.deepStrictEqual(row("read_only"), ["run", "deny"])
    assert.deepStrictEqual(row("auto"), ["run", "ask"])
    assert.deepStrictEqual(row("full_access"), ["run", "run"])
  })

  it("a tool's own always or never wins over the mode, and always over never", () => {
    assert.strictEqual(verdict({ mode: "full_access", always: ["Bash"] }, "Bash"), "ask")
    assert.strictEqual(verdict({ mode: "read_only", never: ["Bash"] }, "Bash"), "run")
    assert.strictEqual(verdict({ always: ["Bash"], never: ["*"] }, "Bash"), "ask")
    assert.strictEqual(verdict({ always: ["Read"] }, "Read", { readOnly: true }), "ask")
  })

  it("a question to a person is put to one in every mode, unless never names its tool", () => {
    const choice = (settings: Settings) => verdict(settings, "Choose", { readOnly: true, asksToChoose: true })
    assert.deepStrictEqual(
      (["read_only", "auto", "full_access"] as const).map((mode) => choice({ mode })),
      ["ask", "ask", "ask"]
    )
    assert.strictEqual(choice({ never: ["Choose"] }), "run")
  })

  it("a star stands for any text, and for nothing else", () => {
    const named = (pattern: string, tool: string) => verdict({ never: [pattern] }, tool) === "run"
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
    assert.strictEqual(verdict({ mode: "read_only" }, "mcp__agentd__report", { voice: true }), "run")
    assert.strictEqual(verdict({ mode: "read_only" }, "mcp__agentd__report"), "deny")
    assert.strictEqual(verdict({}, "agentd__inbox"), "ask")
  })

  it("what nothing holds in its workspace asks, whatever the config says", () => {
    const asks = (settings: Settings) => verdict(settings, "shell", { asksAlways: true })
    assert.deepStrictEqual([asks({ mode: "full_access" }), asks({ never: ["shell"] })], ["ask", "ask"])
    assert.strictEqual(asks({ mode: "read_only" }), "ask")
  })

  it("calls are the same by tool and arguments", () => {
    assert.strictEqual(keyOf("a", { b: 1 }), keyOf("a", { b: 1 }))
    assert.notStrictEqual(keyOf("a", { b: 1 }), keyOf("a", { b: 2 }))
    assert.notStrictEqual(keyOf("a", null), keyOf("b", null))
  })
})
