/** Tests of the patch of an agent's tree: what it shows, what it leaves out, where it is cut. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Worktree from "../../../src/agents/workplace/Worktree.ts"
import * as GitStore from "../../../src/runs/git/GitStore.ts"
import * as TreeDiff from "../../../src/runs/git/TreeDiff.ts"

const files = Effect.provide(NodeFileSystem.layer)
const sh = (cwd: string, script: string) =>
  execFileSync("sh", ["-ec", script], {
    cwd,
    env: {
      PATH: process.env["PATH"],
      HOME: path.join(cwd, "no-home"),
      GIT_AUTHOR_NAME: "p",
      GIT_AUTHOR_EMAIL: "p@localhost",
      GIT_COMMITTER_NAME: "p",
      GIT_COMMITTER_EMAIL: "p@localhost"
    },
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"]
  }).trim()

const world = (format = "sha1") =>
  Effect.gen(function* () {
    const home = yield* Effect.acquireRelease(
      Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "agentd-test-diff-")))),
      (home) => Effect.sync(() => fs.rmSync(home, { recursive: true, force: true }))
    )
    const person = path.join(home, "person")
    fs.mkdirSync(person, { recursive: true })
    sh(person, `git init -q -b main --object-format=${format}; seq 20 > a; echo b > b; git add .; git commit -qm one`)
    const stores = path.join(home, "state/store")
    const spec = { repository: person, stores, folder: path.join(home, "state/worktrees/x"), agent: "x" }
    const { folder: tree } = yield* files(Worktree.prepare(spec))
    const store = (yield* files(GitStore.open(stores, person)))!
    const diff = files(Effect.map(TreeDiff.diff(store, stores, tree), (found) => found!))
    return { person, tree, store, stores, diff }
  })

describe("the patch of a tree", () => {
  for (const format of ["sha1", "sha256"])
    it.live(`has what was committed, what was not, what was deleted, and new files (${format})`, () =>
      Effect.gen(function* () {
        const { diff, store, tree } = yield* world(format)
        const none = yield* diff
        assert.deepStrictEqual([none.files, none.patch, none.more, none.isCut], [[], "", 0, false])
        sh(
          tree,
          `sed -i s/^5$/five/ a; git commit -qam five; sed -i s/^7$/seven/ a; rm b
           echo new > "Büro neu"; printf '\\0\\1' > bin; ln -s /etc/hostname link; mkdir sub; git init -q sub/own; echo x > sub/own/x`
        )
        const { files: changed, patch } = yield* diff
        assert.deepStrictEqual(changed, [
          { path: "Büro neu", added: 1, removed: 0 },
          { path: "a", added: 2, removed: 2 },
          { path: "b", added: 0, removed: 1 },
          { path: "bin", added: null, removed: null },
          { path: "link", added: 1, removed: 0 }
        ])
        for (const line of ["+five", "+seven", "-b", "+new", "new file mode 120000", "+/etc/hostname"])
          assert.include(patch.split("\n"), line)
        assert.notInclude(patch, fs.readFileSync("/etc/hostname", "utf8").trim() + "\n+")
        // the look has left nothing: neither in the tree, nor in what is seen of it
        assert.deepStrictEqual(yield* diff, { ...(yield* diff), patch })
        const seen = yield* files(GitStore.changes(store, tree, "all"))
        assert.sameMembers([...seen], [" M a", " D b", "?? Büro neu", "?? bin", "?? link", "?? sub/own/"])
        assert.strictEqual(sh(tree, "git diff --cached --name-only"), "")
      })
    )

  it.live("a file in the place of a folder, and a folder in that of a file, harm neither this look nor the next", () =>
    Effect.gen(function* () {
      const { diff, person, tree } = yield* world()
      sh(
        tree,
        "mkdir d; echo 1 > d/one; git add d; git commit -qm d; rm -r d; echo file > d; rm b; mkdir b; echo 2 > b/two"
      )
      const { files: changed } = yield* diff
      assert.deepStrictEqual(
        changed.map((file) => file.path),
        ["b", "b/two", "d"]
      )
      sh(tree, "rm -r d b; git checkout -q -- .")
      assert.deepStrictEqual((yield* diff).files, [{ path: "d/one", added: 1, removed: 0 }])
      assert.strictEqual(sh(person, "git status --porcelain"), "")
    })
  )

  it.live("one that was cut off in its midst harms no later one", () =>
    Effect.gen(function* () {
      const { diff, tree } = yield* world()
      fs.writeFileSync(path.join(tree, "new"), "x\n")
      const whole = yield* diff
      for (let n = 0; n < 12; n++) {
        yield* Effect.timeoutOption(diff, n * 8)
      }
      assert.deepStrictEqual(yield* diff, whole)
    })
  )

  it.live("a long one is cut at a line's end, and counts all the same", () =>
    Effect.gen(function* () {
      const { diff, tree } = yield* world()
      fs.writeFileSync(path.join(tree, "long"), "0123456789".repeat(10).concat("\n").repeat(20_000))
      for (let n = 0; n < 210; n++) fs.writeFileSync(path.join(tree, `n${n}`), `${n}\n`)
      const { files: changed, isCut, more, patch } = yield* diff
      assert.isTrue(isCut)
      assert.isAtMost(patch.length, TreeDiff.MAX_PATCH)
      assert.isTrue(patch.endsWith("\n"))
      assert.strictEqual(changed.find((file) => file.path === "long")?.added, 20_000)
      assert.strictEqual(changed.length + more, 211)
    })
  )

  it.live("in a folder without a repository of its own, it is what the commit does not have", () =>
    Effect.gen(function* () {
      const { person, store, stores } = yield* world()
      sh(person, "echo more >> b")
      const found = yield* files(TreeDiff.diff(store, stores, person))
      assert.deepStrictEqual(found?.files, [{ path: "b", added: 1, removed: 0 }])
      assert.strictEqual(found?.base, sh(person, "git rev-parse HEAD"))
    })
  )
})
