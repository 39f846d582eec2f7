/**
 * Questions that no answer may tell: whether something exists where an agent may not look, asked by a link; which agents
 * other projects have, asked by a name that nobody has.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Workspace from "../../src/runs/sandbox/Workspace.ts"
import * as Sandbox from "../support/Sandbox.ts"

const LINUX = process.platform === "linux"

const ground = Effect.acquireRelease(
  Effect.sync(() => {
    const base = mkdtempSync(join(tmpdir(), "agentd-oracle-"))
    const [root, outside] = [join(base, "work"), join(base, "home")]
    mkdirSync(join(outside, "folder"), { recursive: true })
    mkdirSync(join(root, "secret"), { recursive: true })
    writeFileSync(join(outside, "file"), "x")
    writeFileSync(join(outside, "folder", "inner"), "x")
    writeFileSync(join(root, "secret", "there"), "x")
    writeFileSync(join(root, "own"), "x")
    return { base, root, outside }
  }),
  ({ base }) => Effect.sync(() => rmSync(base, { recursive: true }))
)

/** Every way to ask for a path, and the answer without the name that was asked for. */
const answers = Effect.fnUntraced(function* (workspace: Workspace.Workspace, name: string) {
  const asked = {
    read: workspace.read(name, { maxBytes: 10, line: undefined, limit: undefined }),
    whole: workspace.whole(name, 10),
    write: workspace.write(name, "y"),
    list: workspace.list(name, { maxEntries: 10 }),
    folder: workspace.folder(name)
  }
  return yield* Effect.forEach(Object.entries(asked), ([how, effect]) =>
    Effect.match(effect as Effect.Effect<unknown, { readonly _tag: string; readonly message: string }>, {
      onSuccess: () => `${how}: done`,
      onFailure: ({ _tag, message }) => `${how}: ${_tag} ${message.replace(name, "NAME")}`
    })
  )
})

describe.skipIf(!LINUX)("a link that leads out of the workspace", () => {
  it.live(
    "is refused alike whether a file, a folder, nothing, or a loop is there, itself and with names below it",
    () =>
      Effect.gen(function* () {
        const { base, outside, root } = yield* ground
        const workspace = yield* Workspace.open(root)
        symlinkSync("loop", join(outside, "loop"))
        const targets = [
          "file",
          "folder",
          "missing",
          "missing/deeper",
          "file/below",
          "folder/inner",
          "folder/none",
          "loop"
        ]
        const seen = new Map<string, ReadonlyArray<string>>()
        for (const [index, target] of targets.entries()) {
          symlinkSync(join(outside, target), join(root, `absolute${index}`))
          symlinkSync(join("..", "home", target), join(root, `relative${index}`))
          symlinkSync(join(root, "..", "home", target), join(root, `dotted${index}`))
          for (const how of ["absolute", "relative", "dotted"]) {
            seen.set(`${how} ${target}`, yield* answers(workspace, `${how}${index}`))
            seen.set(`${how} ${target} below`, yield* answers(workspace, `${how}${index}/below`))
          }
        }
        symlinkSync(outside, join(root, "home"))
        for (const target of targets) seen.set(`through ${target}`, yield* answers(workspace, `home/${target}`))
        const [first] = seen.values()
        for (const [what, said] of seen) assert.deepStrictEqual(said, first, what)
        assert.isTrue(first?.every((said) => said.endsWith("WorkspaceViolation NAME leads out of the workspace")))
        rmSync(join(base, "work", "home"))
      })
  )

  it.live("beside one that leads nowhere within it, which is said to be missing", () =>
    Effect.gen(function* () {
      const { root } = yield* ground
      const workspace = yield* Workspace.open(root)
      symlinkSync("none", join(root, "dangling"))
      symlinkSync(join(root, "none"), join(root, "far"))
      for (const name of ["dangling", "far", "none"]) {
        const [read] = yield* answers(workspace, name)
        assert.strictEqual(read, "read: FileFailed NAME does not exist")
      }
      const [own] = yield* answers(workspace, "own")
      assert.strictEqual(own, "read: done")
    })
  )

  it.live("what is hidden in the workspace is refused alike, there or not, by name and by link", () =>
    Effect.gen(function* () {
      const { root } = yield* ground
      const workspace = yield* Workspace.open(root, { hidden: [join(root, "secret")] })
      symlinkSync("secret/there", join(root, "to-there"))
      symlinkSync("secret/none", join(root, "to-none"))
      const said = yield* Effect.forEach(["secret/there", "secret/none", "to-there", "to-none"], (name) =>
        answers(workspace, name)
      )
      for (const each of said) assert.deepStrictEqual(each, said[0])
      assert.isTrue(said[0]?.every((one) => one.includes("is hidden from agents")))
    })
  )
})

describe("a name that nobody has", () => {
  it.live("is refused with the agents and conversations of the caller's own project, and of no other", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make("shop")
      const idle = { backend: { type: "command", shell: "cat" } }
      box.configure({ agents: { mine: idle } })
      yield* box.up()
      const other = join(box.folder, "confidential")
      mkdirSync(other)
      writeFileSync(join(other, "agentd.jsonc"), JSON.stringify({ agents: { merger: idle } }))
      assert.strictEqual((yield* box.cliIn(other, "start")).code, 0)
      yield* box.until("both are there", box.rows, (rows) => rows.length === 2)
      for (const args of [
        ["why", "nobody"],
        ["send", "nobody", "x"],
        ["stop", "nobody"],
        ["project", "show", "nobody"]
      ]) {
        const { code, stderr } = yield* box.cli(...args)
        assert.notStrictEqual(code, 0, args.join(" "))
        assert.notMatch(stderr, /confidential|merger/, args.join(" "))
      }
      assert.include((yield* box.cli("why", "nobody")).stderr, "There are: mine")
      assert.include((yield* box.cliIn(box.folder, "why", "nobody")).stderr, "ps")
    })
  )
})
