import { assert, describe, it } from "@effect/vitest"
import { decide } from "../../../src/approvals/Decision.ts"
import { type ReportedCall, subjectOf } from "../../../src/agents/run/CallSubject.ts"

const ROOT = "/home/user/project"
const subject = (tool: string, given: unknown, rest: Partial<ReportedCall> = {}) =>
  subjectOf({ tool, arguments: given, readOnly: false, ...rest }, ROOT)
const verdict = (tool: string, given: unknown) =>
  decide(subject(tool, given), { mode: "auto", rules: [], root: ROOT }).verdict

describe("CallSubject", () => {
  it("is the line of each CLI's shell", () => {
    const calls: ReadonlyArray<readonly [tool: string, given: object]> = [
      // Claude Code 2, and by ACP
      ["Bash", { command: "git status", description: "look", timeout: 5000, run_in_background: false }],
      // Codex 0.171
      ["shell", { command: "/bin/bash -lc 'git status'", cwd: ROOT }],
      // opencode 1.18, and Copilot 1.0 by ACP
      ["execute", { command: "git status" }],
      ["execute", { command: "git status", commands: ["git status"] }],
      // Qwen 0.24
      ["execute", { command: "git status", is_background: false, description: "look" }],
      // a command that agentd runs for an ACP agent
      ["terminal/create", { command: "git", args: ["status"], cwd: `${ROOT}/src` }]
    ]
    for (const [tool, given] of calls) {
      assert.strictEqual(subject(tool, given)._tag, "Shell", tool)
      assert.strictEqual(verdict(tool, given), "run", JSON.stringify(given))
    }
  })

  it("a program that was started below the work tree, or elsewhere, names files from there", () => {
    const cat = { tool: "Bash", arguments: { command: "cat key" }, readOnly: false }
    const denied = [{ effect: "deny", subject: { read: "private/**" }, place: { scope: "user", at: null } }] as const
    const from = (start: string) =>
      decide(subjectOf(cat, ROOT, start), { mode: "auto", rules: denied, root: ROOT }).verdict
    assert.deepStrictEqual([from(ROOT), from(`${ROOT}/private`), from("/elsewhere")], ["run", "deny", "ask"])
  })

  it("a search without side effects meets a rule about what it may find", () => {
    const denied = [{ effect: "deny", subject: { read: "private/**" }, place: { scope: "user", at: null } }] as const
    const searched = (tool: string, given: object) =>
      decide(subject(tool, given, { readOnly: true }), { mode: "auto", rules: denied, root: ROOT }).verdict
    assert.strictEqual(searched("Grep", { pattern: "x", path: `${ROOT}/private` }), "ask")
    assert.strictEqual(searched("Grep", { pattern: "x" }), "ask")
    assert.strictEqual(searched("Grep", { pattern: "x", path: "src" }), "run")
    assert.strictEqual(searched("Read", { file_path: `${ROOT}/private/key` }), "deny")
    assert.strictEqual(searched("read_many_files", { paths: ["private/key"] }), "deny")
    assert.strictEqual(searched("execute", { command: "cat private/key" }), "deny")
    assert.strictEqual(searched("TaskList", {}), "run")
  })

  it("an argv is its words, not a text", () => {
    assert.strictEqual(verdict("terminal/create", { command: "git", args: ["log", "$(rm x)"] }), "run")
    assert.strictEqual(verdict("terminal/create", { command: "sh", args: ["-c", "git log $(rm x)"] }), "ask")
  })

  it("what a call sets besides, and that is not known, is asked", () => {
    assert.strictEqual(verdict("Bash", { command: "git status", dangerouslyDisableSandbox: true }), "ask")
    assert.strictEqual(verdict("shell", { command: "ls", additionalPermissions: { network: true } }), "ask")
    assert.strictEqual(verdict("terminal/create", { command: "ls", env: [{ name: "PATH", value: "." }] }), "ask")
    assert.strictEqual(verdict("execute", { command: "ls", commands: ["ls", "rm a"] }), "ask")
    assert.strictEqual(verdict("shell", { command: "ls", cwd: "/etc" }), "ask")
    assert.strictEqual(verdict("shell", { command: "ls", cwd: "../other" }), "ask")
  })

  it("Gemini tells a title of a command: no rule allows it, and one that denies still meets it", () => {
    const call = subject("execute", { title: "ls", locations: [] })
    assert.strictEqual(decide(call, { mode: "auto", rules: [] }).verdict, "ask")
    const denied = [{ effect: "deny", subject: { command: "ls" }, place: { scope: "user", at: null } }] as const
    assert.strictEqual(decide(call, { mode: "auto", rules: denied }).verdict, "deny")
  })

  it("files, addresses and other tools", () => {
    assert.deepInclude(subject("Edit", { file_path: `${ROOT}/src/a.ts`, old_string: "a", new_string: "b" }), {
      _tag: "Files",
      access: "writes",
      paths: [`${ROOT}/src/a.ts`]
    })
    const changes = [{ path: "a", kind: { type: "update", move_path: "b" }, diff: "" }]
    assert.deepInclude(subject("apply_patch", { changes }), { _tag: "Files", paths: [`${ROOT}/a`, `${ROOT}/b`] })
    assert.strictEqual(subject("apply_patch", { changes, grantRoot: "/" })._tag, "Tool")
    assert.strictEqual(subject("apply_patch", { changes: [{}] })._tag, "Tool")
    assert.deepInclude(subject("Read", { file_path: "/etc/hosts" }, { readOnly: true }), {
      access: "reads",
      free: true
    })
    assert.deepInclude(subject("WebFetch", { url: "https://a.example", prompt: "x" }), { _tag: "Fetch" })
    assert.deepInclude(subject("mcp__a__Bash", { command: "ls" }), { _tag: "Tool", named: true })
    assert.deepInclude(subject("edit", { title: "many files" }), { _tag: "Tool", named: false })
    assert.deepInclude(subject("write_stdin", { chars: "ls\n" }), { _tag: "Tool", named: false })
  })
})
