/**
 * FileTools and SearchTool: what a model is told, and that nothing it asks hangs or leaves.
 */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema, type Scope } from "effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import type { FileFailed } from "../../../src/runs/sandbox/PathContainment.ts"
import * as FileTools from "../../../src/model-agent/FileTools.ts"
import * as SearchTool from "../../../src/model-agent/SearchTool.ts"
import * as Workspace from "../../../src/runs/sandbox/Workspace.ts"
import { layer } from "../../support/backend-run.ts"
import { call, SECRET, yard } from "../../support/toolbox.ts"

const tools = Effect.gen(function* () {
  const { root, outside } = yield* yard
  const workspace = yield* Workspace.open(root)
  const file = (name: string, text: string | Buffer) => {
    fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true })
    fs.writeFileSync(path.join(root, name), text)
  }
  return {
    root,
    outside,
    file,
    read: FileTools.read(workspace),
    write: FileTools.write(workspace),
    edit: FileTools.edit(workspace),
    list: FileTools.list(workspace),
    search: SearchTool.make(workspace)
  }
})
type Tools = Effect.Success<typeof tools>

const live = (name: string, body: (tools: Tools) => Effect.Effect<void, FileFailed, Scope.Scope>) =>
  it.live(name, () => Effect.scoped(Effect.flatMap(tools, body)).pipe(Effect.provide(layer)))

describe("INV-TOOL-SANDBOX: a file tool that is asked to leave the workspace", () => {
  live("answers sandbox_violation, says what to do instead, and tells nothing of what is there", (tools) =>
    Effect.gen(function* () {
      fs.symlinkSync(tools.outside, `${tools.root}/out`)
      for (const path of [
        "../../outside/secret",
        `${tools.outside}/secret`,
        "out/secret",
        "/etc/passwd",
        "../../outside/none"
      ]) {
        for (const outcome of [
          yield* call(tools.read, { path }),
          yield* call(tools.write, { path, text: "x" }),
          yield* call(tools.edit, { path, old: "the", new: "x" }),
          yield* call(tools.search, { pattern: "secret", path })
        ]) {
          // what does not exist behind a link is only said not to exist
          assert.strictEqual(outcome.status, "sandbox_violation", path)
          assert.match(outcome.output, /inside the workspace/)
          assert.notInclude(outcome.output, SECRET)
        }
      }
      assert.strictEqual((yield* call(tools.list, { path: "out" })).status, "sandbox_violation")
      assert.strictEqual((yield* call(tools.list, { path: "../.." })).status, "sandbox_violation")
      assert.notInclude((yield* call(tools.search, { pattern: SECRET })).output, `:${SECRET}`)
      assert.notInclude((yield* call(tools.list, { depth: 20 })).output, "out/")
      assert.strictEqual(fs.readFileSync(`${tools.outside}/secret`, "utf8"), SECRET)
    })
  )

  live("input of the wrong form is an outcome that names the field", (tools) =>
    Effect.gen(function* () {
      for (const [input, field] of [
        [{}, "path"],
        [{ path: 3 }, "path"],
        [{ path: "a", line: 0 }, "line"],
        [{ path: "a", lines: 1 }, "lines"],
        [{ path: "a\0b" }, "path"]
      ] as const) {
        const { status, output } = yield* call(tools.read, input)
        assert.strictEqual(status, "error")
        assert.include(output, field)
      }
      for (const input of [null, "text", []]) assert.strictEqual((yield* call(tools.read, input)).status, "error")
    })
  )
})

describe("read", () => {
  live("numbers the lines, says where it stopped and how to go on", (tools) =>
    Effect.gen(function* () {
      tools.file("a", Array.from({ length: 3000 }, (_, index) => `line ${index + 1}\n`).join(""))
      const first = yield* call(tools.read, { path: "a" })
      assert.include(first.output, "1\tline 1\n")
      assert.match(first.output, /read on with line 2001\]$/)
      const last = yield* call(tools.read, { path: "a", line: 2999 })
      assert.strictEqual(last.output, "2999\tline 2999\n3000\tline 3000")
      tools.file("empty", "")
      assert.strictEqual((yield* call(tools.read, { path: "empty" })).output, "[the file is empty]")
      tools.file("long", "x".repeat(1_000_000))
      assert.isBelow((yield* call(tools.read, { path: "long" })).output.length, 70_000)
    })
  )

  live("refuses binary files, folders and pipes politely and at once", (tools) =>
    Effect.gen(function* () {
      tools.file("image", Buffer.from([137, 80, 78, 71, 0, 1]))
      execFileSync("mkfifo", [`${tools.root}/fifo`])
      for (const [path, said] of [
        ["image", /binary file of 6 bytes/],
        ["fifo", /pipe/],
        [".", /folder/],
        ["none", /does not exist/]
      ] as const) {
        const { status, output } = yield* call(tools.read, { path })
        assert.strictEqual(status, "error")
        assert.match(output, said)
      }
    })
  )
})

describe("edit", () => {
  const text = Schema.String.check(Schema.isMaxLength(12))
  it.prop(
    "replaces the one place and no other byte",
    [
      Arbitrary.schema(text),
      Arbitrary.schema(text.check(Schema.isMinLength(1))),
      Arbitrary.schema(text),
      Arbitrary.schema(text)
    ],
    ([before, old, after, fresh]) => {
      const whole = before + old + after
      const result = FileTools.applied(whole, { old, new: fresh })
      const once = whole.split(old).length === 2
      if ("refusal" in result) return assert.isTrue(!once || old === fresh)
      const at = whole.indexOf(old)
      assert.strictEqual(result.text, whole.slice(0, at) + fresh + whole.slice(at + old.length))
    }
  )

  live("says why not: not there, there more than once and where, CR LF, nothing to change", (tools) =>
    Effect.gen(function* () {
      tools.file("a", "one\ntwo\none\n")
      tools.file("crlf", "one\r\ntwo\r\n")
      for (const [input, said] of [
        [{ path: "a", old: "three", new: "x" }, /not in the file/],
        [{ path: "a", old: "one", new: "x" }, /2 times \(lines 1, 3\)/],
        [{ path: "a", old: "one", new: "one" }, /nothing to change/],
        [{ path: "crlf", old: "one\ntwo", new: "x" }, /CR LF/],
        [{ path: "a", old: "", new: "x" }, /old/]
      ] as const) {
        const { status, output } = yield* call(tools.edit, input)
        assert.strictEqual(status, "error")
        assert.match(output, said)
      }
      assert.strictEqual((yield* call(tools.edit, { path: "a", old: "one", new: "$&1", all: true })).status, "success")
      assert.strictEqual(fs.readFileSync(`${tools.root}/a`, "utf8"), "$&1\ntwo\n$&1\n")
    })
  )

  live("leaves alone what is no UTF-8, and keeps a byte order mark", (tools) =>
    Effect.gen(function* () {
      const latin = Buffer.from("caf\xe9 one", "latin1")
      tools.file("latin", latin)
      assert.strictEqual((yield* call(tools.edit, { path: "latin", old: "one", new: "two" })).status, "error")
      assert.deepStrictEqual(fs.readFileSync(`${tools.root}/latin`), latin)
      tools.file("bom", "\ufeffone")
      yield* call(tools.edit, { path: "bom", old: "one", new: "two" })
      assert.strictEqual(fs.readFileSync(`${tools.root}/bom`, "utf8"), "\ufefftwo")
    })
  )
})

describe("list and search", () => {
  live("a name that would break the line is quoted, and the insides of .git are left out", (tools) =>
    Effect.gen(function* () {
      for (const name of ["a\nb", "c/d", ".git/HEAD"]) tools.file(name, "needle")
      assert.strictEqual((yield* call(tools.list, { depth: 5 })).output, '.git/\n"a\\nb"\nc/\nc/d')
      assert.strictEqual((yield* call(tools.search, { pattern: "needle" })).output, '"a\\nb":1:needle\nc/d:1:needle')
    })
  )

  live("search takes a folder, a file, a glob, upper and lower case; skips binary and huge files and pipes", (tools) =>
    Effect.gen(function* () {
      tools.file("src/a.ts", "x\nFoo(1)\r\n")
      tools.file("src/b.md", "foo(2)\n")
      tools.file("bin", "foo\0")
      tools.file("huge", `foo\n${"x".repeat(3_000_000)}`)
      execFileSync("mkfifo", [`${tools.root}/fifo`])
      const found = (input: object) => Effect.map(call(tools.search, input), ({ output }) => output)
      assert.strictEqual(yield* found({ pattern: "foo\\(" }), "src/b.md:1:foo(2)")
      assert.strictEqual(
        yield* found({ pattern: "^foo\\(\\d\\)$", ignoreCase: true }),
        "src/a.ts:2:Foo(1)\nsrc/b.md:1:foo(2)"
      )
      assert.strictEqual(yield* found({ pattern: "foo", ignoreCase: true, glob: "**/*.ts" }), "src/a.ts:2:Foo(1)")
      assert.strictEqual(yield* found({ pattern: "foo", path: "src/b.md" }), "src/b.md:1:foo(2)")
      assert.strictEqual(yield* found({ pattern: "nothing" }), "[no line matches]")
      const { status, output } = yield* call(tools.search, { pattern: "(" })
      assert.strictEqual(status, "error")
      assert.match(output, /Invalid regular expression/)
    })
  )

  live("a pattern that would take for ever is ended by an interrupt, and the daemon goes on meanwhile", (tools) =>
    Effect.gen(function* () {
      tools.file("a", `${"a".repeat(60)}!`)
      const evil = yield* Effect.forkScoped(call(tools.search, { pattern: "^(a+)+$" }))
      // the thread is busy; this one is not
      yield* Effect.sleep("300 millis")
      assert.strictEqual((yield* call(tools.read, { path: "a", limit: 1 })).status, "success")
      assert.isUndefined(evil.pollUnsafe())
      yield* Effect.raceFirst(
        Effect.callback<void>((resume) => {
          evil.addObserver(() => resume(Effect.void))
          evil.interruptUnsafe()
        }),
        Effect.die(new Error("it was not ended")).pipe(Effect.delay("10 seconds"))
      )
    })
  )
})
