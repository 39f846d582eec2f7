/** Calls one after the other in a shell that keeps its folder between them, as that of Claude Code does. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { decide as approve } from "../../src/agents/actors/Approval.ts"
import { movedBy, subjectOf } from "../../src/agents/run/CallSubject.ts"
import { decide } from "../../src/approvals/Decision.ts"
import type { Folders } from "../../src/approvals/Reading.ts"
import { folder } from "../support/Scratch.ts"
import { RULES, type Sequence, SEQUENCES } from "./approvals/EleventhRound.ts"
import { SEQUENCES as TWELFTH } from "./approvals/TwelfthRound.ts"

const ROOT = "/repo"
const bash = (command: string) => ({ tool: "Bash", arguments: { command }, readOnly: false })

const stoodAfter = (calls: ReadonlyArray<string>) =>
  calls.reduce((folders: Folders, command) => movedBy(bash(command), ROOT, folders), [""])

const verdictOf = (before: ReadonlyArray<string>, last: string) =>
  decide(subjectOf({ ...bash(last), stood: { folders: stoodAfter(before) } }, ROOT), {
    mode: "auto",
    root: ROOT,
    rules: RULES
  }).verdict

const wrong = (sequences: ReadonlyArray<Sequence>) =>
  sequences.filter(({ before, last }) => verdictOf(before, last) === "run")

describe("a shell that keeps its folder", () => {
  it("eleventh round: no call runs that is another one where the shell may stand", () =>
    assert.deepStrictEqual(wrong(SEQUENCES), []))

  it("twelfth round: nor one in another spelling", () => assert.deepStrictEqual(wrong(TWELFTH), []))

  it("a call in a folder that is not denied runs, also behind a call that names the folder in full", () => {
    assert.strictEqual(verdictOf(["cd src"], "cat a.ts"), "run")
    assert.strictEqual(verdictOf(["cd /repo/src && npm test"], "npm test"), "run")
    assert.strictEqual(verdictOf(["npm test", "git status"], "node scripts/gen.js"), "run")
    assert.deepStrictEqual(stoodAfter(["cd /repo/src", "cd /repo/src", "cd /repo/docs"]), ["", "src", "docs"])
  })

  it("a file that is named by its whole path is the same file from every folder", () => {
    for (const before of [["cd src"], ["cd /repo/src && npm test"], ["source .venv/bin/activate"]]) {
      assert.strictEqual(verdictOf(before, "cat /repo/src/a.ts"), "run", before[0])
      assert.strictEqual(verdictOf(before, "cat /repo/private/key"), "deny", before[0])
      assert.strictEqual(verdictOf(before, "cat /repo//private/../private/key"), "deny", before[0])
      assert.strictEqual(verdictOf(before, "cat /repo/notes/a"), "ask", before[0])
      assert.strictEqual(verdictOf(before, "cat /repo/../etc/passwd"), "ask", before[0])
      assert.strictEqual(verdictOf(before, "cat /repo2/a"), "ask", before[0])
      assert.strictEqual(verdictOf(before, "cat /repo/.env"), "ask", before[0])
      assert.strictEqual(verdictOf(before, "touch /repo/locked/a"), "deny", before[0])
      assert.strictEqual(verdictOf(before, "/repo/bin/tool"), "ask", before[0])
    }
    assert.strictEqual(verdictOf(["cd src"], "echo x > /repo/out.txt"), "run")
    assert.strictEqual(verdictOf(["cd src"], "echo x > out.txt"), "ask")
    assert.strictEqual(verdictOf(["cd /repo/src && npm test"], "cd /repo/src && npm test"), "run")
  })

  it("more than 8 folders are not known", () => {
    const names = ["a", "b", "c", "d", "e", "f", "g"]
    const steps = names.map((name) => `cd /repo/${name}`)
    assert.strictEqual(stoodAfter(steps)?.length, 8)
    assert.strictEqual(stoodAfter([...steps, "cd /repo/h"]), undefined)
  })

  it("a search without a path meets a rule about where the shell may stand", () => {
    const grep = { tool: "Grep", arguments: { pattern: "x" }, readOnly: true }
    const from = (folders: Folders) =>
      decide(subjectOf({ ...grep, stood: { folders } }, ROOT), { mode: "auto", root: ROOT, rules: RULES }).verdict
    assert.deepStrictEqual([from(["", "private"]), from(undefined)], ["ask", "ask"])
  })
})

describe("a bare repository that a checkout brings", () => {
  const config = { approvals: { mode: "auto", inside: "ask" }, backend: { type: "claude" }, fallback: [] } as never
  const rules = [{ effect: "allow", subject: { command: "git status" }, place: { scope: "agent", at: null } }] as const

  it.effect("has settings that git obeys below its folder, which no rule allows", () =>
    Effect.gen(function* () {
      const root = yield* folder("agentd-bare-")
      for (const path of ["vendor/x/objects", "src/a", ".git"]) mkdirSync(join(root, path), { recursive: true })
      for (const path of ["vendor/x/HEAD", ".git/HEAD"]) writeFileSync(join(root, path), "ref: refs/heads/main\n")
      const verdict = (command: string, before: Folders = [""]) =>
        approve(config, rules, { ...bash(command), folder: root, stood: { folders: before } }).verdict
      for (const line of [
        "cd vendor/x && git status",
        "cd vendor/x/objects; git log -1",
        "cd vendor/x; timeout 5 git diff"
      ])
        assert.strictEqual(verdict(line), "ask", line)
      assert.strictEqual(verdict("git status", ["", "vendor/x"]), "ask")
      for (const line of ["git status", "cd src/a && git status", "cd vendor && git log", "cd vendor/x && ls"])
        assert.strictEqual(verdict(line), "run", line)
    })
  )
})
