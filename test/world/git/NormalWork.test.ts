/**
 * Normal work goes on under the daemon's git: what agents and people do every day in a real
 * repository with hooks, filters of Git LFS, a submodule, line endings, packed and shallow history.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Worktree from "../../../src/agents/workplace/Worktree.ts"
import * as GitStore from "../../../src/runs/git/GitStore.ts"
import * as GitCheckout from "../../../src/runs/git/GitCheckout.ts"
import * as GitMerge from "../../../src/goals/GitMerge.ts"

const files = Effect.provide(NodeFileSystem.layer)
const sh = (cwd: string, script: string) =>
  execFileSync("sh", ["-ec", script], {
    cwd,
    env: {
      PATH: process.env["PATH"],
      HOME: path.join(cwd, "no-home"),
      GIT_CONFIG_COUNT: "3",
      GIT_CONFIG_KEY_0: "user.name",
      GIT_CONFIG_VALUE_0: "p",
      GIT_CONFIG_KEY_1: "user.email",
      GIT_CONFIG_VALUE_1: "p@localhost",
      GIT_CONFIG_KEY_2: "protocol.file.allow",
      GIT_CONFIG_VALUE_2: "always"
    },
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"]
  }).trim()

/** A person's repository of thirty files, the worktree of an agent, and the daemon's store. */
const world = (script = "") =>
  Effect.gen(function* () {
    const home = yield* Effect.acquireRelease(
      Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "agentd-work-")))),
      (home) => Effect.sync(() => fs.rmSync(home, { recursive: true, force: true }))
    )
    const person = path.join(home, "person")
    fs.mkdirSync(path.join(person, "src"), { recursive: true })
    sh(
      person,
      `git init -q -b main; for i in $(seq 30); do echo "file $i" > src/f$i; done; git add .; git commit -qm one; ${script}`
    )
    const stores = path.join(home, "state/store")
    const spec = { repository: person, stores, folder: path.join(home, "state/worktrees/x"), agent: "x" }
    const { folder: tree } = yield* files(Worktree.prepare(spec))
    const store = (yield* files(GitStore.open(stores, person)))!
    return { home, person, spec, store, tree, scratch: path.join(home, "state/goals/g1") }
  })
type World = Effect.Success<ReturnType<typeof world>>

const status = ({ store, tree }: World) => files(GitStore.changes(store, tree, "all"))
const taken = ({ store, tree }: World) => files(GitStore.takeOver(store, tree))

describe("an agent's day", () => {
  it.live("add, commit, branch, stash, rebase, amend: the commit is taken over as it stands", () =>
    Effect.gen(function* () {
      const w = yield* world()
      sh(
        w.tree,
        `echo changed > src/f1; echo new > src/new; git add -A; git commit -qm work; echo x >> src/f2; git stash -q; git stash pop -q
         git checkout -q -- src/f2; git branch t; git commit -q --amend -m better; git rebase -q main; git gc -q`
      )
      assert.strictEqual(yield* taken(w), sh(w.tree, "git rev-parse HEAD"))
      assert.deepStrictEqual(yield* status(w), [])
      // a history that is written anew is taken over, too
      sh(w.tree, "git reset -q --hard main; echo y > src/f3; git commit -qam again")
      assert.strictEqual(yield* taken(w), sh(w.tree, "git rev-parse HEAD"))
    })
  )

  it.live("changed, deleted and untracked files are seen; what is ignored is not", () =>
    Effect.gen(function* () {
      const w = yield* world(
        "echo /private >> .git/info/exclude; echo built >> .gitignore; git add .; git commit -qm two"
      )
      sh(w.tree, "echo dirty > src/f9; rm src/f8; echo u > 'src/a name'; echo p > private; echo b > built")
      assert.deepStrictEqual((yield* status(w)).toSorted(), [" D src/f8", " M src/f9", "?? src/a name"])
      sh(w.tree, "git checkout -q -- src; rm 'src/a name'")
      assert.deepStrictEqual(yield* status(w), [])
    })
  )

  it.live("the repository's hooks run for the agent, and not for the daemon", () =>
    Effect.gen(function* () {
      const w = yield* world(
        `mkdir .husky; printf '#!/bin/sh\\necho ran >> "$(git rev-parse --show-toplevel)/../hooks"\\n' > .husky/pre-commit; cp .husky/pre-commit .husky/post-checkout
         chmod +x .husky/*; git add .; git commit -qm hooks; git config core.hooksPath .husky`
      )
      assert.isFalse(fs.existsSync(path.join(w.home, "state/worktrees/hooks")))
      sh(w.tree, "echo 1 > a; git add a; git commit -qm a")
      assert.strictEqual(sh(w.tree, "wc -l < ../hooks").trim(), "1")
      yield* taken(w)
      assert.deepStrictEqual(yield* status(w), [])
      assert.strictEqual(sh(w.tree, "wc -l < ../hooks").trim(), "1")
    })
  )

  it.live("a submodule is filled by the agent, and not entered by the daemon", () =>
    Effect.gen(function* () {
      const w = yield* world(
        "git init -q -b main ../up; (cd ../up; echo s > s; git add s; git commit -qm s); git submodule --quiet add ../up vendor; git commit -qm sub"
      )
      sh(w.tree, "git submodule --quiet update --init")
      assert.strictEqual(fs.readFileSync(path.join(w.tree, "vendor/s"), "utf8"), "s\n")
      assert.deepStrictEqual(yield* status(w), [])
      const removal = yield* files(Worktree.remove(w.spec))
      assert.deepInclude(removal, { _tag: "Kept", reason: "Uncommitted" })
    })
  )
})

describe("what the checkout looks like", () => {
  it.live("line endings as the person has them are no change", () =>
    Effect.gen(function* () {
      const w = yield* world("git config core.autocrlf true")
      assert.strictEqual(fs.readFileSync(path.join(w.tree, "src/f1"), "utf8"), "file 1\r\n")
      assert.deepStrictEqual(yield* status(w), [])
    })
  )

  it.live("a file of Git LFS is no change while it is what its pointer says, and is one afterwards", () =>
    Effect.gen(function* () {
      const body = "x".repeat(10_000)
      const oid = createHash("sha256").update(body).digest("hex")
      // the filters of git-lfs, as far as a checkout needs them
      const w = yield* world(
        `git config filter.lfs.clean 'sha256sum | sed "s/ .*//" | sed "s/^/oid sha256:/" | (echo "version https://git-lfs.github.com/spec/v1"; cat; echo "size 10000")'
         git config filter.lfs.smudge 'cat > /dev/null; head -c 10000 /dev/zero | tr "\\\\000" x'
         echo '*.bin filter=lfs -text' > .gitattributes; printf %s ${body} > big.bin; git add .; git commit -qm lfs`
      )
      assert.include(sh(w.person, "git show HEAD:big.bin"), `oid sha256:${oid}`)
      assert.strictEqual(fs.readFileSync(path.join(w.tree, "big.bin"), "utf8"), body)
      assert.deepStrictEqual(yield* status(w), [])
      fs.writeFileSync(path.join(w.tree, "big.bin"), `y${body.slice(1)}`)
      assert.deepStrictEqual(yield* status(w), [" M big.bin"])
    })
  )

  it.live("a shallow repository, and one whose branches are packed", () =>
    Effect.gen(function* () {
      const w = yield* world("echo 2 > src/f2; git commit -qam two; git pack-refs --all; git gc -q")
      sh(w.home, `git clone -q --depth 1 file://${w.person} shallow`)
      const repository = path.join(w.home, "shallow")
      const spec = { ...w.spec, repository, folder: path.join(w.home, "state/worktrees/y"), agent: "y" }
      const { folder } = yield* files(Worktree.prepare(spec))
      sh(folder, "echo 3 > src/f3; git commit -qam three")
      const store = (yield* files(GitStore.open(w.spec.stores, repository)))!
      assert.strictEqual(yield* files(GitStore.takeOver(store, folder)), sh(folder, "git rev-parse HEAD"))
      assert.deepStrictEqual(yield* files(GitStore.changes(store, folder, "all")), [])
      assert.strictEqual(yield* files(GitStore.commitOf(w.store, "main")), sh(w.person, "git rev-parse main"))
    })
  )
})

describe("what is brought together", () => {
  it.live(
    "two works are merged in the store, checked out for the checks, and put into a branch; hands off the rest",
    () =>
      Effect.gen(function* () {
        const w = yield* world("git branch release")
        const before = sh(w.person, "git status --porcelain --branch; cat .git/HEAD .git/config")
        sh(w.tree, "echo mine > src/f1; git commit -qam mine")
        const mine = (yield* taken(w))!
        sh(w.tree, "git reset -q --hard main; echo theirs > src/f20; git commit -qam theirs")
        const theirs = (yield* taken(w))!
        const works = [mine, theirs].map((head) => ({ branch: "agentd/x", head, tasks: ["t"], spans: [] }))
        const base = (yield* files(GitStore.commitOf(w.store, "release")))!
        const { commit } = yield* files(GitMerge.combine(w.store, base, works, "both"))
        yield* files(GitCheckout.checkOut(w.store, w.scratch, commit))
        assert.strictEqual(
          sh(w.scratch, "cat src/f1 src/f20; git status --short; git rev-parse HEAD"),
          `mine\ntheirs\n${commit}`
        )
        // the next review: files of the last that are gone are gone, what was built there stays
        fs.writeFileSync(path.join(w.scratch, "built"), "")
        yield* files(GitCheckout.checkOut(w.store, w.scratch, base))
        assert.strictEqual(sh(w.scratch, "cat src/f1; ls built; git status --short"), "file 1\nbuilt\n?? built")
        const { results, toCheckout } = yield* files(
          GitMerge.into(w.store, "release", works, { goalId: "g1", what: "both" })
        )
        assert.deepStrictEqual([results.map(({ outcome }) => outcome), toCheckout], [["merged", "merged"], undefined])
        assert.strictEqual(sh(w.person, "git show release:src/f1 release:src/f20"), "mine\ntheirs")
        assert.strictEqual(sh(w.person, "git status --porcelain --branch; cat .git/HEAD .git/config"), before)
      })
  )
})

describe("what a hostile sender would send", () => {
  it.live("a tree with a .GIT folder is refused", () =>
    Effect.gen(function* () {
      const w = yield* world()
      // a repository of its own: the objects of a worktree lie among the person's already
      const own = path.join(w.home, "own")
      sh(w.home, `git clone -q --no-local ${w.person} own`)
      const tree = Buffer.from(sh(own, "git rev-parse HEAD^{tree}"), "hex")
      fs.writeFileSync(path.join(w.home, "raw"), Buffer.concat([Buffer.from("40000 .GIT\0"), tree]))
      const id = sh(own, "git hash-object -t tree -w --literally ../raw")
      sh(own, `git reset -q --soft $(git commit-tree ${id} -p HEAD -m evil)`)
      const refused = yield* Effect.flip(files(GitStore.takeOver(w.store, own)))
      assert.match(refused.message, /git fetch failed: .*(fsck|hasDotgit)/s)
      assert.isUndefined(yield* files(GitStore.commitAt(w.store, sh(own, "git rev-parse HEAD"))))
    })
  )
})
